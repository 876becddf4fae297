"""Old and new masters, elections, late reads, and rounds that stop or stand still: what a newer set holds stays."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from builders.addons import MemoryKube, an_addon, an_object
from builders.examples import examples
from clusters.addons_masters import CURRENT, PLAIN, LateStore, Master
from protokube.addons.value import Addon, Tree
from protokube.agent.cluster.addons import AGAIN, EVERY
from protokube.kube.client import NoAnswer
from protokube.store import Stored
from protokube.store.addons import put_addons

NAMES, MASTERS = "abcd", 3
FOLDER = "/api/v1/namespaces/kube-system/configmaps"
numbers = itertools.count()


@dataclass(frozen=True, kw_only=True)
class Round:
    """One round of one master, who believes to be elected."""

    master: int
    behind: int
    """How many changes ago the store stands that it reads from."""
    anew: bool
    """Whether it was not elected in the round before."""
    passed: float
    at: int
    """At which call of it something happens."""
    dies: bool
    meanwhile: Round | None
    """It stands still there, and another one, who was elected meanwhile, has this round."""


@dataclass(frozen=True)
class Up:
    """Somebody asks for these."""

    names: frozenset[str]


def a_round(master: int, **told: Any) -> Round:
    plain: dict[str, Any] = {"behind": 0, "anew": False, "passed": EVERY, "at": 0, "dies": False, "meanwhile": None}
    return Round(master=master, **plain | told)


@st.composite
def rounds(draw: st.DrawFn, nested: bool = True) -> Round:
    return Round(
        master=draw(st.integers(0, MASTERS - 1)), behind=draw(st.sampled_from([0, 0, 0, 1, 1, 2, 3])),
        anew=draw(st.booleans()), passed=draw(st.sampled_from([0.0, AGAIN, EVERY])), at=draw(st.integers(1, 25)),
        dies=draw(st.sampled_from([False, False, True])),
        meanwhile=draw(st.none() | rounds(nested=False)) if nested else None,
    )  # fmt: skip


SETS = st.frozensets(st.sampled_from(NAMES), max_size=len(NAMES))
HISTORIES = st.lists(st.builds(Up, SETS) | rounds(), min_size=4, max_size=14)
LAUNCHES = st.lists(SETS, min_size=MASTERS, max_size=MASTERS)


def addons_of(names: frozenset[str]) -> tuple[Addon, ...]:
    """Each in an add-on of its own."""
    return tuple(an_addon(f"addon-{name}", an_object(name)) for name in sorted(names))


class WatchedKube(MemoryKube):
    """Notes who deletes what, and what the newest set was that anybody had begun to apply by then."""

    def __init__(self) -> None:
        super().__init__()
        self.newest = 0
        self.deleted: list[tuple[int, int, str]] = []
        """The set that the deleter knew, the newest, and the path."""
        self.acting: list[Acting] = []

    def apply(self, path: str, tree: Tree, *, manager: str) -> Tree:
        after = super().apply(path, tree, manager=manager)
        self.newest = max(self.newest, self.acting[-1].store.told)
        return after

    def _called(self, what: str, path: str) -> None:
        # The one gap that no server can close for us: between the last look at the record and the call itself.
        if what != "delete":
            self.acting[-1].next_call()
        super()._called(what, path)
        if what == "delete":
            self.deleted.append((self.acting[-1].store.told, self.newest, path))


@dataclass
class Acting:
    """A master in the middle of a round."""

    site: Site
    step: Round
    store: LateStore
    calls: int = 0

    def next_call(self) -> None:
        self.calls += 1
        other = self.step.meanwhile
        if self.calls == self.step.at and other and other.master != self.step.master:
            self.site.play(other)
        if self.calls >= self.step.at and self.step.dies:
            raise NoAnswer("this master is dead")


@dataclass
class Site:
    """One cluster, its store, and its masters."""

    root: Path
    launches: Sequence[frozenset[str]]
    kube: WatchedKube = field(default_factory=WatchedKube)
    history: list[Stored] = field(default_factory=list)
    sets: dict[int, frozenset[str]] = field(default_factory=dict)
    masters: list[tuple[Master, LateStore]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.name = f"histories-{next(numbers)}"
        for names in self.launches:
            store = LateStore(self.name, self.history)
            self.masters.append((Master(self.root, self.kube, store, addons_of(names)), store))

    def play(self, step: Up | Round) -> None:
        if isinstance(step, Up):
            self.up(step.names)
            return
        master, store = self.masters[step.master]
        store.behind = step.behind
        self.kube.acting.append(Acting(self, step, store))
        if step.anew:
            master.round(elected=False)
        report = master.round(passed=step.passed)
        assert report.bugs == []
        self.kube.acting.pop()

    def up(self, names: frozenset[str]) -> None:
        store = LateStore(self.name)
        put_addons(store, PLAIN.cluster, addons_of(names))
        stored = store.read(CURRENT)
        if not self.history or stored.data != self.history[-1].data:
            self.history.append(stored)
            self.sets[len(self.history)] = names


def check(launches: list[frozenset[str]], history: list[Any]) -> None:
    with tempfile.TemporaryDirectory() as root:
        site = Site(Path(root), launches)
        for step in history:
            site.play(step)

        for known, newest, path in site.kube.deleted:
            name = path.removeprefix(f"{FOLDER}/")
            assert known >= newest, f"{name} was taken away by who knew set {known}, after set {newest} was applied"
            assert known in site.sets, "who knows no number takes nothing away"
            assert name not in site.sets[known]

        site.play(a_round(0, anew=True))
        wanted = site.sets[len(site.history)] if site.history else launches[0]
        assert {f"{FOLDER}/{name}" for name in wanted} <= site.kube.objects.keys()


@examples(150)
@given(LAUNCHES, HISTORIES)
def test_what_a_newer_set_holds_is_never_taken_away_by_who_knows_an_older_one(
    launches: list[frozenset[str]], history: list[Any]
) -> None:
    check(launches, history)


WITH_OR_WITHOUT = st.frozensets(st.just("b"))


@examples(40)
@given(st.tuples(*[WITH_OR_WITHOUT] * 3), st.booleans(), st.integers(1, 2), st.integers(1, 2))
def test_nor_by_who_stood_still_anywhere_while_another_master_was_elected_and_applied_it(
    others: tuple[frozenset[str], ...], recorded: bool, behind: int, later: int
) -> None:
    """`a` was wanted, then not, then again; the slow master knows of the first or of the second."""
    sets = [{"a"} | others[0], others[1], {"a"} | others[2]]
    first, *ups = [Up(frozenset(each)) for each in sets]
    before = [first, *([a_round(0)] if recorded else []), *ups]
    for at in range(1, 13):
        slow = a_round(0, behind=behind, at=at, meanwhile=a_round(1))
        check([others[1]] * MASTERS, [*before, slow, a_round(2, behind=later)])
