"""Whether all is well here with a revision, and whether the others can do without this master for a moment."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from builders.agent import Alone, a_mounted_volume, a_round
from builders.revisions import a_master
from clusters.scenario.edges import MemoryUnits
from clusters.scenario.host import wanted_of
from protokube.agent.delivery import health
from protokube.agent.delivery.health import ENDED, LAG, STUCK, Trouble, lagging, troubles
from protokube.agent.report import Report
from protokube.agent.round import Round
from protokube.errors import ProtokubeError, Refused, TryLater
from protokube.etcd import Status
from protokube.host.running import Command, Runs
from protokube.launch.files import kubelet_files
from protokube.members.start_values import Listed

ALL = {"i-1": "10.0.0.1", "i-2": "10.0.0.2", "i-3": "10.0.0.3"}
ETCD, API = ("etcd main",), ("kube-apiserver",)


def a_status(**fields: Any) -> Status:
    given = Status(
        cluster_id=1, member_id=1, leader=1, revision=9, raft_term=2, raft_index=5000, applied_index=5000, db_size=1,
        version="3.6.1", learner=False,
    )  # fmt: skip
    return replace(given, **fields)


def a_member(short: str, **fields: Any) -> Listed:
    found = wanted_of().etcd[0].member(short)
    assert found is not None
    given = Listed(id=ord(short), name=found.name, peer_urls=(found.peer_url,), client_urls=(found.client_url,))
    return replace(given, **fields)


@dataclass
class Etcd:
    """Three members that are well, but for what the test changes."""

    listed: Sequence[Listed] = tuple(a_member(short) for short in "abc")
    statuses: dict[str, Status] = field(default_factory=lambda: {f"etcd-{short}": a_status() for short in "abc"})
    error: ProtokubeError | None = None

    def members(self) -> Sequence[Listed]:
        if self.error:
            raise self.error
        return self.listed

    def survey(self, _seconds: float, unlikely: str = "") -> Mapping[str, Status]:
        return self.statuses


@dataclass
class Programs:
    """What runs, by the name of the program; all of it as it should, but for what the test changes."""

    states: dict[str, Runs] = field(default_factory=dict)
    asked: list[Command] = field(default_factory=list)

    def runs(self, command: Command) -> Runs:
        self.asked.append(command)
        return self.states.get(command.manifest.name.removesuffix(".manifest"), Runs.CURRENT)


@pytest.fixture
def etcd() -> Etcd:
    return Etcd()


@pytest.fixture
def programs() -> Programs:
    return Programs()


@pytest.fixture
def round_(tmp_path: Path, etcd: Etcd, programs: Programs) -> Round:
    """A master that holds main/a, and runs Kubernetes with a kubelet."""
    wanted = replace(a_master(), kubelet_kubeconfig="/var/lib/kubelet/kubeconfig")
    round_ = a_round(
        tmp_path, wanted=wanted, etcd={"main": etcd}, processes=programs, probe=lambda _check: "",
        presence=Alone(ALL, serving=list(ALL)), units=MemoryUnits(started={"kubelet.service"}, running=100.0),
    )  # fmt: skip
    round_.mounted = [a_mounted_volume(round_)]
    return round_


def found(round_: Round) -> list[str]:
    return [str(each) for each in troubles(round_)]


# The others.


def test_etcd_restarts_here_once_all_others_were_well_twice_in_a_row(round_: Round) -> None:
    assert health.others(round_, ETCD) == "the members of etcd main are looked at twice"
    assert round_.next_within <= health.SECONDS
    assert health.others(round_, ETCD) == ""


ILL: list[tuple[dict[str, Any], str]] = [
    ({"leader": 0}, "etcd-b knows no leader"),
    ({"learner": True}, "etcd-b is a learner"),
    ({"errors": ("NOSPACE", "CORRUPT")}, "etcd-b reports NOSPACE; CORRUPT"),
    ({"applied_index": 5000 - LAG - 1}, f"etcd-b is {LAG + 1} entries behind"),
]


@pytest.mark.parametrize(("changes", "why"), ILL)
def test_etcd_does_not_restart_here_while_another_voter_is_not_well(
    round_: Round, etcd: Etcd, changes: dict[str, Any], why: str
) -> None:
    etcd.statuses["etcd-b"] = a_status(**changes)

    assert [health.others(round_, ETCD) for _ in range(3)] == [why] * 3


@pytest.mark.parametrize("interrupted", ["ill", "no quorum"])
def test_twice_is_counted_anew_after_one_look_that_was_not_good(round_: Round, etcd: Etcd, interrupted: str) -> None:
    health.others(round_, ETCD)
    if interrupted == "ill":
        etcd.statuses["etcd-b"] = a_status(leader=0)
    else:
        etcd.error = TryLater("no answer")
    assert health.others(round_, ETCD) != ""
    etcd.statuses["etcd-b"], etcd.error = a_status(), None

    assert health.others(round_, ETCD) == "the members of etcd main are looked at twice"
    assert health.others(round_, ETCD) == ""


@pytest.mark.parametrize("error", [TryLater("no leader"), Refused("not for you")])
def test_without_a_quorum_nothing_of_etcd_restarts(round_: Round, etcd: Etcd, error: ProtokubeError) -> None:
    etcd.error = error

    assert health.others(round_, ETCD) == f"etcd main has no quorum: {error.message}"


def test_our_own_member_need_not_be_well(round_: Round, etcd: Etcd) -> None:
    del etcd.statuses["etcd-a"]
    health.others(round_, ETCD)

    assert health.others(round_, ETCD) == ""


def test_a_member_that_was_added_and_never_started_counts(round_: Round, etcd: Etcd) -> None:
    etcd.listed = (*etcd.listed, a_member("c", id=0xABC, name="", client_urls=(), learner=True))

    assert health.others(round_, ETCD) == "member abc does not answer"


def test_a_single_member_restarts_at_any_time(tmp_path: Path) -> None:
    main = wanted_of().etcd[0]
    alone = replace(wanted_of(), etcd=(replace(main, members=main.members[:1]),))
    round_ = a_round(tmp_path, wanted=alone, etcd={"main": Etcd(error=TryLater("it is down"))})

    assert health.others(round_, ETCD) == ""


def test_what_touches_neither_etcd_nor_the_api_server_asks_nobody(round_: Round, etcd: Etcd) -> None:
    etcd.error, round_.edges.presence = TryLater("no answer"), Alone(None)

    assert health.others(round_, ("kube-scheduler", "kubelet")) == ""


@pytest.mark.parametrize(
    ("live", "serving", "may"),
    [
        (ALL, list(ALL), True),
        (ALL, ["i-1", "i-2"], False),
        (ALL, ["i-2"], True),  # ours does not serve: it may always restart
        (ALL, [], True),
        (None, [], False),
    ],
)
def test_an_api_server_that_serves_restarts_only_while_all_others_serve(
    round_: Round, live: dict[str, str] | None, serving: list[str], may: bool
) -> None:
    round_.edges.presence = Alone(live, serving=serving)

    assert health.others(round_, API) == ("" if may else "the API servers of the other masters are not all ready")


def test_the_only_master_restarts_its_api_server(round_: Round, tmp_path: Path) -> None:
    main = wanted_of().etcd[0]
    alone = replace(a_master(), etcd=(replace(main, members=main.members[:1]),))

    assert health.others(a_round(tmp_path, wanted=alone, presence=Alone(None)), API) == ""


# One member.


def test_a_member_that_lags_a_little_is_well() -> None:
    newest, behind = a_status(raft_index=9000, applied_index=9000), a_status(applied_index=9000 - LAG)

    assert lagging(a_member("b"), {"etcd-a": newest, "etcd-b": behind}) == ""
    assert lagging(a_member("b"), {"etcd-a": newest, "etcd-b": a_status(applied_index=9000 - LAG - 1)}) != ""
    assert lagging(a_member("b", learner=True), {"etcd-b": a_status()}) == "etcd-b is a learner"
    assert lagging(a_member("b"), {}) == "etcd-b does not answer"


# This master.


def test_all_is_well(round_: Round, programs: Programs) -> None:
    assert found(round_) == []
    assert [each.manifest.name for each in programs.asked] == [
        round_.wanted.etcd[0].pod.file_name, *(each.file_name for each in round_.wanted.components),
    ]  # fmt: skip


@pytest.mark.parametrize(("runs", "ended"), [(Runs.OLD, False), (Runs.NOT, True)])
@pytest.mark.parametrize("name", ["etcd", "kube-apiserver", "kube-scheduler"])
def test_what_does_not_run_as_its_manifest_says_is_trouble(
    round_: Round, programs: Programs, name: str, runs: Runs, ended: bool
) -> None:
    programs.states[name] = runs
    first = next(troubles(round_))

    assert (first.what, first.why, first.ended) == ("main/a" if name == "etcd" else name, runs.value, ended)
    assert first.pod is not None


def test_an_api_server_is_looked_for_with_the_address_of_its_machine(round_: Round, programs: Programs) -> None:
    found(round_)
    (api,) = [each for each in programs.asked if each.program == "kube-apiserver"]

    assert "--advertise-address=10.0.0.1" in api.arguments


@pytest.mark.parametrize(("changes", "why"), ILL)
def test_our_member_must_be_as_well_as_others_must_be(
    round_: Round, etcd: Etcd, changes: dict[str, Any], why: str
) -> None:
    etcd.statuses["etcd-a"] = a_status(**changes)

    assert found(round_) == [f"main/a: {why.replace('etcd-b', 'etcd-a')}"]


def test_a_member_without_a_quorum_or_outside_the_list_is_trouble(round_: Round, etcd: Etcd) -> None:
    etcd.listed = etcd.listed[1:]
    assert found(round_) == ["main/a: it is not in etcd's member list"]
    etcd.error = TryLater("no answer")
    assert found(round_) == ["main/a: no answer"]


def test_a_component_that_fails_its_probe_is_trouble(round_: Round) -> None:
    probed: list[Mapping[str, Any]] = []

    def refuse(check: Mapping[str, Any]) -> str:
        probed.append(check)
        return "connection refused"

    round_.edges.probe = refuse

    assert found(round_) == [
        f"{each.name}: connection refused"
        for each in round_.wanted.components
        if each.probe and each.name != "kube-apiserver"
    ]
    assert probed == [each.probe for each in round_.wanted.components if each.probe and each.name != "kube-apiserver"]


@pytest.mark.parametrize("presence", [Alone(ALL, serving=["i-2"]), Alone(None)])
def test_an_api_server_that_is_not_ready_or_of_which_nothing_is_known_is_trouble(
    round_: Round, presence: Alone
) -> None:
    round_.edges.presence = presence

    assert found(round_) == ["kube-apiserver: it is not ready"]


@pytest.mark.parametrize(
    ("units", "why"),
    [
        (MemoryUnits(), "it does not run"),
        (MemoryUnits(started={"kubelet.service"}, running=2.0), "it has run for less than 5 s"),
    ],
)
def test_a_kubelet_must_run_and_keep_running(round_: Round, units: MemoryUnits, why: str) -> None:
    round_.edges.units = units

    assert found(round_) == [f"kubelet: {why}"]
    assert next(troubles(round_)).ended


def test_a_kubelet_that_has_not_read_its_files_is_trouble(round_: Round, tmp_path: Path) -> None:
    for path, text in kubelet_files(next(iter(round_.wanted.kubelets.values()))).items():
        place = tmp_path / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
        os.utime(place, (round_.edges.clock.now() - 10,) * 2)
    assert found(round_) == ["kubelet: it has not restarted yet"]
    round_.edges.units = MemoryUnits(started={"kubelet.service"}, running=9.0)

    assert found(round_) == []


def test_what_a_step_waits_for_is_trouble_if_it_is_part_of_the_revision(round_: Round) -> None:
    round_.report = Report()
    round_.report.waiting("components", "the store has no secret", "kube-apiserver")
    round_.report.waiting("etcd", "it waits for its name", "main/a")
    round_.report.waiting("names", "the zone does not answer")

    assert found(round_) == ["kube-apiserver: the store has no secret", "main/a: it waits for its name"]


def test_a_step_that_did_not_come_to_its_end_is_trouble(round_: Round) -> None:
    """The manifest of a component is then as it was, and so is the component."""
    round_.report = Report()
    round_.report.broken("components", "KeyError: 'x'")
    round_.report.needs_a_person("components", "no certificate can be issued")
    round_.report.needs_a_person("components", "cannot be written: it is a directory", "/etc/own/file")
    round_.report.broken("agreement", "KeyError: 'y'")

    assert found(round_) == ["components: KeyError: 'x'", "components: no certificate can be issued"]


def test_without_kubernetes_only_etcd_is_looked_at(tmp_path: Path, etcd: Etcd, programs: Programs) -> None:
    round_ = a_round(tmp_path, etcd={"main": etcd}, processes=programs)
    round_.mounted = [a_mounted_volume(round_)]

    assert found(round_) == []
    assert [each.program for each in programs.asked] == ["etcd"]


# Giving up.


def test_what_runs_may_take_longer_than_what_does_not(round_: Round) -> None:
    slow, gone = Trouble("etcd", "it is a learner"), Trouble("etcd", "it does not run", ended=True)

    assert health.broken(round_, slow, STUCK - 1, 0.0) == ""
    assert health.broken(round_, slow, STUCK, 0.0) == f"etcd: it is a learner after {STUCK:.0f} s"
    assert health.broken(round_, gone, ENDED, ENDED - 1) == ""
    assert health.broken(round_, gone, ENDED, ENDED) == f"etcd: it does not run after {ENDED:.0f} s"


def test_the_end_of_a_long_shutdown_is_not_taken_for_a_failed_start(round_: Round) -> None:
    """The old process took a minute and a half to end; for a second nothing runs."""
    assert health.broken(round_, Trouble("kube-apiserver", "it does not run", ended=True), 90.0, 1.0) == ""


def logged(root: Path, pod: str, container: str, *lines: str) -> None:
    folder = root / f"var/log/pods/kube-system_{pod}"
    folder.mkdir(parents=True)
    (folder / f"{container}.log").write_text("".join(f"{line}\n" for line in lines))


def test_what_it_logged_last_is_shown(round_: Round, tmp_path: Path) -> None:
    stamp = "2026-11-18T15:14:53.1Z stderr F "
    logged(tmp_path, "kube-scheduler", "kube-scheduler", "one", f"{stamp}two", "", f"{stamp}{'x' * 999}", "four")
    text = health.broken(
        round_, Trouble("kube-scheduler", "it does not run", ("kube-scheduler",) * 2, ended=True), 60.0, 60.0
    )

    assert text == f"kube-scheduler: it does not run after 60 s; it logged: two | {'x' * 200} | four"


def test_the_log_of_etcd_is_found_by_its_pod(round_: Round, tmp_path: Path, programs: Programs) -> None:
    logged(tmp_path, round_.wanted.etcd[0].pod.name, "etcd-container", "invalid settings")
    programs.states["etcd"] = Runs.NOT

    assert health.broken(round_, next(troubles(round_)), 60.0, 60.0).endswith("it logged: invalid settings")


def test_without_a_log_or_a_pod_the_reason_is_all_there_is(round_: Round) -> None:
    for pod in (None, ("kube-scheduler", "kube-scheduler")):
        assert (
            health.broken(round_, Trouble("x", "it does not run", pod), STUCK, 0.0) == "x: it does not run after 180 s"
        )
