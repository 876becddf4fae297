"""A member that was removed by hand: when the others are asked, what is counted, how its data is set aside."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from builders.agent import a_mounted_volume, a_round, a_store
from clusters.scenario.edges import FakeClock, HostClock, ShakyStore
from clusters.scenario.host import wanted_of
from protokube.agent import links
from protokube.agent.etcd.spacewatch import SpaceWatch
from protokube.agent.maintenance import Own
from protokube.agent.report import Report
from protokube.agent.round import Round
from protokube.agent.volume import removals
from protokube.agent.volume.evidence import Evidence, gather
from protokube.errors import ProtokubeError, Refused, TryLater
from protokube.etcd import Status
from protokube.host import Mount
from protokube.members.generation import Generation, decode
from protokube.members.older_copy import Majority
from protokube.members.raftmark import LogPosition
from protokube.members.removal import DAY, Lacking, Readded
from protokube.members.start_values import Data, Kind, Listed
from protokube.store import layout

STORES = count(1)
OWN, ANOTHER = 0xA, 0xD
POSITION = LogPosition(cluster_id=0xC, member_id=OWN, term=2, commit=100, last_index=104)
OTHERS = tuple(Listed(id=each, name=f"etcd-{each}", peer_urls=(f"https://{each}",), client_urls=()) for each in (2, 3))
LACKS = Evidence(position=POSITION, members=OTHERS, majority=Majority(cluster_id=0xC, term=2, commit=300))
SILENT = TryLater("etcd-a did not answer")
RECORD = layout.etcd_generation("laptop", "main")


def a_status(member: int, *, leader: int = 2) -> Status:
    return Status(
        cluster_id=0xC, member_id=member, leader=leader, revision=1, raft_term=2, raft_index=300, applied_index=300,
        db_size=1, version="3.5.21", learner=False,
    )  # fmt: skip


class Etcd:
    """The member on this disk, and two others that lead and list each other."""

    def __init__(self) -> None:
        self.own: Status | ProtokubeError = a_status(OWN)
        self.surveys = 0

    def status(self, endpoint: str) -> Status:
        assert endpoint == "etcd-a"
        if isinstance(self.own, ProtokubeError):
            raise self.own
        return self.own

    def survey(self, _seconds: float, unlikely: str = "") -> Mapping[str, Status]:
        self.surveys += 1
        own = {"etcd-a": self.own} if isinstance(self.own, Status) else {}
        return {**own, "etcd-b": a_status(2), "etcd-c": a_status(3)}

    def members(self) -> Sequence[Listed]:
        return OTHERS


class Disks:
    users: Sequence[str] = ()

    def used_by(self, number: tuple[int, int]) -> Sequence[str]:
        assert number == (7, 1)
        return self.users


class Logs:
    error: OSError | None = None

    def position(self, _folder: Path) -> LogPosition:
        if self.error:
            raise self.error
        return POSITION


class Bench:
    """The disk of main/a with its data; round after round."""

    def __init__(self, root: Path) -> None:
        self.clock, self.etcd, self.disks, self.logs = FakeClock(), Etcd(), Disks(), Logs()
        self.store = ShakyStore(a_store(f"removals-{next(STORES)}"))
        self.host_clock = HostClock(self.clock)
        self.round_ = a_round(
            root, clock=self.host_clock, etcd={"main": self.etcd}, disks=self.disks, logs=self.logs, store=self.store
        )
        mount = Mount(number=(7, 1), point=root / "mnt/master-vol-a", type="ext4", options=frozenset())
        self.home = a_mounted_volume(self.round_, mount=mount)
        self.data = self.home.point / "var/etcd/data"
        self.put_data()

    def put_data(self) -> None:
        (self.data / "member/wal").mkdir(parents=True)
        (self.data / "member/wal/0.wal").write_text("log\n")

    def next_round(self) -> Round:
        self.round_.forget()
        self.round_ = Round(edges=self.round_.edges, wanted=self.round_.wanted, report=Report())
        return self.round_

    def of_served(self) -> Evidence | None:
        watch = self.round_.edges.space
        if isinstance(watch, SpaceWatch):
            watch.tick()
        return removals.of_served(self.next_round(), self.home, self.record)

    def count(self, found: Evidence = LACKS, data: Data = Data.PRESENT) -> tuple[Lacking | None, str]:
        return removals.count(self.next_round(), self.home, data, found, self.record)

    def count_for(self, seconds: float) -> None:
        """A look now, and one every ten seconds; the clock then shows the last of them."""
        self.count()
        for _ in range(int(seconds / 10)):
            self.clock.advance(10)
            self.count()

    def set_aside(self, removed: int = OWN) -> str:
        decision = removals.set_aside(self.next_round(), self.home, removed)
        assert decision.kind is Kind.REMOVED
        return decision.why

    @property
    def record(self) -> Generation:
        found = decode(self.store.inner.read(RECORD).data)
        assert found is not None
        return found

    @property
    def lacking(self) -> Lacking | None:
        return self.record.lacking.get("a")

    @property
    def folders(self) -> list[str]:
        return sorted(each.name for each in self.data.parent.iterdir())


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


@pytest.fixture(params=[False, True], ids=["asked", "watched"])
def serving(bench: Bench, request: pytest.FixtureRequest) -> Bench:
    """Its etcd is asked by the round itself, or by the watch for alarms."""
    if request.param:
        etcd: Any = bench.etcd
        watch = bench.round_.edges.space = SpaceWatch({"main": etcd}, bench.round_.edges.clock)
        watch.hold({"main": Own("etcd-a", bench.home.point)})
    return bench


def test_nobody_is_asked_about_a_member_that_follows_a_leader(serving: Bench) -> None:
    for _ in range(12):
        assert serving.of_served() is None
        serving.clock.advance(10)
    assert serving.etcd.surveys == 0


@pytest.mark.parametrize(
    "own", [SILENT, Refused("no certificate"), a_status(OWN, leader=0)], ids=["silent", "refused", "no leader"]
)
def test_the_others_are_asked_after_ten_seconds_without_an_answer_and_every_ten_seconds_from_then_on(
    serving: Bench, own: Status | ProtokubeError
) -> None:
    serving.etcd.own = own
    asked = []
    for second in range(35):
        found = serving.of_served()
        if found is not None:
            assert (found.position, found.members, found.majority) == (POSITION, OTHERS, LACKS.majority)
            asked.append(second)
        serving.clock.advance(1)
    assert asked == [10, 20, 30]
    assert serving.etcd.surveys == 3


def test_an_answer_in_between_begins_the_ten_seconds_anew(bench: Bench) -> None:
    for own in (SILENT, a_status(OWN), SILENT):
        bench.etcd.own = own
        assert bench.of_served() is None
        bench.clock.advance(9)
    assert bench.of_served() is None
    bench.clock.advance(1)
    assert bench.of_served() is not None


def test_an_answer_with_the_id_of_a_served_disk_is_taken_for_its_own_etcd(bench: Bench) -> None:
    bench.etcd.own = a_status(OWN, leader=0)
    bench.of_served()
    bench.clock.advance(10)
    found = bench.of_served()
    assert found is not None
    assert not found.answers_elsewhere
    assert gather(bench.round_, bench.home, bench.record).answers_elsewhere, "of a disk that is not served it says more"


@pytest.mark.parametrize("trouble", ["provider", "disk"])
def test_a_silent_provider_or_disk_says_nothing_about_the_member(bench: Bench, trouble: str) -> None:
    bench.etcd.own = SILENT
    if trouble == "provider":
        bench.home = replace(bench.home, listed=None)
    else:
        bench.logs.error = OSError(5, "Input/output error")
    for _ in range(3):
        assert bench.of_served() is None
        bench.clock.advance(10)
    assert bench.round_.report.sentence() == ""


def test_the_first_look_is_recorded_at_once_and_later_ones_once_a_minute_until_the_time_is_over(
    bench: Bench,
) -> None:
    recorded: dict[float, Lacking | None] = {}
    for second in range(0, 600, 10):
        writes = bench.store.writes
        known, why = bench.count()
        assert (known, why) == (bench.lacking, ""), "what is not recorded does not count"
        if bench.store.writes != writes:
            recorded[second] = known
        bench.clock.advance(10)
    times = (0, 60, 120, 180, 240, 300)
    assert recorded == {each: Lacking(member_id=OWN, since=1.8e9, observed=float(each)) for each in times}


def listed(*, id: int = 7, url: str = "https://7") -> Evidence:  # noqa: A002
    """A list that has one more member, with two peer URLs."""
    entry = Listed(id=id, name="", peer_urls=("https://elsewhere", url), client_urls=())
    return replace(LACKS, members=(*OTHERS, entry))


ENDS = {
    "id": (listed(id=OWN), Data.PRESENT),
    "peer URL": (listed(url=wanted_of().etcd[0].members[0].peer_url), Data.PRESENT),
    "missing data": (LACKS, Data.MISSING),
}


@pytest.mark.parametrize(("found", "data"), ENDS.values(), ids=ENDS)
def test_a_list_that_has_the_member_or_data_that_is_gone_ends_the_count_and_the_record(
    bench: Bench, found: Evidence, data: Data
) -> None:
    bench.count_for(110)
    assert bench.count(found, data) == (None, "")
    assert (bench.lacking, bench.store.writes) == (None, 3)
    bench.store.reads = 0
    assert bench.count(found, data) == (None, "")
    assert (bench.store.reads, bench.store.writes) == (0, 3), "what has ended is not ended again"
    bench.count_for(50)
    assert bench.lacking == Lacking(member_id=OWN, since=1.8e9 + 110), "a later count begins at zero"


UNKNOWN: dict[str, dict[str, Any]] = {
    "no list": {"members": None},
    "empty list": {"members": ()},
    "no majority": {"majority": None},
    "unreadable log": {"position": None, "members": ENDS["peer URL"][0].members},
}


@pytest.mark.parametrize("unknown", UNKNOWN.values(), ids=UNKNOWN)
def test_what_nobody_could_find_out_adds_nothing_and_changes_no_record(bench: Bench, unknown: dict[str, Any]) -> None:
    bench.count_for(110)
    known = Lacking(member_id=OWN, since=1.8e9, observed=60.0)
    assert bench.count(replace(LACKS, **unknown)) == (known, "")
    bench.clock.advance(10)
    bench.count_for(50)
    assert (bench.lacking, bench.store.writes) == (known, 2), "the looks before are not added either"
    bench.clock.advance(10)
    bench.count()
    assert bench.lacking == replace(known, observed=120.0)


def test_why_the_record_cannot_be_written_is_said_and_the_next_round_writes_it(bench: Bench) -> None:
    bench.count_for(50)
    bench.clock.advance(10)
    bench.store.down = True
    assert bench.count() == (None, f"cannot reach {bench.store.url}")
    bench.store.down = False
    assert bench.count() == (Lacking(member_id=OWN, since=1.8e9, observed=60.0), "")
    bench.store.down = True
    assert bench.count(listed(id=OWN)) == (None, "")
    assert bench.lacking is not None
    bench.store.down = False
    bench.count(listed(id=OWN))
    assert bench.lacking is None


def test_without_a_record_nothing_is_counted(bench: Bench) -> None:
    found = removals.count(bench.next_round(), bench.home, Data.PRESENT, LACKS, None)
    assert (found, bench.lacking) == ((None, "the generation record cannot be read"), None)


def test_a_removal_after_this_agent_had_it_rejoin_is_meant_even_if_the_clock_jumps_by_a_day(bench: Bench) -> None:
    bench.set_aside(ANOTHER)
    bench.host_clock.wrong_by = 2 * DAY
    known, _ = bench.count()
    assert known is not None
    assert known.meant


def test_data_is_set_aside_once_its_etcd_is_gone_and_the_record_says_when(bench: Bench) -> None:
    (bench.data.parent / "data.aside-1").mkdir()
    assert "joins the other members anew" in bench.set_aside()
    assert bench.record.readded == {"a": Readded(member_id=OWN, at=1.8e9)}
    assert bench.folders == ["data.aside-1", "data.aside-2"]
    assert (bench.data.parent / "data.aside-2/member/wal/0.wal").read_text() == "log\n"
    assert "its data was moved to data.aside-2" in bench.round_.report.sentence()


def link(bench: Bench) -> None:
    folder = bench.round_.edges.inside(links.DIRECTORY)
    folder.mkdir(parents=True)
    (folder / "etcd.manifest").symlink_to("/mnt/master-vol-a/k8s.io/manifests/etcd.manifest")


RUNS: dict[str, tuple[Callable[[Bench], None], str]] = {
    "link": (link, "has stopped"),
    "process": (lambda bench: setattr(bench.disks, "users", ("etcd (pid 12) has open 0.wal",)), "etcd (pid 12) has"),
    "unknown device": (lambda bench: setattr(bench, "home", replace(bench.home, mount=None)), "not known which device"),
}


@pytest.mark.parametrize(("happens", "why"), RUNS.values(), ids=RUNS)
def test_data_stays_where_it_is_while_its_etcd_may_run(
    bench: Bench, happens: Callable[[Bench], None], why: str
) -> None:
    happens(bench)
    text = bench.set_aside()
    assert text.startswith("member a of main/a was removed from etcd's member list; it rejoins once its etcd has")
    assert why in text
    assert (bench.folders, bench.record.readded, bench.store.writes) == (["data"], {}, 0)


def test_it_is_recorded_before_data_is_moved_and_a_second_attempt_keeps_the_time_of_the_first(bench: Bench) -> None:
    bench.store.answers_lost = True
    with pytest.raises(TryLater, match="it may have been written"):
        bench.set_aside()
    assert bench.folders == ["data"]
    bench.store.answers_lost = False
    bench.clock.advance(3600)
    bench.set_aside()
    assert (bench.folders, bench.store.writes) == (["data.aside-1"], 1)
    assert bench.record.readded == {"a": Readded(member_id=OWN, at=1.8e9)}
    assert "joins the other members anew" in bench.set_aside()
    assert (bench.folders, bench.round_.report.did) == (["data.aside-1"], []), "there is nothing left to move"
    bench.put_data()
    bench.set_aside(ANOTHER)
    assert bench.record.readded == {"a": Readded(member_id=ANOTHER, at=1.8e9 + 3600)}, "another id has its own time"
