"""Something happens to a master at each single call it makes: before the call is carried out, or before its answer.

Not at random: while a cluster comes up, while a volume is taken over, and while a lost one is replaced, at one passage
after the other. `PROTOKUBE_EVERY_CALL=1` leaves none out.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import NamedTuple

import pytest

from clusters.scenario.checks import Watch
from clusters.scenario.cluster import Stage
from clusters.scenario.edges import AgentDied
from clusters.scenario.host import Host, tmpfs

pytestmark = pytest.mark.usefixtures("unmeasured")

STRIDE = 1 if os.environ.get("PROTOKUBE_EVERY_CALL") else 31
HEALS_WITHIN = 60


class Play(NamedTuple):
    stage: Stage
    watch: Watch

    def rounds(self, times: int, without: Host | None = None) -> None:
        for _ in range(times):
            for host in list(self.stage.hosts.values()):
                if host.runs and host is not without:
                    self.stage.beat(host)
                    self.watch.after_round(host, self.stage.round(host))
            self.watch.after_event()
            self.stage.clock.advance(2.0)

    def until_healthy(self) -> None:
        for _ in range(HEALS_WITHIN):
            if self.stage.healthy():
                return
            self.rounds(1)
        raise AssertionError(f"it does not heal:\n{self.stage.story()}")


def comes_up(play: Play) -> Host:
    return play.stage.boot_all()[0]


def takes_over(play: Play) -> Host:
    play.stage.boot_all()
    play.until_healthy()
    assert play.stage.write()
    old = play.stage.holder_of("b")
    play.stage.kill(old)
    return play.stage.replace_machine(old)


def replaces(play: Play) -> Host:
    """The elected master, which makes the new volume and then takes it."""
    play.stage.boot_all()
    play.until_healthy()
    play.rounds(3)
    assert play.stage.write()
    elected = next(each for each in play.stage.hosts.values() if each.presence.elected())
    play.stage.delete_volume(next(iter(elected.disks.table)))
    return elected


def agent_dies(play: Play, host: Host) -> None:
    raise AgentDied


def plug_is_pulled(play: Play, host: Host) -> None:
    play.stage.kill(host)
    play.stage.replace_machine(host)
    raise AgentDied


def sleeps_and_is_taken_over(play: Play, host: Host) -> None:
    play.stage.freeze(host)
    play.stage.replace_machine(host)
    play.rounds(5, without=host)
    play.stage.thaw(host)


def sleeps_while_others_work(play: Play, host: Host) -> None:
    play.stage.freeze(host)
    play.rounds(3, without=host)
    play.stage.thaw(host)


def answers_get_lost(play: Play, host: Host) -> None:
    stage = play.stage
    stage.cloud.answers_lost = stage.dns.answers_lost = stage.store.answers_lost = True
    stage.etcd["main"].answers_lost = True


def nobody_answers(play: Play, host: Host) -> None:
    stage = play.stage
    stage.cloud.down = stage.dns.unreachable = stage.store.down = True


def mend(stage: Stage) -> None:
    stage.cloud.answers_lost = stage.dns.answers_lost = stage.store.answers_lost = False
    stage.cloud.down = stage.dns.unreachable = stage.store.down = False
    stage.etcd["main"].answers_lost = False


Phase = Callable[[Play], Host]
Accident = Callable[[Play, Host], None]
PHASES: tuple[Phase, ...] = (comes_up, takes_over, replaces)
ACCIDENTS: tuple[Accident, ...] = (
    agent_dies, plug_is_pulled, sleeps_and_is_taken_over, sleeps_while_others_work, answers_get_lost, nobody_answers,
)  # fmt: skip


def happens(phase: Phase, accident: Accident, passage: int) -> bool:
    """Let it happen at one passage; False if the victim did not come that far."""
    with tmpfs() as folder:
        stage = Stage(folder)
        play = Play(stage, Watch(stage))
        victim = phase(play)
        fired: list[int] = []

        def act() -> None:
            fired.append(passage)
            accident(play, victim)

        victim.fuse.set(passage, act)
        for _ in range(12):
            for host in list(stage.hosts.values()):
                if host.runs:
                    stage.beat(host)
                    play.watch.after_round(host, stage.round(host))
                    mend(stage)
            play.watch.after_event()
            stage.clock.advance(2.0)
            if fired:
                break
        victim.fuse.left = -1
        play.until_healthy()
        assert stage.write()
        assert stage.etcd["main"].histories == [1]
        assert all(len(each.formats) <= 1 for each in stage.platters.by_volume.values())
        return bool(fired)


@pytest.mark.parametrize("accident", ACCIDENTS, ids=lambda each: each.__name__)
@pytest.mark.parametrize("phase", PHASES, ids=lambda each: each.__name__)
def test_whatever_happens_at_whichever_call_the_cluster_is_healthy_in_the_end(phase: Phase, accident: Accident) -> None:
    passage = (PHASES.index(phase) * 5 + ACCIDENTS.index(accident) * 3) % STRIDE
    while happens(phase, accident, passage):
        passage += STRIDE
    assert passage > 30
