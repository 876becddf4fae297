"""Members that hold different data: told to a person, and their masters leave the names of the API."""

from __future__ import annotations

from pathlib import Path

import pytest

from builders.agent import a_round, a_volume
from protokube.agent.etcd import agreement
from protokube.agent.etcd.agreement import EVERY, RECENT, SUSPICIOUS, AgreementWatch, out_of_service
from protokube.errors import TryLater
from protokube.etcd import Etcd, Hash, Status
from protokube.members.start_values import Listed

NAMES = ["etcd-a", "etcd-b", "etcd-c"]


class Members:
    """Three members that answer what the test says; whoever has no hash does not answer."""

    def __init__(self, **hashes: int) -> None:
        self.hashes = {f"etcd-{short}": value for short, value in hashes.items()}
        self.progress: dict[str, tuple[int, int]] = {}
        """By member, revision and entry of the log; all are level if nothing else is said."""

    def status(self, endpoint: str) -> Status:
        if endpoint not in self.hashes:
            raise TryLater(f"{endpoint} does not answer")
        revision, applied = self.progress.get(endpoint, (10, 20))
        return Status(
            cluster_id=1, member_id=NAMES.index(endpoint), leader=0, revision=revision, raft_term=1, raft_index=applied,
            applied_index=applied, db_size=1, version="3.5", learner=False,
        )  # fmt: skip

    def listed_by(self, endpoint: str) -> list[Listed]:
        return [Listed(id=n, name=name, peer_urls=(name,), client_urls=(name,)) for n, name in enumerate(NAMES)]

    def hash(self, endpoint: str, revision: int) -> Hash:
        return Hash(cluster_id=1, member_id=0, hash=self.hashes[endpoint], revision=revision, compacted=1)


def watching(members: Members, woken: list[int] | None = None) -> AgreementWatch:
    etcd: Etcd = members  # type: ignore[assignment]
    return AgreementWatch({"main": etcd}, {"main": NAMES}, lambda: (woken if woken is not None else []).append(1))


def test_members_that_agree_raise_no_alarm() -> None:
    found = watching(Members(a=7, b=7, c=7))
    assert [found.look() for _ in range(5)] == [False] * 5
    assert found.alarms() == {}


def test_a_difference_counts_only_the_third_time_running_and_wakes_the_rounds_once() -> None:
    woken: list[int] = []
    found = watching(Members(a=7, b=7, c=8), woken)
    assert found.look()
    assert found.look()
    assert found.alarms() == {}
    for _ in range(3):
        found.look()
    assert found.alarms()["main"].out_of_service == ("etcd-c",)
    assert woken == [1]


def test_once_they_agree_again_the_alarm_ends() -> None:
    members = Members(a=7, b=7, c=8)
    found = watching(members)
    for _ in range(3):
        found.look()
    members.hashes["etcd-c"] = 7
    found.look()
    assert found.alarms() == {}


@pytest.mark.parametrize(
    ("members", "out"),
    [
        (Members(a=7, b=7, c=8), {"i-c"}),
        (Members(a=7, b=8), {"i-a", "i-b", "i-c"}),  # no majority: nobody can say who is right
    ],
)
def test_a_person_is_told_and_the_wrong_side_leaves_the_names_of_the_api(members: Members, out: set[str]) -> None:
    found = watching(members)
    for _ in range(3):
        found.look()
    round_ = a_round(Path("/nowhere"), agreement=found)
    round_.volumes = [a_volume(f"vol-{short}", member=short, attached_to=f"i-{short}") for short in "abc"]
    agreement.sync(round_)
    assert "agreement main: NEEDS A PERSON: its members do not hold the same data" in round_.report.sentence()
    assert out_of_service(round_) == out


def test_a_member_that_came_further_than_the_majority_takes_all_masters_out_of_the_names() -> None:
    members = Members(a=7, b=7, c=8)
    members.progress["etcd-c"] = (15, 30)
    found = watching(members)
    for _ in range(3):
        found.look()
    round_ = a_round(Path("/nowhere"), agreement=found)
    round_.volumes = [a_volume(f"vol-{short}", member=short, attached_to=f"i-{short}") for short in "abc"]
    agreement.sync(round_)

    assert out_of_service(round_) == {"i-a", "i-b", "i-c"}
    assert "etcd-c came further than etcd-a, etcd-b" in round_.report.sentence()
    assert "keep the disks of all" in round_.report.person[0].hint


def test_without_an_alarm_nothing_is_said(tmp_path: Path) -> None:
    round_ = a_round(tmp_path)
    agreement.sync(round_)
    assert round_.report.sentence() == ""
    assert out_of_service(round_) == set()


def test_a_comparison_says_something_for_a_while_and_before_the_first_there_is_none() -> None:
    members, now = Members(a=7, b=7, c=7), 100.0
    etcd: Etcd = members  # type: ignore[assignment]
    found = AgreementWatch({"main": etcd}, {"main": NAMES}, clock=lambda: now)
    assert not found.compared("main")
    assert found.work() == EVERY
    assert found.compared("main")
    now += RECENT
    assert not found.compared("main")


def test_members_that_differ_are_compared_again_soon() -> None:
    assert watching(Members(a=7, b=7, c=8)).work() == SUSPICIOUS
