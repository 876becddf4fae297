"""Kubeconfig files as values, which entries in them are ours, and changes of them.

kubectl reads the files of KUBECONFIG as one: of two entries or current contexts with the same name, the first file's
wins. So a decision takes all of them (`chain`), and a change names its file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

CLUSTERS, USERS, CONTEXTS = "clusters", "users", "contexts"
BODY = {CLUSTERS: "cluster", USERS: "user", CONTEXTS: "context"}
"""In each list, the field of an entry that has everything but its name."""
EXTENSION = "protokube.io"
"""The name of the extension that makes an entry ours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """The cluster that an entry belongs to. A home folder may be shared by machines, so the machine is part of it."""

    machine: str
    state: str
    """The folder or URL with the cluster's state."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """Our extension in an entry."""

    owner: Owner
    user: str
    """Whose certificate it is; `operator` for `up`."""
    former: str = ""
    """In a context: the context that was current before."""

    def to_tree(self) -> dict[str, str]:
        tree = {"machine": self.owner.machine, "state": self.owner.state, "user": self.user}
        return {**tree, "former": self.former} if self.former else tree

    @staticmethod
    def from_tree(tree: object) -> Mark | None:
        match tree:
            case {"machine": str(machine), "state": str(state), "user": str(user), **more}:
                former = more.get("former")
                owner = Owner(machine=machine, state=state)
                return Mark(owner=owner, user=user, former=former if isinstance(former, str) else "")
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A cluster, user or context."""

    name: str
    body: Mapping[str, Any]
    mark: Mark | None = None
    """None: not ours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kubeconfig:
    """One file; empty if it does not exist."""

    path: str
    exists: bool = True
    entries: Mapping[str, tuple[Entry, ...]] = field(default_factory=dict)
    current: str = ""

    def of(self, section: str) -> tuple[Entry, ...]:
        return self.entries.get(section, ())


@dataclass(frozen=True, slots=True, kw_only=True)
class Put:
    """Create an entry of ours, or change these fields of it; its other fields stay."""

    path: str
    section: str
    name: str
    mark: Mark
    fields: Mapping[str, str] = field(default_factory=dict, repr=False)
    without: frozenset[str] = frozenset()
    """Fields that would contradict ours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drop:
    """Remove an entry of ours."""

    path: str
    section: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Current:
    """Set the current context; empty for none."""

    path: str
    name: str


Edit = Put | Drop | Current


def effective(chain: Sequence[Kubeconfig], section: str) -> dict[str, tuple[str, Entry]]:
    """What kubectl sees: by name, the entry and the path of its file."""
    found: dict[str, tuple[str, Entry]] = {}
    for file in chain:
        for entry in file.of(section):
            found.setdefault(entry.name, (file.path, entry))
    return found


def current_context(chain: Sequence[Kubeconfig]) -> str:
    return next((file.current for file in chain if file.current), "")


def default_path(chain: Sequence[Kubeconfig]) -> str:
    """The file in which kubectl creates what is new: the first that exists, else the last."""
    return next((file.path for file in chain if file.exists), chain[-1].path)
