"""Options shared by the commands about DNS names: which objects they read, and as which owner."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from protokube.cli.shared.durations import WholeSeconds

Decorated = Callable[..., Any]


def ttl_option(command: Decorated) -> Decorated:
    option = click.option(
        "--ttl", type=WholeSeconds(1, 86400), default="60s", show_default=True, help="TTL of the records."
    )
    return option(command)


def object_options(command: Decorated) -> Decorated:
    options = [
        click.option(
            "--kubeconfig", type=click.Path(path_type=Path, dir_okay=False), help="The kubeconfig of the cluster."
        ),
        click.option("--context", help="The context in the kubeconfig.  [default: the current one]"),
        click.option(
            "--watch-namespace",
            metavar="NAME",
            default="",
            help="Read pods, services and ingresses of this namespace only.",
        ),
        click.option(
            "--watch-ingress/--no-watch-ingress",
            default=False,
            show_default=True,
            help="Publish the hosts of ingresses too.",
        ),
        click.option(
            "--owner", metavar="ID", help="The owner of our values.  [default: the uid of the namespace kube-system]"
        ),
    ]
    for option in reversed(options):
        command = option(command)
    return command
