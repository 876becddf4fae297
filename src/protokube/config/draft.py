"""The configuration while it is being completed: what the user said, what was decided, and why.

A draft starts as the user's own values, so whatever the user said stands by construction, `0`, `false` and `""`
included. `decide` fills a gap and notes the reason; it never looks at a value that is there, it only returns it.
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
    """Why a value is what it is: the user's if it has a place, derived if it follows from others, else a default."""

    because: str = ""
    of: tuple[str, ...] = ()
    where: Where | None = None

    @property
    def inherited(self) -> bool:
        """Taken over as it is from one other place."""
        return not self.because and len(self.of) == 1

    @property
    def kind(self) -> str:
        if self.where is not None:
            return "user"
        return "derived" if self.of else "default"


@dataclass(slots=True)
class Ledger:
    """The origin of every value, by path; and everything noticed on the way."""

    places: Mapping[str, Where]
    origins: dict[str, Origin] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    misread: frozenset[str] = frozenset()
    """Paths whose values could not be understood and so are missing here."""
    warnings: list[Problem] = field(default_factory=list)
    for_reading: bool = False
    """A document of the original for a Kubernetes we no longer bring up: shown in the form of our oldest."""
    without_kubernetes: bool = False
    """Only etcd and names will run: what Kubernetes needs of them is not told."""

    def origin(self, path: str) -> Origin | None:
        """Where the value at this path came from; a part of a value came from where the whole did."""
        while path:
            if path in self.origins:
                return self.origins[path]
            if path in self.places:
                return Origin(where=self.places[path])
            path = path.rpartition("." if path.rfind(".") > path.rfind("[") else "[")[0]
        return None

    def where(self, *paths: str) -> Where | None:
        """The user's place of the first of these paths that has one, looking through what was derived from it."""
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
        """Something that keeps the cluster from working; what was wrong as it was read is not told a second time."""
        if self.doubtful(path):
            return
        self.problems.append(Problem(path=path, message=message, hint=hint, where=self.where(path, *also)))

    def warn(self, path: str, message: str, hint: str = "", *also: str) -> None:
        self.warnings.append(Problem(path=path, message=message, hint=hint, where=self.where(path, *also)))

    def doubtful(self, path: str) -> bool:
        """Whether something at or under this path could not be understood, so that nothing can be said of it."""
        return "spec" in self.misread or any(
            each == path or each.startswith((f"{path}.", f"{path}[")) for each in self.misread
        )

    def unfit(self, path: str, message: str, hint: str = "") -> None:
        """Something this version of Kubernetes cannot take: wrong in a cluster, a remark in one only looked at."""
        (self.warn if self.for_reading else self.problem)(path, message, hint)

    def source(self, path: str) -> str:
        """Where a value that was taken over unchanged stands first, so that a problem is told once."""
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
        """What stands there now: said, or decided before."""
        return self.tree.get(name)

    def decide(self, name: str, otherwise: T, because: str, *of: str) -> T:
        """The user's value, or else this one, for this reason; `of` are full paths it follows from."""
        if name in self.tree:
            return cast("T", self.tree[name])
        self.tree[name] = otherwise
        self.ledger.origins[self.at(name)] = Origin(because, of)
        return otherwise

    def under(self, name: str) -> Draft:
        """A mapping inside this one, made if it is not there."""
        return Draft(self.tree.setdefault(name, {}), self.ledger, self.at(name))

    def each(self, name: str) -> Iterator[tuple[str, Draft]]:
        """The named things inside this field."""
        path = self.at(name)
        for key, tree in self.tree.get(name, {}).items():
            yield key, Draft(tree, self.ledger, join(path, key))

    def inherit(self, name: str, value: Any, source: str) -> None:
        """Take over a value from another place unless there is one here."""
        if name not in self.tree:
            self.tree[name] = value
            self.ledger.origins[self.at(name)] = Origin("", (source,))
