"""The kubelet is started when this master's own work is ready, not later than after a minute, and with each renewal."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.agent import Alone, a_machine, a_mounted_volume, a_round
from builders.config import completed
from clusters.scenario.edges import FakeClock, HostClock, MemoryUnits
from protokube.agent.controlplane import kubelet, nodekeys
from protokube.agent.controlplane.restarts import NOTICED
from protokube.agent.report import Report
from protokube.agent.round import Round
from protokube.launch.derive import from_config
from protokube.manifests.etcd import PKI
from protokube.members.start_values import Refuse, Start
from protokube.pki.renewal import Place, due_left

DAY = 86400.0
ALL = {"i-1": "10.0.0.1", "i-2": "10.0.0.2", "i-3": "10.0.0.3"}


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def round_(tmp_path: Path, clock: FakeClock) -> Round:
    return a_round(tmp_path, clock=HostClock(clock))


def started(round_: Round) -> bool:
    round_.report = Report()
    kubelet.sync(round_)
    units = round_.edges.units
    assert isinstance(units, MemoryUnits)
    return "kubelet.service" in units.started


def hold(round_: Round, *, linked: bool) -> None:
    home = a_mounted_volume(round_)
    round_.mounted = [home]
    round_.decisions = {home.volume: Start(fresh=False)}
    link = round_.edges.inside("/etc/kubernetes/manifests/etcd.manifest")
    link.parent.mkdir(parents=True)
    if linked:
        link.symlink_to("/mnt/master-vol-a/k8s.io/manifests/etcd.manifest")


def test_with_its_manifest_linked_it_is_started_at_once(round_: Round) -> None:
    hold(round_, linked=True)
    assert started(round_)
    assert round_.report.sentence() == "kubelet started"


def test_a_kubelet_that_runs_is_not_news(round_: Round) -> None:
    hold(round_, linked=True)
    started(round_)
    started(round_)
    assert round_.report.sentence() == ""


def test_it_waits_for_a_volume_and_says_so(round_: Round) -> None:
    assert not started(round_)
    assert round_.report.sentence() == (
        "kubelet waits: it is started when a volume of main is mounted here, or after 60 s"
    )


def test_it_waits_for_the_manifest_of_what_is_mounted(round_: Round) -> None:
    hold(round_, linked=False)
    assert not started(round_)
    assert "it is started when the manifest of main/a is linked" in round_.report.sentence()


def test_after_a_minute_it_does_not_wait_any_longer(round_: Round, clock: FakeClock) -> None:
    assert not started(round_)
    clock.advance(59)
    assert not started(round_)
    assert "(for 59 s)" in round_.report.sentence(round_.edges.clock.now())
    clock.advance(2)
    assert started(round_)
    assert round_.report.sentence() == "kubelet started before a volume of main is mounted here"


def test_a_volume_on_which_nothing_may_be_started_is_not_waited_for(round_: Round) -> None:
    hold(round_, linked=False)
    round_.decisions = {"vol-a": Refuse("a person decides")}
    assert started(round_)


class Renewed:
    """A kubelet that has been running for an hour, and whose certificates were renewed later."""

    def __init__(self, root: Path, lifetime: float = 365 * DAY, serving: Sequence[str] = tuple(ALL)) -> None:
        self.clock = FakeClock()
        presence = Alone(ALL, serving=serving)
        self.round_ = a_round(root, clock=HostClock(self.clock), presence=presence)
        self.round_.wanted = replace(
            self.round_.wanted, kubelet_kubeconfig="/var/lib/kubelet/kubeconfig", certificate_lifetime=lifetime
        )
        units = self.round_.edges.units
        assert isinstance(units, MemoryUnits)
        self.units = units
        units.started.add(kubelet.UNIT)
        units.running = 3600.0
        hold(self.round_, linked=True)
        for name in (nodekeys.SERVER, nodekeys.CLIENT):
            self.write(name, ago=7200)

    def write(self, name: str, ago: float) -> None:
        file = self.round_.edges.inside(f"{PKI}/{name}.crt")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
        at = self.round_.edges.clock.now() - ago
        os.utime(file, (at, at))

    def rounds(self, seconds: float, step: float = 10.0) -> list[float]:
        """When it was started anew, by the clock."""
        seen = []
        for _ in range(int(seconds / step)):
            before = len(self.units.restarted)
            self.round_.report = Report()
            kubelet.sync(self.round_)
            if len(self.units.restarted) > before:
                assert self.round_.report.sentence() == "kubelet restarted: its certificate was renewed"
                seen.append(self.round_.edges.clock.now())
            self.clock.advance(step)
            self.units.running += step
        return seen


@pytest.mark.parametrize("later", [0, 500, 1000, 1500])
def test_it_is_started_anew_once_after_its_serving_certificate_was_renewed_and_in_a_slot_of_its_master(
    tmp_path: Path, later: float
) -> None:
    master = Renewed(tmp_path)
    assert master.rounds(3600 + later) == []

    master.write(nodekeys.SERVER, ago=0)

    (at,) = master.rounds(2 * 3600)
    assert at % 1800 < 300


@pytest.mark.parametrize(("lifetime", "times"), [(365 * DAY, 0), (NOTICED - 1, 1)])
def test_one_that_reads_it_again_by_itself_is_started_anew_for_what_it_shows_as_a_client_at_most(
    tmp_path: Path, lifetime: float, times: int
) -> None:
    master = Renewed(tmp_path, lifetime)
    master.round_.wanted = replace(master.round_.wanted, kubelet_reloads=True)
    master.write(nodekeys.SERVER, ago=0)
    assert master.rounds(3600) == []
    master.write(nodekeys.CLIENT, ago=0)
    assert len(master.rounds(3600)) == times


@pytest.mark.parametrize(
    ("version", "gate", "reloads"),
    [("1.30.14", None, False), ("1.35.7", None, False), ("1.36.0", None, True), ("1.36.4", "false", False)],
)
def test_whether_it_does_depends_on_its_version_and_on_a_gate(version: str, gate: str | None, reloads: bool) -> None:
    own = {"kubelet": {"featureGates": {"ReloadKubeletServerCertificateFile": gate}}} if gate else {}
    config = completed(cloud="local", masters=1, name="laptop", kubernetesVersion=version, **own)
    assert from_config(config).kubelet_reloads is reloads


def test_a_master_that_is_alone_waits_for_no_slot(tmp_path: Path) -> None:
    master = Renewed(tmp_path)
    (etcd,) = master.round_.wanted.etcd
    master.round_.wanted = replace(master.round_.wanted, etcd=(replace(etcd, members=etcd.members[:1]),))
    for _ in range(30):
        master.clock.advance(60)
        master.units.running += 60
        master.write(nodekeys.SERVER, ago=0)
        assert len(master.rounds(10)) == 1


def test_while_another_api_server_is_away_or_nobody_can_tell_it_goes_on_as_it_is(tmp_path: Path) -> None:
    master = Renewed(tmp_path, serving=["i-1", "i-2"])
    master.write(nodekeys.SERVER, ago=0)
    assert master.rounds(2 * 3600) == []
    master.round_.edges.presence = Alone(None)
    assert master.rounds(2 * 3600) == []
    master.round_.edges.presence = Alone(ALL, serving=list(ALL))
    assert len(master.rounds(2 * 3600)) == 1


@pytest.mark.parametrize(("lifetime", "times"), [(NOTICED, 0), (NOTICED - 1, 1)])
def test_what_it_shows_as_a_client_it_reads_by_itself_unless_that_lives_too_short(
    tmp_path: Path, lifetime: float, times: int
) -> None:
    master = Renewed(tmp_path, lifetime)
    master.write(nodekeys.CLIENT, ago=0)
    assert len(master.rounds(2 * 3600)) == times


def test_a_clock_that_was_set_back_starts_nothing_anew_until_it_is_right_again(tmp_path: Path) -> None:
    master = Renewed(tmp_path)
    master.write(nodekeys.SERVER, ago=-2 * DAY)
    assert master.rounds(3600) == []


def test_without_a_kubelet_that_has_keys_of_ours_nothing_is_asked(tmp_path: Path) -> None:
    master = Renewed(tmp_path)
    master.round_.wanted = replace(master.round_.wanted, kubelet_kubeconfig="")
    master.write(nodekeys.SERVER, ago=0)
    assert master.rounds(3600) == []


@given(st.floats(60.0, 400 * DAY), st.integers(1, 9))
def test_everybody_has_a_whole_slot_before_a_certificate_ends(length: float, count: int) -> None:
    slot = kubelet.slot_of(length, Place(0, count))
    assert 0 < slot * (count + 1) <= length * due_left(length) * 1.000001


@pytest.mark.parametrize(("group", "held", "index"), [("master-b", "", 1), ("other", "", 0), ("master-b", "c", 2)])
def test_masters_take_turns_by_the_member_they_hold_or_are_there_to_hold(
    tmp_path: Path, group: str, held: str, index: int
) -> None:
    round_ = a_round(tmp_path, wanted=from_config(completed(cloud="local", masters=3, name="laptop")))
    round_.edges.me = a_machine(group=group)
    round_.mounted = [a_mounted_volume(round_, member=held)] if held else []
    assert kubelet.place_of(round_) == Place(index, 3)
