"""How each kind of task is looked at and made true: a table, and modules that are imported when they are needed."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from protokube.nodeup.changes import Change
from protokube.nodeup.machine import Machine, Say
from protokube.nodeup.values import (
    Asset,
    Command,
    Directory,
    File,
    Gone,
    Group,
    Image,
    Installed,
    Link,
    Module,
    Mount,
    Packages,
    Sysctl,
    Task,
    Unit,
    User,
)

Look = Callable[[Any, Machine], Sequence[Change]]
Apply = Callable[[Any, Sequence[Change], Machine, Say], None]


class Kind(Protocol):
    """What the runner knows of one kind of task."""

    @property
    def lane(self) -> str:
        """Tasks of one lane run one at a time, in their order; empty: any number at a time."""
        ...  # fmt: skip

    def look(self, wanted: Any, machine: Machine, /) -> Sequence[Change]: ...

    def apply(self, wanted: Any, changes: Sequence[Change], machine: Machine, say: Say, /) -> None: ...


@dataclass(frozen=True, slots=True)
class Lazy:
    """Implements Kind by a module of `tasks`."""

    module: str
    lane: str = ""

    def look(self, wanted: Any, machine: Machine, /) -> Sequence[Change]:
        found: Look = self._part("look")
        return found(wanted, machine)

    def apply(self, wanted: Any, changes: Sequence[Change], machine: Machine, say: Say, /) -> None:
        made: Apply = self._part("apply")
        made(wanted, changes, machine, say)

    def _part(self, name: str) -> Any:
        return getattr(importlib.import_module(f"protokube.nodeup.tasks.{self.module}"), name)


ACCOUNTS = "accounts"
"""Packages bring users of their own: which ids are free then must not depend on who comes first."""
KINDS: Mapping[type[Task], Kind] = {
    File: Lazy("file"),
    Directory: Lazy("directory"),
    Link: Lazy("link"),
    Gone: Lazy("gone"),
    Group: Lazy("group", lane=ACCOUNTS),
    User: Lazy("user", lane=ACCOUNTS),
    Packages: Lazy("packages", lane=ACCOUNTS),
    Unit: Lazy("unit"),
    Sysctl: Lazy("sysctl"),
    Module: Lazy("module"),
    Mount: Lazy("mount"),
    Asset: Lazy("asset"),
    Installed: Lazy("installed"),
    Image: Lazy("image"),
    Command: Lazy("command"),
}
