"""The kubelet is started when this master's own work is ready, and not later than after a minute."""

from __future__ import annotations

from pathlib import Path

import pytest

from helpers_agent import a_home, a_turn
from helpers_scenarios_edges import FakeClock, HostClock, MemoryUnits
from protokube.agent import kubelet
from protokube.agent.report import Report
from protokube.agent.world import Turn
from protokube.members.start import Refuse, Start


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def turn(tmp_path: Path, clock: FakeClock) -> Turn:
    return a_turn(tmp_path, clock=HostClock(clock))


def started(turn: Turn) -> bool:
    turn.report = Report()
    kubelet.sync(turn)
    units = turn.world.units
    assert isinstance(units, MemoryUnits)
    return "kubelet.service" in units.started


def hold(turn: Turn, *, linked: bool) -> None:
    home = a_home(turn)
    turn.homes = [home]
    turn.decisions = {home.volume: Start(fresh=False)}
    link = turn.world.inside("/etc/kubernetes/manifests/etcd.manifest")
    link.parent.mkdir(parents=True)
    if linked:
        link.symlink_to("/mnt/master-vol-a/k8s.io/manifests/etcd.manifest")


def test_with_its_manifest_linked_it_is_started_at_once(turn: Turn) -> None:
    hold(turn, linked=True)
    assert started(turn)
    assert turn.report.sentence() == "kubelet started"


def test_a_kubelet_that_runs_is_not_news(turn: Turn) -> None:
    hold(turn, linked=True)
    started(turn)
    started(turn)
    assert turn.report.sentence() == ""


def test_it_waits_for_a_volume_and_says_so(turn: Turn) -> None:
    assert not started(turn)
    assert turn.report.sentence() == (
        "kubelet waits: it is started when a volume of main is mounted here, or after 60 s"
    )


def test_it_waits_for_the_manifest_of_what_is_mounted(turn: Turn) -> None:
    hold(turn, linked=False)
    assert not started(turn)
    assert "it is started when the manifest of main/a is linked" in turn.report.sentence()


def test_after_a_minute_it_does_not_wait_any_longer(turn: Turn, clock: FakeClock) -> None:
    assert not started(turn)
    clock.advance(59)
    assert not started(turn)
    assert "(for 59 s)" in turn.report.sentence()
    clock.advance(2)
    assert started(turn)
    assert turn.report.sentence() == "kubelet started before a volume of main is mounted here"


def test_a_volume_on_which_nothing_may_be_started_is_not_waited_for(turn: Turn) -> None:
    hold(turn, linked=False)
    turn.decisions = {"vol-a": Refuse("a person decides")}
    assert started(turn)
