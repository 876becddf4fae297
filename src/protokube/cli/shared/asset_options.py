"""Options of commands that resolve the assets of machines: where these come from, and for which kind of machine."""

from __future__ import annotations

import platform
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from protokube.cli.shared.options import Choice

PROCESSORS = ("x86_64", "aarch64")

_OPTIONS = (
    click.option(
        "--processor", type=Choice(PROCESSORS), default=platform.machine, help="Of the machines.  [default: this one's]"
    ),
    click.option(
        "--mirror", "mirrors", metavar="PROJECT=URL", multiple=True, help="Where else releases are; asked first."
    ),
    click.option(
        "--release", "releases", metavar="PROJECT=URL", multiple=True, help="Where a project publishes, with checksums."
    ),
    click.option(
        "--image", "archives", metavar="NAME=FILE", multiple=True, help="An archive of an image that you have."
    ),
    click.option(
        "--cache",
        metavar="DIR",
        type=click.Path(path_type=Path, file_okay=False),
        help="The folder of the cache.  [default: PROTOKUBE_CACHE, else /var/cache/protokube]",
    ),
)


def asset_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for each in reversed(_OPTIONS):
        command = each(command)
    return command
