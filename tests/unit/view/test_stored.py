"""A view from the store alone: what it concludes from reports of different ages, and what it leaves open."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.published import (
    LIVE,
    MODIFIED,
    WANTED,
    a_record,
    a_report,
    a_store,
    a_survey,
    a_volume,
    an_answer,
    noted,
    seen,
)
from builders.view import CLUSTER, NOW, SHORTS, listed
from protokube.cli.render.explain_member import explain_member
from protokube.cli.render.explain_record import explain_record
from protokube.cli.render.explain_volume import explain_volume
from protokube.cli.render.members import render_members
from protokube.cli.render.status import render_status
from protokube.cli.render.tree import view_tree
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
    moved = [a_volume("a", attachedTo=None), a_volume("b"), a_volume("c")]
    view = seen(old, a_record(1, live=TWO, volumes=moved), a_record(2, live=TWO, volumes=moved))

    assert [each.name for each in view.hosts] == ["master-1", "master-2"]
    assert view.notes == (
        "not shown, since they hold no live lease and have reported nothing for hours: master-0 (3 h)",
    )


def test_a_machine_that_was_replaced_under_the_same_name_is_shown_once() -> None:
    live = {**TWO, "i-9": "10.77.0.11"}
    new = a_record(0, age=3, machine={**RECORDS[0]["machine"], "id": "i-9"}, live=live)
    moved = [a_volume("a", attachedTo="i-9"), a_volume("b"), a_volume("c")]
    new, *others = [{**each, "volumes": moved} for each in (new, a_record(1, live=live), a_record(2, live=live))]
    view = seen(a_record(0, age=200), new, *others)

    assert [each.id for each in view.hosts] == ["i-9", "i-1", "i-2"]


@pytest.mark.parametrize(("wrong_by", "way"), [(7200.0, "ahead of"), (-7200.0, "behind")])
def test_a_clock_that_is_wrong_is_noted_and_changes_no_age(wrong_by: float, way: str) -> None:
    view = seen(a_record(0, wrong_by=wrong_by), *RECORDS[1:])

    assert [each.age for each in view.agents] == [2.0] * 3
    assert view.notes == (f"the clock of master-0 is 7200 s {way} the store's",)
    assert view.ready
    assert view.elected == "master-0"


def test_a_clock_of_the_reader_that_is_behind_is_noted() -> None:
    view = seen(*RECORDS, now=NOW - 120)

    assert view.agents[0].age == 0
    assert view.notes == (
        "the clock of this machine is 118 s behind that of the store: reports look newer than they are",
    )


def test_a_dead_elected_master_whose_clock_was_ahead_is_neither_live_nor_elected() -> None:
    others = [a_record(number, age=5, live=TWO, elected=number == 1) for number in (1, 2)]
    view = seen(a_record(0, age=80, wrong_by=600), *others)

    assert view.hosts[0].state == "no live lease"
    assert (view.elected, view.ready) == ("master-1", False)


def test_an_agent_whose_rounds_hang_does_not_look_fresh() -> None:
    view = seen(a_record(0, waited=900.0), *RECORDS[1:])

    assert (view.agents[0].age, view.agents[0].stale) == (902.0, True)
    assert not view.ready


def silent(number: int, *, age: float | None = 200.0, **changes: Any) -> dict[str, Any]:
    """A master whose provider is silent: it has the list of before, or none."""
    return a_record(
        number, **({"volumesAge": age} if age is not None else {"volumes": None, "volumesAge": None}), **changes
    )


def test_a_provider_that_is_silent_for_every_master_takes_no_volume_away() -> None:
    view = seen(*(silent(number, age=1000.0) for number in range(3)))

    assert view.person == ()
    assert [(each.healthy, each.host) for each in view.members] == [(True, f"master-{number}") for number in range(3)]
    assert view.ready
    assert view.notes == (
        "volumes are shown as listed 1000 s before the newest report: their provider has been silent since",
    )


def test_without_any_list_of_the_volumes_nobody_says_that_they_are_gone() -> None:
    view = seen(*(silent(number, age=None) for number in range(3)))

    assert view.person == ()
    assert [each.healthy for each in view.members] == [True] * 3
    assert view.lacks == ("nothing is known of the volumes: no master has had a list of them from its provider",)
    member = view.member("main/a")
    assert member is not None
    assert str(next_for_member(view, member)) == "nothing is known of its volume now"


def test_a_list_that_a_master_kept_does_not_overrule_a_newer_one() -> None:
    moved = [a_volume("a", attachedTo="i-2", phase="serving"), a_volume("b"), a_volume("c", phase="serving")]
    view = seen(silent(0, age=120.0), silent(1, age=120.0), a_record(2, age=50, volumes=moved))

    disk = view.disk("vol-aaaa")
    assert disk is not None
    assert disk.attached_to == "master-2"


def test_a_master_without_an_agent_keeps_the_cluster_from_being_ready_also_after_hours() -> None:
    old = a_record(0, age=5 * 3600)
    view = seen(old, *(a_record(number, age=5, live=TWO, elected=number == 1) for number in (1, 2)))

    assert view.lacks == ("master-0 holds vol-aaaa, and gives no sign of life: no live lease",)


def test_a_machine_that_holds_a_volume_and_never_reported_is_shown() -> None:
    moved = [a_volume("a", attachedTo="i-9"), a_volume("b"), a_volume("c")]
    view = seen(*(a_record(number, live=TWO, volumes=moved, elected=number == 1) for number in (1, 2)))

    assert "i-9 holds vol-aaaa, and gives no sign of life: no live lease" in view.lacks


def test_of_many_machines_that_are_gone_three_are_named() -> None:
    machine = RECORDS[0]["machine"]
    gone = [
        a_record(0, age=(3 + number) * 3600, machine={**machine, "id": f"g-{number}", "name": f"gone-{number}"})
        for number in range(12)
    ]
    view = seen(*gone, *RECORDS)

    assert len(view.hosts) == 3
    assert view.notes == (
        "not shown, since they hold no live lease and have reported nothing for hours:"
        " gone-0 (3 h), gone-1 (4 h), gone-2 (5 h) and 9 more",
    )


def test_a_record_that_a_later_one_follows_is_not_shown() -> None:
    boot = a_record(0, machine={**RECORDS[0]["machine"], "id": "ip-10-0-0-1", "name": "ip-10-0-0-1"}, followedBy="i-0")

    assert [each.name for each in seen(boot, *RECORDS).hosts] == ["master-0", "master-1", "master-2"]


def test_a_record_of_a_newer_format_is_shown_with_a_note() -> None:
    view = seen(a_record(0, format=2), *RECORDS[1:])

    assert view.ready
    assert view.notes == (
        f"{CLUSTER}/agents/i-0.json is in a newer format than this version reads: some of it may be missing here",
    )


def test_if_no_record_can_be_read_it_is_said_which() -> None:
    with pytest.raises(TryLater, match="no report of an agent of dev") as told:
        seen({**RECORDS[0], "report": []}, {**RECORDS[1], "format": 9, "live": 7})

    assert f"{CLUSTER}/agents/i-0.json cannot be read as the report of an agent" in told.value.saw
    assert f"{CLUSTER}/agents/i-1.json is in a newer format" in told.value.saw


@pytest.mark.parametrize("error", [TryLater("the store is slow"), Refused("that is private")])
def test_a_generation_record_that_the_store_does_not_give_is_unknown_and_not_missing(error: Exception) -> None:
    class Partly(MemoryStore):
        def read(self, path: str) -> Stored:
            if path.endswith("generation.json"):
                raise error
            return super().read(path)

    store = Partly(a_store(*RECORDS).url.removeprefix("memory://"))
    view = StoredSource(store, CLUSTER, lambda: NOW).look()

    assert view.person == ()
    assert view.lacks == ("the generation record of main could not be read now",)
    assert view.notes == (str(error),)


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


ODD = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=3),
    st.sampled_from([10**400, -1, 1e300, [], {}, [[]], {"": {}}]),
    st.sampled_from(["\ud800", "\x1b[2J", "a\nb", "..", "http://[x", "x" * 3000]),
)  # fmt: skip


def paths_of(tree: Any, here: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a document."""
    yield here
    for key, each in tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ():
        yield from paths_of(each, (*here, key))


FULL = noted(
    a_record(0, etcd=a_survey(alarms=(Alarm(0xA1, "NOSPACE"),)), leasesRead={"cluster": "c1", "revision": 9}),
    "waiting", "no quorum", since=1.0, hint="h", saw="s",
)  # fmt: skip
FULL["members"][0]["older"] = {
    "disk": {"epoch": 1, "term": 2, "commit": 3},
    "recorded": {"epoch": 2, "term": 2, "commit": 3},
}
PLACES = [path for path in paths_of({name: each for name, each in FULL.items() if name != MODIFIED}) if path]


@given(place=st.sampled_from(PLACES), value=ODD)
def test_whatever_one_record_holds_the_view_is_rendered(place: tuple[Any, ...], value: Any) -> None:
    record = copy.deepcopy(FULL)
    inner: Any = record
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    store = a_store(*RECORDS)
    moment = MemoryStore(store.url.removeprefix("memory://"), clock=lambda: NOW - 1)
    inside = {name: each for name, each in record.items() if name != MODIFIED}
    moment.put(layout.agent(CLUSTER, "i-0"), json.dumps(inside).encode())
    view = StoredSource(store, CLUSTER, lambda: NOW).look()

    "\n".join(render_status(view)).encode()
    json.dumps(view_tree(view)).encode()
    "\n".join(render_members(view)).encode()
    for disk in view.disks:
        assert explain_volume(view, disk.id).next
    for member in view.members:
        assert explain_member(view, member.name).next
    for record_ in view.records:
        assert explain_record(view, record_.name).next
    for each in view.hosts:
        assert "\x1b" not in each.name


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
