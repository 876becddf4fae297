"""What is gathered about a disk before etcd may see its data: only what was really answered, and nothing is changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from builders.agent import a_generation, a_mounted_volume, a_round, a_volume, an_identity
from clusters.scenario.edges import ShakyStore
from protokube.agent.round import MountedVolume, Round
from protokube.agent.volume import raftmarks
from protokube.agent.volume.evidence import Evidence, gather, rejoin_note
from protokube.errors import TryLater
from protokube.etcd import Status
from protokube.etcd.wal import UnreadableLog
from protokube.members.generation import Accepted, Generation
from protokube.members.older_copy import Figures, Majority, Older
from protokube.members.raftmark import LogPosition, RaftMark, encode
from protokube.members.start_values import Listed
from protokube.store import layout
from protokube.store.memory import MemoryStore

STORES = count(1)
CLUSTER = 0xC
POSITION = LogPosition(cluster_id=CLUSTER, member_id=1, term=2, commit=100, last_index=104)
BEHIND = Older(disk=Figures(epoch=3, term=2, commit=100), recorded=Figures(epoch=5, term=2, commit=100))


def a_status(member: int, *, leader: int = 2, commit: int = 300) -> Status:
    return Status(
        cluster_id=CLUSTER, member_id=member, leader=leader, revision=1, raft_term=2, raft_index=commit,
        applied_index=commit, db_size=1, version="3.5.21", learner=False,
    )  # fmt: skip


def a_member(number: int) -> Listed:
    return Listed(id=number, name=f"etcd-{number}", peer_urls=(), client_urls=())


class Etcd:
    """The other members, as far as they answer."""

    def __init__(self) -> None:
        self.answers: dict[str, Status] = {}
        self.listed: tuple[int, ...] | None = (1, 2, 3)
        self.own_lists: dict[str, tuple[int, ...]] = {}
        """What single members have, without asking a leader."""
        self.asked: list[str] = []

    def survey(self, _seconds: float, unlikely: str = "") -> Mapping[str, Status]:
        self.asked.append("survey")
        return self.answers

    def members(self) -> Sequence[Listed]:
        self.asked.append("members")
        if self.listed is None:
            raise TryLater("no leader")
        return [a_member(each) for each in self.listed]

    def listed_by(self, endpoint: str) -> Sequence[Listed]:
        self.asked.append(f"list of {endpoint}")
        return [a_member(each) for each in self.own_lists[endpoint]]


class Logs:
    def __init__(self) -> None:
        self.end: LogPosition | UnreadableLog | OSError = POSITION

    def position(self, _folder: Path) -> LogPosition:
        if not isinstance(self.end, LogPosition):
            raise self.end
        return self.end

    def flushed(self, _folder: Path) -> LogPosition:
        raise AssertionError("nothing runs on this disk: there is nothing to flush")


class Agreement:
    differs, looked = False, True

    def alarms(self) -> Mapping[str, Any]:
        return {}

    def suspected(self, _key: str) -> bool:
        return self.differs

    def compared(self, _key: str) -> bool:
        return self.looked


class Bench:
    """A disk of main/a with epoch 3, mounted a moment ago."""

    def __init__(self, root: Path) -> None:
        self.etcd, self.logs, self.agreement = Etcd(), Logs(), Agreement()
        self.store = ShakyStore(MemoryStore(f"evidence-{next(STORES)}"))
        self.round_: Round = a_round(
            root, etcd={"main": self.etcd}, logs=self.logs, store=self.store, agreement=self.agreement
        )
        self.home: MountedVolume = a_mounted_volume(self.round_)
        self.generation: Generation | None = a_generation(is_open=False)
        self.at_provider(epoch=3)

    def at_provider(self, **fields: Any) -> None:
        self.home = replace(self.home, listed=a_volume(attached_to="i-1", **fields))

    def record_mark(self, *, term: int = 2, commit: int = 100) -> None:
        mark = RaftMark(generation="g1", cluster_id=CLUSTER, member_id=1, term=term, commit=commit)
        path = layout.etcd_raft_mark("laptop", "main", "g1", CLUSTER, 1)
        self.store.create(path, f"{encode(mark)}\n".encode())

    def gather(self) -> Evidence:
        return gather(self.round_, self.home, self.generation)

    @property
    def warned(self) -> list[str]:
        return [each.text for each in self.round_.report.warnings]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_an_original_with_nobody_else_up_is_found_in_order(bench: Bench) -> None:
    bench.record_mark()

    found = bench.gather()

    assert found == Evidence(position=POSITION)
    assert bench.warned == []
    assert bench.store.writes == 1  # the test's own


def test_without_an_answer_of_the_provider_nothing_is_concluded(bench: Bench) -> None:
    bench.home = replace(bench.home, listed=None)
    with pytest.raises(TryLater, match="whether this disk is an older copy cannot be checked"):
        bench.gather()
    assert bench.etcd.asked == []


def test_a_greater_epoch_at_the_provider_makes_it_an_older_copy(bench: Bench) -> None:
    bench.at_provider(epoch=5, epoch_of="vol-a/g1")
    assert bench.gather().older == BEHIND


@pytest.mark.parametrize("written_for", ["vol-x/g1", "vol-a/g0"])
def test_an_epoch_of_another_volume_or_generation_says_nothing(bench: Bench, written_for: str) -> None:
    bench.at_provider(epoch=5, epoch_of=written_for)
    assert bench.gather().older is None


def test_a_mark_ahead_of_the_log_makes_it_an_older_copy(bench: Bench) -> None:
    bench.record_mark(commit=101)
    found = bench.gather().older
    assert found is not None
    assert (found.disk.commit, found.recorded.commit) == (100, 101)


def test_a_mark_that_is_missing_stops_nothing_and_is_reported(bench: Bench) -> None:
    assert bench.gather().older is None
    assert bench.warned == ["rollback not checked: there is no raft mark of it"]


def test_a_store_that_is_away_stops_nothing_and_is_reported(bench: Bench) -> None:
    bench.record_mark(commit=500)
    bench.store.down = True
    assert bench.gather().older is None
    assert [each.partition(": ")[0] for each in bench.warned] == ["rollback not checked"]


def test_a_log_that_cannot_be_read_is_evidence_by_itself(bench: Bench) -> None:
    bench.logs.end = UnreadableLog("no segment begins")
    assert bench.gather() == Evidence(unreadable_log="no segment begins")


def test_a_disk_that_fails_while_its_log_is_read_is_waited_for(bench: Bench) -> None:
    bench.logs.end = OSError(5, "Input/output error")
    with pytest.raises(TryLater, match="reading etcd's log"):
        bench.gather()


def test_two_others_that_follow_a_leader_are_a_majority(bench: Bench) -> None:
    bench.etcd.answers = {"etcd-b": a_status(2), "etcd-c": a_status(3)}
    found = bench.gather()
    assert found.majority == Majority(cluster_id=CLUSTER, term=2, commit=300)
    assert [each.id for each in found.members or ()] == [1, 2, 3]
    assert not found.answers_elsewhere


def test_without_a_leader_nobody_is_asked_for_the_list_of_members(bench: Bench) -> None:
    bench.etcd.answers = {"etcd-b": a_status(2, leader=0), "etcd-c": a_status(3, leader=0)}
    found = bench.gather()
    assert (found.members, found.majority) == (None, None)
    assert bench.etcd.asked == ["survey"]


def leader_died(bench: Bench, own_lists: dict[str, tuple[int, ...]]) -> None:
    """The others still name it: this disk is its own."""
    bench.etcd.answers = {name: a_status(number, leader=1) for name, number in (("etcd-b", 2), ("etcd-c", 3))}
    bench.etcd.answers = {name: bench.etcd.answers[name] for name in own_lists}
    bench.etcd.own_lists = own_lists


def test_the_lists_of_a_majority_that_have_this_member_need_no_new_leader(bench: Bench) -> None:
    leader_died(bench, {"etcd-b": (1, 2, 3), "etcd-c": (1, 2, 3)})
    found = bench.gather()
    assert [each.id for each in found.members or ()] == [1, 2, 3]
    assert found.majority is None, "who leads next is not known"
    assert "members" not in bench.etcd.asked


@pytest.mark.parametrize(
    "own_lists",
    [
        {"etcd-b": (2, 3), "etcd-c": (2, 3)},  # replaced; or they have not heard yet that it was added
        {"etcd-b": (1, 2, 3), "etcd-c": (2, 3)},
        {"etcd-b": (1, 2, 3)},  # no majority of the three
    ],
    ids=str,
)
def test_other_lists_prove_nothing_and_a_quorum_is_asked(bench: Bench, own_lists: dict[str, tuple[int, ...]]) -> None:
    leader_died(bench, own_lists)
    bench.etcd.listed = (2, 3)
    assert [each.id for each in bench.gather().members or ()] == [2, 3]


def test_without_the_list_of_members_there_is_no_majority(bench: Bench) -> None:
    bench.etcd.answers = {"etcd-b": a_status(2), "etcd-c": a_status(3)}
    bench.etcd.listed = None
    found = bench.gather()
    assert (found.members, found.majority) == (None, None)


def test_a_running_member_with_the_id_of_this_disk_is_noticed(bench: Bench) -> None:
    bench.etcd.answers = {"etcd-a": a_status(1)}
    assert bench.gather().answers_elsewhere


def test_a_difference_between_the_others_is_passed_on(bench: Bench) -> None:
    bench.agreement.differs = True
    assert not bench.gather().agreed


def test_an_older_copy_is_not_judged_before_the_others_were_compared(bench: Bench) -> None:
    bench.agreement.looked = False
    assert bench.gather().older is None, "what is no older copy does not wait for it"
    bench.at_provider(epoch=5)
    with pytest.raises(TryLater, match="the other members are compared before it is judged"):
        bench.gather()
    bench.agreement.looked = True
    assert bench.gather().older is not None


def test_an_acceptance_counts_for_exactly_these_figures_on_this_volume(bench: Bench) -> None:
    bench.at_provider(epoch=5)
    assert bench.generation is not None
    closed, right = bench.generation, Accepted(epoch=3, term=2, commit=100)
    for volume, figures, counts in (
        ("vol-a", right, True),
        ("vol-b", right, False),
        ("vol-a", replace(right, epoch=2), False),
        ("vol-a", replace(right, term=1), False),
        ("vol-a", replace(right, commit=99), False),
    ):
        bench.generation = closed.with_accepted(volume, figures)
        assert bench.gather().accepted == counts


def test_an_acceptance_of_a_disk_that_is_not_older_counts_for_nothing(bench: Bench) -> None:
    assert bench.generation is not None
    bench.generation = bench.generation.with_accepted("vol-a", Accepted(epoch=3, term=2, commit=100))
    assert not bench.gather().accepted


def test_a_copy_that_was_set_aside_before_counts_unless_it_is_this_very_one(bench: Bench) -> None:
    """An agent may have died in the middle of setting this one aside."""
    bench.at_provider(epoch=5)
    assert not bench.gather().rejoined
    assert bench.generation is not None
    closed = bench.generation
    bench.generation = closed.with_rejoined("a", rejoin_note(bench.home, BEHIND))
    assert not bench.gather().rejoined
    bench.generation = closed.with_rejoined("a", "vol-a: another one")
    assert bench.gather().rejoined
    bench.generation = closed.with_rejoined("b", "vol-b: another one")
    assert not bench.gather().rejoined


def test_without_a_record_nothing_was_accepted(bench: Bench) -> None:
    bench.at_provider(epoch=5)
    bench.generation = None
    found = bench.gather()
    assert (found.accepted, found.older) == (False, BEHIND)


def test_the_log_is_looked_for_where_this_member_keeps_it(bench: Bench) -> None:
    assert raftmarks.wal_folder(bench.home) == bench.home.point / "var/etcd/data/member/wal"
    assert bench.home.identity == an_identity()
