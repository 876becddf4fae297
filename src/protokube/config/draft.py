"""The configuration while it is being completed: the user's values, the decisions, and their reasons.

A draft starts with the user's values, so these are kept by construction, including `0`, `false` and `""`. `decide` sets
a missing value and records the reason; it returns an existing value without looking at it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from protokube.errors import Problem, Where
from protokube.spec.decode import Tree, join

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Origin:
    """Why a value is what it is: set by the user (`where`), derived from other values (`of`), or a default."""

    because: str = ""
    of: tuple[str, ...] = ()
    where: Where | None = None

    @property
    def inherited(self) -> bool:
        """Copied unchanged from one other path."""
        return not self.because and len(self.of) == 1

    @property
    def kind(self) -> str:
        if self.where is not None:
            return "user"
        return "derived" if self.of else "default"


@dataclass(slots=True)
class Ledger:
    """The origin of every value by path, and all problems and warnings."""

    places: Mapping[str, Where]
    origins: dict[str, Origin] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    misread: frozenset[str] = frozenset()
    """Paths whose values could not be decoded and are therefore missing."""
    warnings: list[Problem] = field(default_factory=list)
    for_reading: bool = False
    """A document of the original for an unsupported, older Kubernetes: completed in the form of our oldest version."""
    without_kubernetes: bool = False
    """Only etcd and DNS names will run: checks of what Kubernetes needs from them are skipped."""

    def origin(self, path: str) -> Origin | None:
        """The origin of the value at this path; a part of a value has the origin of the whole."""
        while path:
            if path in self.origins:
                return self.origins[path]
            if path in self.places:
                return Origin(where=self.places[path])
            path = path.rpartition("." if path.rfind(".") > path.rfind("[") else "[")[0]
        return None

    def where(self, *paths: str) -> Where | None:
        """The file and line of the first of these paths that has one, following derived values to their sources."""
        queue, seen = list(paths), set(paths)
        while queue:
            origin = self.origin(queue.pop(0))
            if origin and origin.where:
                return origin.where
            if origin:
                fresh = [each for each in origin.of if each not in seen]
                queue += fresh
                seen.update(fresh)
        return None

    def problem(self, path: str, message: str, hint: str = "", *also: str) -> None:
        """Record a problem that keeps the cluster from working; values that failed to decode are not reported twice."""
        if self.doubtful(path):
            return
        self.problems.append(Problem(path=path, message=message, hint=hint, where=self.where(path, *also)))

    def warn(self, path: str, message: str, hint: str = "", *also: str) -> None:
        self.warnings.append(Problem(path=path, message=message, hint=hint, where=self.where(path, *also)))

    def doubtful(self, path: str) -> bool:
        """Whether a value at or under this path could not be decoded, so that checks of it are meaningless."""
        return "spec" in self.misread or any(
            each == path or each.startswith((f"{path}.", f"{path}[")) for each in self.misread
        )

    def unfit(self, path: str, message: str, hint: str = "") -> None:
        """A setting that this version of Kubernetes does not support: a problem, but a warning if `for_reading`."""
        (self.warn if self.for_reading else self.problem)(path, message, hint)

    def source(self, path: str) -> str:
        """The path that an inherited value was copied from, so that a problem is reported once."""
        origin = self.origins.get(path)
        return origin.of[0] if origin and origin.inherited else path


@dataclass(slots=True)
class Draft:
    """One mapping of the configuration under completion, with its path and the ledger of the whole."""

    tree: Tree
    ledger: Ledger
    path: str = ""

    def at(self, name: str) -> str:
        """The full path of a field of this mapping."""
        return join(self.path, name)

    def has(self, name: str) -> bool:
        return name in self.tree

    def get(self, name: str) -> Any:
        """The current value: the user's, or one decided before."""
        return self.tree.get(name)

    def decide(self, name: str, otherwise: T, because: str, *of: str) -> T:
        """Return the user's value, or set this one and record the reason; `of` are full paths it is derived from."""
        if name in self.tree:
            return cast("T", self.tree[name])
        self.tree[name] = otherwise
        self.ledger.origins[self.at(name)] = Origin(because, of)
        return otherwise

    def under(self, name: str) -> Draft:
        """A nested mapping, created if it is missing."""
        return Draft(self.tree.setdefault(name, {}), self.ledger, self.at(name))

    def each(self, name: str) -> Iterator[tuple[str, Draft]]:
        """The named items of this field."""
        path = self.at(name)
        for key, tree in self.tree.get(name, {}).items():
            yield key, Draft(tree, self.ledger, join(path, key))

    def inherit(self, name: str, value: Any, source: str) -> None:
        """Copy a value from another path unless there is one here."""
        if name not in self.tree:
            self.tree[name] = value
            self.ledger.origins[self.at(name)] = Origin("", (source,))
