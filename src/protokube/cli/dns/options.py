"""Which objects a command about names sees, and in whose name: alike for every such command."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

Decorated = Callable[..., Any]


def ttl_option(command: Decorated) -> Decorated:
    option = click.option(
        "--ttl", type=click.IntRange(1, 86400), default=60, show_default=True, help="Seconds that answers last."
    )
    return option(command)


def object_options(command: Decorated) -> Decorated:
    options = [
        click.option(
            "--kubeconfig", type=click.Path(path_type=Path, dir_okay=False), help="How the API server is reached."
        ),
        click.option("--context", help="Another context of the kubeconfig than its current one."),
        click.option(
            "--watch-namespace", metavar="NAME", default="", help="Pods, services, ingresses of this one only."
        ),
        click.option(
            "--watch-ingress/--no-watch-ingress", default=False, show_default=True, help="Hosts of ingresses too."
        ),
        click.option(
            "--owner", metavar="ID", help="Whose our values are.  [default: the uid of the namespace kube-system]"
        ),
    ]
    for option in reversed(options):
        command = option(command)
    return command
