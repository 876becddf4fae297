"""A view from the store alone: what it concludes from reports of different ages, and what it leaves open."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.published import LIVE, WANTED, a_record, a_report, a_store, a_survey, a_volume, an_answer, noted, seen
from builders.view import CLUSTER, NOW, SHORTS, listed
from protokube.errors import InvalidRequest, Refused, TryLater
from protokube.members.alarms import Alarm
from protokube.store import Stored, layout
from protokube.store.memory import MemoryStore
from protokube.view.next import next_for_member, next_for_record
from protokube.view.published import read_published
from protokube.view.stored import StoredSource

RECORDS = tuple(a_record(number) for number in range(3))
TWO = {machine: LIVE[machine] for machine in ("i-1", "i-2")}


def test_a_cluster_whose_masters_all_report_that_all_is_well_is_ready() -> None:
    view = seen(*RECORDS)

    assert view.lacks == ()
    assert view.ready
    assert view.person == ()
    assert (view.elected, view.rollout.wanted if view.rollout else None) == ("master-0", 1)
    assert [(each.name, each.host, each.healthy, each.leader) for each in view.members] == [
        ("etcd-a", "master-0", True, True), ("etcd-b", "master-1", True, False), ("etcd-c", "master-2", True, False),
    ]  # fmt: skip
    assert [(each.id, each.attached_to, each.phase) for each in view.disks] == [
        ("vol-aaaa", "master-0", "serving"), ("vol-bbbb", "master-1", "serving"), ("vol-cccc", "master-2", "serving"),
    ]  # fmt: skip


def test_what_only_a_look_at_the_local_cloud_sees_is_absent() -> None:
    view = seen(*RECORDS)

    assert (view.daemon, view.outside) == (None, None)
    assert {(each.pid, each.peers, each.since) for each in view.hosts} == {(None, None, None)}
    assert {each.url for each in view.members} == {None}


def test_a_master_that_was_killed_is_known_by_what_the_others_report() -> None:
    survey = a_survey("bc", listed=listed())
    others = [a_record(number, age=5, live=TWO, etcd=survey, elected=number == 1) for number in (1, 2)]
    view = seen(a_record(0, age=80), *others)

    assert [(each.name, each.alive, each.state) for each in view.hosts] == [
        ("master-0", False, "no live lease"), ("master-1", True, "live"), ("master-2", True, "live"),
    ]  # fmt: skip
    assert "etcd-a on master-0 is not healthy: it did not answer master-1" in view.lacks
    assert view.elected == "master-1"
    member = view.member("main/a")
    assert member is not None
    assert str(next_for_member(view, member)).startswith("nothing, until master-0 has a live lease again, or the cloud")


def test_a_master_whose_agent_does_not_run_keeps_the_cluster_from_being_ready_although_its_etcd_runs() -> None:
    view = seen(a_record(0, age=80), *(a_record(number, age=5, live=TWO, elected=number == 1) for number in (1, 2)))

    assert [each.healthy for each in view.members] == [True] * 3
    assert view.lacks == ("master-0 holds vol-aaaa, and gives no sign of life: no live lease",)


def test_of_two_claims_to_be_elected_the_newer_one_counts() -> None:
    view = seen(a_record(0, age=80), a_record(1, age=5, elected=True), a_record(2, age=50))

    assert view.elected == "master-1"
    assert view.contradictions == ()


def test_a_volume_that_moved_is_where_the_newest_list_has_it() -> None:
    moved = [a_volume("a", attachedTo="i-2", phase="serving"), a_volume("b"), a_volume("c", phase="serving")]
    view = seen(a_record(0, age=80), a_record(1, age=60), a_record(2, age=5, volumes=moved))

    disk = view.disk("vol-aaaa")
    assert disk is not None
    assert (disk.attached_to, disk.phase) == ("master-2", "serving")
    assert view.contradictions == ()


def test_a_report_that_is_overdue_is_the_last_known_and_never_the_truth() -> None:
    view = seen(*(a_record(number, age=900) for number in range(3)))

    assert not view.ready
    assert "the agent of master-1 has reported nothing for 900 s" in view.lacks
    assert [(each.asked, each.healthy) for each in view.members] == [(False, False)] * 3
    assert view.elected is None
    assert [each.state for each in view.hosts] == ["unknown"] * 3


def test_what_needs_a_person_is_said_in_the_words_of_the_agent() -> None:
    refused = noted(RECORDS[1], "needsAPerson", "vol-bbbb is blank although it was formed", about="main/b", hint="look")
    view = seen(RECORDS[0], refused, RECORDS[2])

    (each,) = view.person
    assert (each.host, each.note.text, each.note.hint) == (
        "master-1", "vol-bbbb is blank although it was formed", "look",
    )  # fmt: skip


def test_waits_last_until_now_and_bugs_and_warnings_are_there() -> None:
    waiting = noted(a_record(0, age=30), "waiting", "no quorum", since=NOW - 100)
    broken = noted(RECORDS[1], "broken", "ValueError: x")
    view = seen(waiting, broken, noted(RECORDS[2], "warnings", "soon full"))

    assert [(each.note.text, each.seconds) for each in view.waits] == [("no quorum", 100.0)]
    assert [each.note.text for each in view.bugs] == ["ValueError: x"]
    assert [each.note.text for each in view.warnings] == ["soon full"]


def test_without_a_quorum_no_member_is_healthy_and_nobody_is_elected() -> None:
    answers = {f"etcd-{each}": an_answer(each, leader_id=0) for each in "c"}
    survey = a_survey(members=answers, listed=None)
    alone = a_record(2, age=5, live=None, elected=False, withoutQuorumSince=NOW - 200, etcd=survey)
    view = seen(a_record(0, age=280), a_record(1, age=280), alone)

    assert [each.why for each in view.members] == [
        "it did not answer master-2", "it did not answer master-2", "it knows no leader",
    ]  # fmt: skip
    assert [each.state for each in view.hosts] == [
        "silent since etcd lost its quorum", "silent since etcd lost its quorum", "reports, no quorum",
    ]  # fmt: skip
    assert view.elected is None
    assert not view.has_quorum("main")


def test_another_member_that_answers_under_a_name_is_said() -> None:
    answers = {f"etcd-{each}": an_answer("b" if each == "a" else each) for each in SHORTS}
    view = seen(*(a_record(number, etcd=a_survey(members=answers)) for number in range(3)))

    assert view.members[0].why == "etcd-b answers in its place"


def test_an_alarm_is_shown_with_its_meaning() -> None:
    answers = {f"etcd-{each}": an_answer(each, errors=("NOSPACE",)) for each in SHORTS}
    full = a_survey(members=answers, alarms=(Alarm(0xA1, "NOSPACE"),))
    view = seen(*(a_record(number, etcd=full) for number in range(3)))

    assert view.members[1].why.startswith("NOSPACE of etcd-b:")
    assert not view.ready


def test_a_name_that_nobody_has_confirmed_is_unknown_and_not_absent() -> None:
    view = seen(RECORDS[0], a_record(1, names={}), RECORDS[2])

    name = f"etcd-b.internal.{CLUSTER}"
    assert f"nothing is known of {name}: master-1 has not confirmed it" in view.lacks
    assert str(next_for_record(view, name)) == "master-1 points it at 10.77.0.12"


def test_the_names_of_the_api_are_known_by_the_elected_master() -> None:
    view = seen(a_record(0, names={f"etcd-a.internal.{CLUSTER}": ["10.77.0.11"]}), *RECORDS[1:])

    assert f"nothing is known of api.internal.{CLUSTER}: no elected master has reported it" in view.lacks


def test_without_a_zone_no_name_of_the_api_is_awaited() -> None:
    names = {number: {f"etcd-{SHORTS[number]}.internal.{CLUSTER}": [f"10.77.0.{11 + number}"]} for number in range(3)}
    view = seen(*(a_record(number, zone=False, names=names[number]) for number in range(3)))

    assert view.ready


def test_addresses_of_both_families_are_records_of_their_own() -> None:
    names = {**RECORDS[0]["names"], f"api.internal.{CLUSTER}": ["10.77.0.11", "fd00::1"]}
    view = seen(a_record(0, names=names), *RECORDS[1:])

    assert [(each.type, each.values) for each in view.records if each.name == f"api.internal.{CLUSTER}"] == [
        ("A", ("10.77.0.11",)), ("AAAA", ("fd00::1",)),
    ]  # fmt: skip


def test_a_master_with_a_lease_and_no_report_is_shown_and_awaited() -> None:
    view = seen(RECORDS[0], RECORDS[1])

    assert [(each.name, each.address, each.state) for each in view.hosts][2] == ("i-2", "10.77.0.13", "live")
    assert "the agent of i-2 has not reported yet" in view.lacks


def test_a_machine_that_is_gone_for_hours_is_left_out_and_that_is_said() -> None:
    old = a_record(0, age=3 * 3600)
    view = seen(old, a_record(1, live=TWO), a_record(2, live=TWO))

    assert [each.name for each in view.hosts] == ["master-1", "master-2"]
    assert view.notes == (
        "not shown, since they hold no live lease and have reported nothing for hours: master-0 (3 h)",
    )


def test_a_machine_that_was_replaced_under_the_same_name_is_shown_once() -> None:
    live = {**TWO, "i-9": "10.77.0.11"}
    new = a_record(0, age=3, machine={**RECORDS[0]["machine"], "id": "i-9"}, live=live)
    view = seen(a_record(0, age=200), new, a_record(1, live=live), a_record(2, live=live))

    assert [each.id for each in view.hosts] == ["i-9", "i-1", "i-2"]


def test_a_clock_that_is_ahead_is_noted_and_its_report_counts_as_new() -> None:
    view = seen(a_record(0, age=-120), *RECORDS[1:])

    assert view.agents[0].age == 0
    assert view.notes == ("the clock of master-0 is 120 s ahead of this machine's: ages may be wrong",)


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"null", b'{"machine": {}}', b"\xff"])
def test_a_record_that_cannot_be_read_is_noted_and_the_others_are_shown(data: bytes) -> None:
    store = a_store(*RECORDS[:2])
    store.put(layout.agent(CLUSTER, "i-2"), data)
    view = StoredSource(store, CLUSTER, lambda: NOW).look()

    assert [each.host for each in view.agents] == ["master-0", "master-1"]
    assert view.notes == (f"{CLUSTER}/agents/i-2.json cannot be read as the report of an agent",)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=3),
        lambda each: st.lists(each) | st.dictionaries(st.text(max_size=3), each),
    ),
    st.sampled_from(sorted(RECORDS[0])),
)
def test_whatever_a_record_holds_reading_it_never_fails(value: Any, name: str) -> None:
    found = read_published(json.dumps({**RECORDS[0], name: value}).encode(), NOW)

    assert found is None or found.name == "master-0"


def test_a_missing_generation_record_needs_a_person() -> None:
    view = seen(*RECORDS, generation=False)

    assert [each.note.text for each in view.person] == ["the generation record of main is missing or cannot be read"]


def test_a_cluster_without_revisions_has_the_members_that_its_volumes_name() -> None:
    view = seen(*RECORDS, revision=False)

    assert [each.dns_name for each in view.members] == [f"etcd-{each}.internal.{CLUSTER}" for each in SHORTS]
    assert view.rollout is None
    assert view.ready


def test_a_damaged_revision_is_noted_and_the_rest_is_shown() -> None:
    store = a_store(*RECORDS)
    store.put(layout.revision(CLUSTER, 1), b"{}")
    view = StoredSource(store, CLUSTER, lambda: NOW).look()

    assert len(view.members) == 3
    assert any("this is no revision" in each for each in view.notes)


def test_before_the_first_report_it_says_so() -> None:
    with pytest.raises(TryLater, match=f"no agent of {CLUSTER} has reported yet"):
        seen()


def test_a_cluster_that_is_not_in_the_store_is_refused_with_those_that_are() -> None:
    with pytest.raises(InvalidRequest) as refused:
        StoredSource(a_store(*RECORDS), "other", lambda: NOW).look()

    assert "there is no cluster 'other' in memory://" in refused.value.message
    assert refused.value.saw == CLUSTER


def test_a_store_that_turns_us_away_is_not_taken_for_an_empty_one() -> None:
    class Closed(MemoryStore):
        def read(self, path: str) -> Stored:
            raise Refused("it does not let us in")

    store = Closed(a_store(*RECORDS).url.removeprefix("memory://"))
    with pytest.raises(Refused, match="it does not let us in"):
        StoredSource(store, CLUSTER, lambda: NOW).look()


def test_the_members_are_those_of_the_configuration_in_force() -> None:
    assert [each.dns_name for each in WANTED.etcd[0].members] == [each.dns_name for each in seen(*RECORDS).members]
    assert a_report(0).answers["main"].listed == listed()
