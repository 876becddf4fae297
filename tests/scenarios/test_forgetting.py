"""An agent may be restarted at any moment, and remembers nothing: nothing is done to data any earlier for it.

Each trouble is played twice, with and without restarts, second by second. What removes a member, formats or makes a
disk, or starts an etcd may come later with restarts, or not at all; never earlier, and nothing comes that did not
before.
"""

from __future__ import annotations

import shutil
from functools import cache

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from clusters.scenario.checks import Watch
from clusters.scenario.cluster import Stage
from clusters.scenario.host import tmpfs

pytestmark = pytest.mark.usefixtures("unmeasured")

SECONDS = 45
Deed = tuple[str, int]
"""What was done, and for which time."""
Restarts = tuple[tuple[int, int], ...]
"""After which second, and on which machine."""


class Trouble:
    """Something that makes agents act; it begins after the cluster has formed."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.host, self.volume = stage.holder_of("a"), stage.volume_of("a")

    def begin(self) -> None: ...

    def at(self, second: int) -> None: ...


class Vanished(Trouble):
    """etcd's data is deleted, and that etcd runs on for twenty seconds."""

    def begin(self) -> None:
        folder = self.stage.platters[self.volume].folder
        assert folder is not None
        self.stage.etcd["main"].lingering.add(self.host.id)
        shutil.rmtree(folder / "var/etcd/data/member")

    def at(self, second: int) -> None:
        if second == 20:
            self.stage.etcd["main"].lingering.clear()


class VanishedWithoutQuorum(Vanished):
    """The same while the others sleep: the link is taken away before anybody could say what comes next."""

    def begin(self) -> None:
        super().begin()
        for each in ("b", "c"):
            self.stage.freeze(self.stage.holder_of(each))

    def at(self, second: int) -> None:
        super().at(second)
        if second == 10:
            for each in self.stage.hosts.values():
                if each.frozen:
                    self.stage.thaw(each)


class Deleted(Trouble):
    def begin(self) -> None:
        self.stage.delete_volume(self.volume)


class Denied(Trouble):
    """For four seconds the provider says that there is no such volume; then there is."""

    def begin(self) -> None:
        self.stage.hide(self.volume)

    def at(self, second: int) -> None:
        if second == 4:
            self.stage.show(self.volume)


class Replaced(Trouble):
    def begin(self) -> None:
        self.stage.kill(self.host)
        self.stage.replace_machine(self.host)


class LostWithItsDisk(Trouble):
    def begin(self) -> None:
        self.stage.kill(self.host)
        self.stage.delete_volume(self.volume)
        self.stage.replace_machine(self.host)


KINDS: dict[str, type[Trouble]] = {
    each.__name__: each
    for each in (Trouble, Vanished, VanishedWithoutQuorum, Deleted, Denied, Replaced, LostWithItsDisk)
}


def deeds(stage: Stage) -> list[Deed]:
    """Everything that was ever done here, so far as it cannot be undone."""
    model = stage.etcd["main"]
    found = [(f"{each.volume} was formatted", len(each.formats)) for each in stage.platters.by_volume.values()]
    found += [("a disk was made", len(stage.cloud.volumes()) + len(stage.hidden))]
    found += [("an etcd was started", model.starts)]
    newest = max((each.state for each in model.dbs.values()), key=lambda state: state.sequence)
    found += [(f"{member} was removed", 1) for member in founders(stage) - {each.id for each in newest.members}]
    return found


def founders(stage: Stage) -> set[int]:
    model = stage.etcd["main"]
    return {each.id for db in model.dbs.values() for each in db.state.members if each.id < 2**32}


def play(trouble: type[Trouble], restarts: Restarts = ()) -> dict[Deed, int]:
    """When each deed was first seen."""
    with tmpfs() as folder:
        stage = Stage(folder)
        stage.boot_all()
        stage.rounds(12)
        assert stage.healthy(), stage.story()
        watch, here = Watch(stage), trouble(stage)
        here.begin()
        seen: dict[Deed, int] = {}
        for second in range(SECONDS):
            stage.rounds(1)
            watch.after_event()
            for what, times in deeds(stage):
                for number in range(1, times + 1):
                    seen.setdefault((what, number), second)
            here.at(second)
            running = [each for each in stage.hosts.values() if each.runs]
            for when, which in restarts:
                if when == second:
                    stage.agent_dies(running[which % len(running)])
        return seen


@cache
def undisturbed(kind: str) -> dict[Deed, int]:
    return play(KINDS[kind])


RESTARTS: st.SearchStrategy[Restarts] = st.lists(
    st.tuples(st.integers(0, SECONDS - 1), st.integers(0, 2)), min_size=1, max_size=8, unique=True
).map(tuple)


def every(seconds: int) -> Restarts:
    return tuple((each, 0) for each in range(0, SECONDS, seconds))


@pytest.mark.parametrize("kind", KINDS)
@given(restarts=RESTARTS)
@example(restarts=every(1))
@example(restarts=every(3))
@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
def test_an_agent_that_forgets_everything_does_nothing_earlier(kind: str, restarts: Restarts) -> None:
    before, after = undisturbed(kind), play(KINDS[kind], restarts)
    early = {deed: (before.get(deed), when) for deed, when in after.items() if when < before.get(deed, SECONDS)}
    assert early == {}


@pytest.mark.parametrize("kind", sorted(KINDS.keys() - {"Trouble", "Denied"}))
def test_without_restarts_each_of_these_troubles_makes_agents_act(kind: str) -> None:
    assert len(undisturbed(kind)) > len(undisturbed("Trouble"))
