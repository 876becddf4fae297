"""A component's pod mounts the directories of its files: the directory of all keys should not be among them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

from protokube.config import dnscontroller
from protokube.config.draft import Draft
from protokube.config.flags import COMPONENTS
from protokube.config.places import DIRECTORY, own_folder

OPEN = {DIRECTORY, str(PurePosixPath(DIRECTORY).parent)}
PODS = {field: name for field, name in COMPONENTS.items() if field != "kubelet"} | {"dnsController": dnscontroller.NAME}


def check_shown(cluster: Draft) -> None:
    for field, component in PODS.items():
        draft = cluster.under(field)
        for name, path in _paths(draft.tree):
            message = f"with {path} {component} can read all of {PurePosixPath(path).parent}, also keys of others"
            hint = f"use its own directory: {own_folder(component)}/{PurePosixPath(path).name}"
            draft.ledger.warn(draft.at(name), message, hint)


def _paths(tree: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Settings with a path directly in a shared directory."""
    extra = {f"extraFlags.{name}": value for name, value in (tree.get("extraFlags") or {}).items()}
    for name, value in (tree | extra).items():
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, str) and each.startswith("/") and str(PurePosixPath(each).parent) in OPEN:
                yield name, each
