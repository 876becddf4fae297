"""The agent writes the kubelet's files, and restarts a kubelet that has not read them: once, and without waiting."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from builders.agent import Alone, a_machine, a_mounted_volume, a_round
from clusters.scenario.edges import FakeClock, HostClock, MemoryUnits
from protokube.agent.cache import Cache
from protokube.agent.controlplane import kubelet, kubelet_files
from protokube.agent.report import Report
from protokube.errors import TryLater
from protokube.launch.files import KUBELET_ENV
from protokube.launch.machine import KubeletConfig
from protokube.members.start_values import Refuse

CONFIG = "/var/lib/kubelet/config.yaml"


def a_kubelet(*, pods: int = 110, verbosity: int = 2) -> KubeletConfig:
    return KubeletConfig(flags={"config": CONFIG, "v": verbosity}, files={CONFIG: f"maxPods: {pods}\n"})


class Master:
    """A master that may start its kubelet; the files have the time of the fake clock."""

    def __init__(self, root: Path) -> None:
        self.clock, self.units = FakeClock(), MemoryUnits()
        # nobody else serves, and it is nobody's turn to restart for a certificate
        self.round_ = a_round(root, clock=HostClock(self.clock), units=self.units, presence=Alone(None))
        self.round_.mounted = [a_mounted_volume(self.round_)]
        self.round_.decisions = {"vol-a": Refuse("nothing is to be started on it")}
        self.want(a_kubelet())

    def want(self, kubelet: KubeletConfig) -> None:
        self.round_.wanted = replace(self.round_.wanted, kubelets={"master-a": kubelet})

    def file(self, path: str) -> Path:
        return self.round_.edges.inside(path)

    def run(self) -> str:
        """What one round reports."""
        self.round_.report = Report()
        before = {path: self.times(path) for path in (CONFIG, KUBELET_ENV)}
        try:
            kubelet.sync(self.round_)
        finally:
            for path, time in before.items():
                if self.times(path) != time:
                    self.set_time(path, self.clock.wall)
        return self.round_.report.sentence()

    def times(self, path: str) -> int | None:
        return self.file(path).stat().st_mtime_ns if self.file(path).exists() else None

    def set_time(self, path: str, at: float) -> None:
        os.utime(self.file(path), (at, at))

    def later(self, seconds: float) -> Master:
        self.clock.advance(seconds)
        self.units.running += seconds
        return self

    def restart_agent(self) -> None:
        self.round_.edges.cache = Cache()


@pytest.fixture
def master(tmp_path: Path) -> Master:
    return Master(tmp_path)


@pytest.fixture
def running(master: Master) -> Master:
    """Its kubelet has been running for an hour."""
    master.run()
    return master.later(3600)


def test_files_are_written_before_the_kubelet_is_started(master: Master) -> None:
    assert master.run() == f"kubelet {CONFIG} written; kubelet {KUBELET_ENV} written; kubelet started"
    assert master.file(CONFIG).read_text() == "maxPods: 110\n"
    assert master.file(KUBELET_ENV).read_text() == f"KUBELET_FLAGS='--config={CONFIG} --v=2'\n"
    assert {master.file(path).stat().st_mode & 0o777 for path in (CONFIG, KUBELET_ENV)} == {0o644}


@pytest.mark.parametrize("agent_restarts", [False, True])
@pytest.mark.parametrize("seconds", [0.0, 0.004, 1.0, 3600.0])
def test_a_kubelet_that_started_right_after_its_files_were_written_is_not_restarted(
    master: Master, agent_restarts: bool, seconds: float
) -> None:
    master.run()
    for _ in range(3):
        master.later(seconds)
        if agent_restarts:
            master.restart_agent()
        assert master.run() == ""
    assert master.units.restarted == []


@pytest.mark.parametrize(("changed", "path"), [(a_kubelet(pods=12), CONFIG), (a_kubelet(verbosity=4), KUBELET_ENV)])
def test_a_changed_setting_is_written_and_the_kubelet_restarted_once(
    running: Master, changed: KubeletConfig, path: str
) -> None:
    running.want(changed)
    assert running.run() == f"kubelet {path} written; kubelet restarted: {path} changed"
    for _ in range(5):
        assert running.later(10).run() == ""
    assert running.units.restarted == [kubelet.UNIT]


def test_a_setting_that_changed_within_a_second_of_the_start_is_not_missed_for_coarse_file_times(
    master: Master,
) -> None:
    master.run()
    master.later(0.002).want(a_kubelet(pods=12))
    assert master.run().endswith(f"restarted: {CONFIG} changed")
    master.set_time(CONFIG, int(master.clock.wall) - 1)
    assert master.later(0.002).run() == ""


def test_a_restart_that_failed_is_made_up_for_even_by_another_agent(
    running: Master, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(unit: str) -> None:
        raise TryLater(f"{unit} is not restarted now")

    running.want(a_kubelet(pods=12))
    with monkeypatch.context() as failing:
        failing.setattr(running.units, "restart", fail)
        with pytest.raises(TryLater):
            running.run()
    running.later(10).restart_agent()

    assert running.run() == f"kubelet restarted: {CONFIG} changed"
    assert running.later(10).run() == ""


def test_a_kubelet_that_takes_its_time_to_stop_is_not_stopped_again_until_that_is_too_long(running: Master) -> None:
    running.want(a_kubelet(pods=12))
    running.run()
    running.units.running = 3600.0
    for _ in range(29):
        assert running.later(1).run() == ""
    assert running.later(1).run() == f"kubelet restarted: {CONFIG} changed"
    assert running.later(31).run() == ""


def test_a_kubelet_that_restarted_by_itself_after_a_write_has_read_the_files(running: Master) -> None:
    running.set_time(CONFIG, running.clock.wall)
    running.units.running = 0.0
    running.later(10)
    assert running.run() == ""


def test_files_are_written_while_the_kubelet_may_not_start_yet(master: Master) -> None:
    master.round_.mounted = []
    report = master.run()
    assert f"{CONFIG} written" in report
    assert "kubelet waits: it is started when a volume of main is mounted here" in report

    master.round_.mounted = [a_mounted_volume(master.round_)]
    assert master.later(10).run() == "kubelet started"
    assert master.later(10).run() == ""


def test_a_running_kubelet_is_restarted_after_the_wait_for_what_it_should_start(running: Master) -> None:
    running.restart_agent()
    running.round_.mounted = []
    running.want(a_kubelet(pods=12))
    assert "restarted" not in running.run()

    running.round_.mounted = [a_mounted_volume(running.round_)]
    assert running.later(10).run() == f"kubelet restarted: {CONFIG} changed"


def test_a_file_of_the_future_restarts_nothing_because_the_clock_was_set_back(running: Master) -> None:
    running.set_time(CONFIG, running.clock.wall + 600)
    assert running.run() == ""
    running.restart_agent()
    assert running.run() == ""


def test_a_file_that_was_removed_by_hand_is_written_again_and_the_kubelet_restarted(running: Master) -> None:
    running.file(KUBELET_ENV).unlink()
    assert running.run() == f"kubelet {KUBELET_ENV} written; kubelet restarted: {KUBELET_ENV} changed"


def test_a_file_that_cannot_be_written_is_reported_and_does_not_keep_the_kubelet_down(master: Master) -> None:
    master.file("/var/lib").mkdir(parents=True)
    master.file("/var/lib/kubelet").write_text("a file where a folder should be")
    report = master.run()
    assert "kubelet started" in report
    assert f"kubelet {CONFIG}: waits: cannot be written: File exists" in report


@pytest.mark.parametrize(("group", "pods"), [("master-a", 10), ("master-b", 20), ("masters", 10)])
def test_a_master_has_the_kubelet_of_its_group_or_else_the_first_one(master: Master, group: str, pods: int) -> None:
    both = {"master-a": a_kubelet(pods=10), "master-b": a_kubelet(pods=20)}
    master.round_.wanted = replace(master.round_.wanted, kubelets=both)
    master.round_.edges.me = a_machine(group=group)
    master.run()
    assert master.file(CONFIG).read_text() == f"maxPods: {pods}\n"


def test_without_a_kubelet_in_the_configuration_no_file_is_written(master: Master) -> None:
    master.round_.wanted = replace(master.round_.wanted, kubelets={})
    assert master.run() == "kubelet started"
    assert not master.file(KUBELET_ENV).exists()
    assert master.later(10).run() == ""


@pytest.mark.parametrize(
    ("times", "path"),
    [
        ({}, ""),
        ({"/a": 99.0, "/b": 100.05}, ""),
        ({"/b": 101.0, "/a": 99.0}, "/b"),
        ({"/b": 101.0, "/a": 102.0}, "/a"),
        ({"/a": 201.0}, ""),
    ],
)
def test_a_file_is_newer_if_it_was_written_between_the_start_and_now(times: dict[str, float], path: str) -> None:
    assert kubelet_files.newer(times, started=100.0, now=200.0) == path
