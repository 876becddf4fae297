"""Check for commands that need root."""

from __future__ import annotations

import os

import click

from protokube.errors import NeedsRoot


def need_root() -> None:
    if os.geteuid() != 0:
        raise NeedsRoot(
            "the local cloud needs root", saw=f"user {os.geteuid()}", want="namespaces, loop devices and mounts",
            hint=f"sudo {click.get_current_context().command_path}",
        )  # fmt: skip
