"""How long something does not run: a process that ends again and again is seen running now and then."""

from __future__ import annotations

from pathlib import Path

from builders.agent import a_round
from clusters.scenario.edges import FakeClock, HostClock
from clusters.scenario.host import wanted_of
from protokube.agent.delivery.health import Trouble
from protokube.agent.delivery.revision import FLAPS, Sight
from protokube.launch.rollout import Rollout

GONE, NOT_READY = Trouble("kube-apiserver", "it does not run", ended=True), Trouble("kube-apiserver", "it is not ready")


class Looks:
    """What one master sees, one look after the other."""

    def __init__(self, root: Path) -> None:
        self.clock = FakeClock()
        self.round_ = a_round(root, wanted=wanted_of(), clock=HostClock(self.clock))

    def down(self, trouble: Trouble, after: float) -> float:
        self.clock.advance(after)
        return Sight(self.round_, Rollout(wanted=2))._down(trouble)


def test_moments_in_which_it_runs_do_not_count(tmp_path: Path) -> None:
    looks = Looks(tmp_path)
    assert looks.down(GONE, 1.0) == 0.0
    assert looks.down(GONE, 20.0) == 20.0
    assert looks.down(NOT_READY, 2.0) == 22.0
    assert looks.down(GONE, 20.0) == 42.0


def test_once_it_ran_for_long_the_count_begins_anew(tmp_path: Path) -> None:
    looks = Looks(tmp_path)
    looks.down(GONE, 1.0)
    looks.down(GONE, 20.0)
    assert looks.down(NOT_READY, FLAPS + 1) == 0.0
    assert looks.down(GONE, 1.0) == 0.0


def test_what_runs_and_is_not_ready_is_not_down(tmp_path: Path) -> None:
    looks = Looks(tmp_path)
    assert looks.down(NOT_READY, 100.0) == 0.0
    assert looks.down(NOT_READY, 100.0) == 0.0
