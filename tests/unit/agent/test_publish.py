"""The status of a master in the state store: when it is written, what it holds, and what it may never cost."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from itertools import count, pairwise
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusters.scenario.edges import FakeClock, HostClock, ShakyStore
from protokube.agent.publish import FIRST, HANGS, LEAST, MOST, STEP, Publisher, digest_of, due, survey
from protokube.errors import TryLater
from protokube.etcd import MaintainedEtcd, Status
from protokube.host.supervised import Supervised
from protokube.members.start_values import Listed
from protokube.members.survey.answers import from_tree
from protokube.store import NotThere, Version, layout
from protokube.store.memory import MemoryStore

STORES = count(1)
PATH = layout.agent("dev", "i-1")


class AnsweringEtcd:
    """The far side of etcd: one member that answers, or none."""

    def __init__(self, leader: int = 7) -> None:
        self.leader, self.asked = leader, 0

    def survey(self, _seconds: float) -> Mapping[str, Status]:
        self.asked += 1
        if not self.leader:
            return {}
        status = Status(
            cluster_id=2**63, member_id=7, leader=self.leader, revision=3, raft_term=2, raft_index=9, applied_index=9,
            db_size=20480, version="3.6.8", learner=False,
        )  # fmt: skip
        return {"etcd-a": status}

    def members(self) -> Sequence[Listed]:
        return (Listed(id=7, name="etcd-a", peer_urls=("https://a:2380",), client_urls=("https://a:4001",)),)


def a_status(**changes: Any) -> dict[str, Any]:
    status = {
        "machine": {"id": "i-1", "name": "master-1", "address": "10.0.0.1", "external": "", "zone": "z", "group": "g"},
        "cluster": "dev", "revision": 1, "round": 1, "at": 0.0, "took": 0.01, "nextWithin": 10.0, "volumes": [],
        "report": {"did": [], "waiting": [], "needsAPerson": [], "broken": [], "warnings": []}, "members": [],
        "jobs": [], "live": {"i-1": "10.0.0.1"}, "names": {}, "watched": {}, "elected": True, "serving": None,
    }  # fmt: skip
    return {**status, **changes}


class Setting:
    """One master's publisher, its store, and time that moves by hand."""

    def __init__(self) -> None:
        self.common = FakeClock()
        self.clock = HostClock(self.common)
        self.store = ShakyStore(MemoryStore(f"publish-{next(STORES)}"))
        self.store.inner.put(layout.config("dev"), b"kind: Cluster")
        self.etcd = AnsweringEtcd()
        self.restart()

    def restart(self) -> None:
        """An agent that remembers nothing, and has run for long enough to be heard."""
        self.publisher = Publisher(self.store, {"main": cast(MaintainedEtcd, self.etcd)}, self.clock)
        self.common.advance(FIRST)

    def offer(self, **changes: Any) -> None:
        self.publisher.offer(a_status(at=self.clock.now(), **changes))

    def after(self, seconds: float) -> None:
        self.common.advance(seconds)
        self.publisher.work()

    @property
    def record(self) -> dict[str, Any]:
        return dict(json.loads(self.store.inner.read(PATH).data))


@pytest.fixture
def setting() -> Setting:
    return Setting()


TIMES = st.floats(0, 1e6)


@given(now=TIMES, digest=st.text(max_size=3))
def test_what_was_never_written_is_due(now: float, digest: str) -> None:
    assert due(now, None, "", digest)


@given(last=TIMES, since=st.floats(0, 1000), changed=st.booleans())
def test_a_change_waits_for_its_minute_and_silence_lasts_five_minutes_at_most(
    last: float, since: float, changed: bool
) -> None:
    now = last + since
    age = now - last  # as it is computed: adding may round
    assert due(now, last, "was", "is" if changed else "was") == (age >= MOST or (changed and age >= LEAST))


@given(st.lists(st.tuples(st.floats(0.5, 90), st.integers(0, 2)), min_size=1, max_size=60))
def test_however_states_change_writes_are_a_minute_apart_and_no_state_is_older_than_its_limit(
    history: list[tuple[float, int]],
) -> None:
    setting = Setting()
    writes: list[float] = []
    last_change, state = setting.common.seconds, -1
    for pause, new in history:
        if new != state:
            state, last_change = new, setting.common.seconds
        setting.offer(revision=new)
        for _ in range(int(pause) + 1):  # a thread of its own looks about once a second
            before = setting.store.writes
            setting.after(1.0)
            writes += [setting.common.seconds] * (setting.store.writes - before)
            now = setting.common.seconds
            assert setting.record["revision"] == state or now - last_change <= LEAST + 1
            assert now - writes[-1] <= MOST + 1
    assert all(later - earlier >= LEAST for earlier, later in pairwise(writes))


def test_of_a_burst_of_changes_the_newest_is_written_once_its_minute_has_passed(setting: Setting) -> None:
    setting.offer(revision=1)
    setting.after(0)
    for revision in (2, 3, 4):
        setting.offer(revision=revision)
        setting.after(10)
    assert (setting.record["revision"], setting.store.writes) == (1, 1)

    setting.after(30)

    assert (setting.record["revision"], setting.store.writes) == (4, 2)


def test_time_that_passes_and_what_only_one_round_did_are_no_change() -> None:
    note = {"step": "volumes", "about": "", "text": "vol-1 attached"}
    report = a_status()["report"]
    waiting = [{"step": "api", "about": "", "text": "no quorum", "since": 5.0}]
    later = [{**waiting[0], "since": 9.0}]

    first = a_status(report={**report, "did": [note], "waiting": waiting}, jobs=[{"job": "Mount", "seconds": 1.0}])
    second = a_status(report={**report, "waiting": later}, at=99.0, round=7, took=3.0, nextWithin=1.0)

    assert digest_of(first) == digest_of(second)
    assert digest_of(first) != digest_of(a_status(report=report))
    assert digest_of(first) != digest_of({**first, "live": None})


def test_the_record_has_the_status_and_what_the_members_of_etcd_answered(setting: Setting) -> None:
    setting.offer()
    setting.after(0)

    answers = from_tree(setting.record["etcd"]["main"])
    assert (answers.members["etcd-a"].cluster_id, answers.members["etcd-a"].leader_id) == (2**63, 7)
    assert answers.listed is not None
    assert [each.name for each in answers.listed] == ["etcd-a"]
    assert setting.record["machine"]["name"] == "master-1"
    assert setting.record["publishedWithin"] >= MOST + LEAST


def test_without_a_leader_nobody_is_asked_for_a_list() -> None:
    found = survey(cast(MaintainedEtcd, AnsweringEtcd(leader=0)))

    assert (found.members, found.listed) == ({}, None)


def test_etcd_is_asked_only_for_what_is_written(setting: Setting) -> None:
    for _ in range(30):
        setting.offer()
        setting.after(1)

    assert (setting.etcd.asked, setting.store.writes) == (1, 1)


def test_while_a_member_does_not_answer_the_store_is_told_each_minute_although_no_round_sees_a_change(
    setting: Setting,
) -> None:
    setting.etcd.leader = 0
    for _ in range(200):
        setting.offer()
        setting.after(1)
    assert setting.store.writes == 4

    setting.etcd.leader = 7  # it is back, and no round noticed that it was away
    setting.after(LEAST)
    assert from_tree(setting.record["etcd"]["main"]).listed is not None
    for _ in range(200):
        setting.offer()
        setting.after(1)
    assert setting.store.writes == 5


def test_an_agent_that_ends_and_starts_again_does_not_write_each_time(setting: Setting) -> None:
    for number in range(12):
        setting.restart()
        setting.offer(revision=number)
        setting.after(5)

    assert setting.store.writes <= 3

    setting.restart()
    setting.clock.wrong_by = -7200  # what it wrote is from its future now
    setting.offer(revision=8)
    setting.after(1)
    assert setting.record["revision"] == 8


def test_an_agent_that_has_just_started_is_not_heard_before_it_can_know_the_others() -> None:
    common = FakeClock()
    store = Setting().store
    publisher = Publisher(store, {}, HostClock(common))
    publisher.offer(a_status(live=None))
    for _ in range(int(FIRST)):
        publisher.work()
        common.advance(1)
    assert store.writes == 0

    publisher.work()
    assert store.writes == 1


def test_a_store_that_fails_is_asked_once_a_minute_and_gets_the_newest_when_it_is_back(setting: Setting) -> None:
    setting.store.down = True
    for number in range(600):
        setting.offer(revision=number)
        setting.after(1)
    assert 9 <= setting.etcd.asked <= 11  # members are asked for what is to be written
    with pytest.raises(NotThere):
        setting.store.inner.read(PATH)

    setting.store.down = False
    setting.after(LEAST)
    assert setting.record["revision"] == 599


def test_a_write_that_failed_is_tried_again_after_a_minute_although_nothing_changed(setting: Setting) -> None:
    setting.store.down = True
    setting.offer()
    setting.after(0)
    setting.store.down = False
    setting.after(LEAST)

    assert setting.record["revision"] == 1


def test_while_the_provider_is_silent_the_last_list_stays_in_the_record_with_its_age(setting: Setting) -> None:
    volumes = [{"id": "vol-1"}]
    setting.offer(volumes=volumes)
    setting.after(0)
    assert (setting.record["volumes"], setting.record["volumesAge"]) == (volumes, 0.0)

    setting.common.advance(LEAST)
    setting.offer(volumes=None)
    setting.after(0)
    assert (setting.record["volumes"], setting.record["volumesAge"]) == (volumes, LEAST)

    setting.restart()  # an agent that remembers nothing reads it back
    setting.common.advance(LEAST)
    setting.offer(volumes=None, revision=2)
    setting.after(0)
    assert setting.record["volumes"] == volumes
    assert setting.record["volumesAge"] == pytest.approx(2 * LEAST + FIRST)


def test_before_any_list_the_record_has_none(setting: Setting) -> None:
    setting.offer(volumes=None)
    setting.after(0)

    assert (setting.record["volumes"], setting.record["volumesAge"]) == (None, None)


def test_an_agent_whose_rounds_hang_says_how_old_its_status_is(setting: Setting) -> None:
    setting.offer()
    setting.after(0)
    setting.after(MOST)

    assert setting.store.writes == 2
    assert setting.record["waited"] == MOST


def test_a_status_that_cannot_be_published_is_reported_and_the_store_is_not_told_of_it_afterwards(
    setting: Setting,
) -> None:
    setting.store.down = True
    setting.offer()
    setting.after(0)
    assert "cannot reach memory://" in setting.publisher.trouble

    setting.store.down = False
    note = {"step": STEP, "about": "status", "text": setting.publisher.trouble}
    setting.offer(report={**a_status()["report"], "waiting": [note]})
    setting.after(LEAST)
    assert setting.publisher.trouble == ""
    assert setting.record["report"]["waiting"] == []


def test_nothing_is_written_into_a_store_that_holds_nothing_of_the_cluster(setting: Setting) -> None:
    empty = ShakyStore(MemoryStore(f"publish-{next(STORES)}"))
    publisher = Publisher(empty, {}, setting.clock)
    setting.common.advance(FIRST)
    publisher.offer(a_status())
    publisher.work()

    assert empty.inner.list_paths() == ()


def test_a_shorter_time_between_two_writes_can_be_chosen(setting: Setting) -> None:
    publisher = Publisher(setting.store, {}, setting.clock, least=2)
    setting.common.advance(FIRST)
    for revision in range(6):
        publisher.offer(a_status(revision=revision, at=setting.clock.now()))
        publisher.work()
        setting.common.advance(1)

    assert setting.store.writes == 3


def test_a_store_that_hangs_keeps_only_its_own_thread_which_is_reported() -> None:
    setting, began, hanging, seconds = Setting(), threading.Event(), threading.Event(), [0.0]

    class HangingStore(ShakyStore):
        def create(self, path: str, data: bytes) -> Version:
            began.set()
            hanging.wait(60)
            raise TryLater("no answer")

    publisher = Publisher(HangingStore(setting.store.inner), {}, setting.clock)
    setting.common.advance(FIRST)
    thread = Supervised("publisher", publisher.work, silent_after=HANGS, clock=lambda: seconds[0])
    publisher.offer(a_status())
    thread.start()
    try:
        for number in range(1000):  # rounds go on, and each leaves its status at once
            publisher.offer(a_status(round=number))
        assert began.wait(30), "the thread has begun its write"
        seconds[0] = HANGS + 1
        trouble = thread.trouble()
        assert trouble is not None
        assert trouble.hangs
    finally:
        thread.stop()
        hanging.set()


SECRETS = (
    "-----BEGIN EC PRIVATE KEY-----\nMHcCAQEEIHNl\n-----END EC PRIVATE KEY-----",
    "-----BEGIN CERTIFICATE-----\nMIIBszCCAVmgAwIBAgIUcut",
    "eyJhbGciOiJSUzI1NiIsImtpZCI6IjEifQ.eyJzdWIiOiJ4In0.c2ln",
    "abcdef.0123456789abcdef",
    "https://user:hunter2@registry.example.com/v2",
    "Authorization: Bearer s3cr3t",
    'password="hunter2"',
    "c2VjcmV0IGtleSBtYXRlcmlhbCB0aGF0IGlzIGxvbmc0Mg0xNjQ1OTg=",
)


@pytest.mark.parametrize("secret", SECRETS)
def test_a_secret_that_an_error_quotes_does_not_reach_the_store(setting: Setting, secret: str) -> None:
    note = {"step": "keys", "about": "", "text": f"cannot read: {secret}", "saw": secret, "hint": secret}
    report = {**a_status()["report"], "needsAPerson": [note], "broken": [note], "warnings": [note]}
    setting.offer(report=report)
    setting.after(0)

    text = json.dumps(setting.record)
    for part in ("MHcCAQ", "MIIBsz", "eyJzdWI", "c2ln", "0123456789abcdef", "hunter2", "s3cr3t", "c2VjcmV0"):
        assert part not in text
    assert setting.record["report"]["needsAPerson"][0]["text"].startswith("cannot read: ")


def test_plain_sentences_stay_as_they_are_and_endless_ones_are_cut(setting: Setting) -> None:
    plain = "etcd-a.internal.dev points at 10.0.0.9, not at /var/lib/protokube/hosts/master-1 (vol-0a1b2c3d4e5f67890)"
    note = {"step": "names", "about": "etcd-a.internal.dev", "text": plain, "saw": "x " * 5000}
    setting.offer(report={**a_status()["report"], "waiting": [note]})
    setting.after(0)

    (found,) = setting.record["report"]["waiting"]
    assert found["text"] == plain
    assert len(found["saw"]) < 2100
