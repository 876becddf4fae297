"""A full etcd: which step is next, one test for each rule."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from protokube.members.alarms import Alarm, AlarmKind
from protokube.members.remedy import Remedy, decode, encode
from protokube.members.space import DAY, figures, is_sound, plan
from protokube.members.space_values import (
    DEFAULT_QUOTA,
    Compact,
    Decision,
    Defragment,
    Disarm,
    MoveLeader,
    NeedsPerson,
    Nothing,
    Reading,
    Sample,
    Space,
    Wait,
)
from protokube.members.start_values import Listed

MB = 2**20
QUOTA = 100 * MB
NOW = 1.8e9
A, B, C = 1, 2, 3
NAMES = {A: "etcd-a", B: "etcd-b", C: "etcd-c"}
NOSPACE = Alarm(B, "NOSPACE")
BEGUN = Remedy(began=NOW - 90)
COMPACTED = BEGUN.with_compaction(500, NOW - 60)


def listed(member: int, **changes: Any) -> Listed:
    name = NAMES.get(member, f"etcd-{member}")
    url = f"https://{name}:2380"
    return replace(Listed(id=member, name=name, peer_urls=(url,), client_urls=(url,)), **changes)


def reading(**changes: Any) -> Reading:
    full = Reading(leader=A, term=3, applied=1000, size=QUOTA, in_use=10 * MB, version="3.5.21", learner=False)
    return replace(full, **changes)


def space(**changes: Any) -> Space:
    """Three healthy members, full of old revisions; etcd-a leads, and we hold it."""
    members = (listed(A), listed(B), listed(C))
    full = Space(
        members=members, readings={each.id: reading() for each in members}, alarms=(NOSPACE,),
        quotas={each.id: QUOTA for each in members}, own=A, own_free=10 * QUOTA, may_compact=True,
        samples=(Sample(700.0, 500), Sample(599.0, 900)), record=None, now=NOW,
    )  # fmt: skip
    return replace(full, **changes)


def with_reading(seen: Space, member: int, **changes: Any) -> Space:
    return replace(seen, readings={**seen.readings, member: replace(seen.readings[member], **changes)})


def defragmented(seen: Space, *members: int) -> Space:
    for each in members:
        seen = with_reading(seen, each, size=seen.readings[each].in_use)
    return seen


def why(decision: Decision) -> str:
    assert isinstance(decision, Wait | NeedsPerson), decision
    return decision.why


def test_without_an_alarm_nothing_is_done() -> None:
    assert plan(space(alarms=())) == Nothing()


def test_the_holder_of_the_leader_compacts_up_to_the_newest_revision_that_is_ten_minutes_old() -> None:
    decision = plan(space())

    assert isinstance(decision, Compact)
    assert decision.revision == 500
    assert decision.before == Remedy(began=NOW)
    assert decision.after == Remedy(began=NOW, revision=500, compacted=NOW)


@pytest.mark.parametrize("own", [B, C])
def test_the_other_masters_leave_that_to_it(own: int) -> None:
    assert "holds the leader, etcd-a, compacts" in why(plan(space(own=own)))


def test_without_a_revision_that_is_old_enough_it_waits_and_says_how_long() -> None:
    assert "compacted in 1 s" in why(plan(space(samples=(Sample(599.0, 900),))))
    assert "compacted in 600 s" in why(plan(space(samples=())))


def test_followers_are_defragmented_first_by_name_and_by_their_own_masters() -> None:
    assert plan(space(own=B, record=COMPACTED)) == Defragment(
        B, before=COMPACTED.with_turn(B), after=COMPACTED.with_done(B)
    )
    for own in (A, C):
        assert "etcd-b is defragmented first" in why(plan(space(own=own, record=COMPACTED)))
    next_one = defragmented(space(own=C, record=COMPACTED.with_done(B)), B)
    assert isinstance(plan(next_one), Defragment)
    assert "etcd-c is defragmented first" in why(plan(replace(next_one, own=B)))


def test_while_a_member_has_its_turn_nobody_else_is_defragmented() -> None:
    held = COMPACTED.with_turn(C)
    assert isinstance(plan(space(own=C, record=held)), Defragment)
    assert "etcd-c" in why(plan(space(own=B, record=held)))


def test_the_leader_comes_last_and_gives_its_leadership_away_before() -> None:
    last = COMPACTED.with_done(B).with_done(C)
    seen = defragmented(space(record=last), B, C)
    assert plan(seen) == MoveLeader(A, C, before=last.with_turn(A))
    moved = {member: replace(each, leader=C) for member, each in seen.readings.items()}
    assert plan(replace(seen, record=last.with_turn(A), readings=moved)) == Defragment(
        A, before=last.with_turn(A), after=last.with_done(A)
    )


def test_a_member_that_is_alone_is_defragmented_although_it_leads() -> None:
    alone = space(members=(listed(A),), readings={A: reading()}, record=COMPACTED)
    assert isinstance(plan(alone), Defragment)


def test_before_a_member_is_judged_the_members_are_given_time_to_delete_old_revisions() -> None:
    just = BEGUN.with_compaction(500, NOW - 59)
    assert why(plan(space(own=B, record=just))) == "the members delete old revisions"


def test_the_alarm_is_cleared_when_every_database_is_below_four_fifths_of_its_quota() -> None:
    roomy = replace(space(record=COMPACTED), readings=dict.fromkeys(NAMES, reading(size=79 * MB)))
    assert plan(roomy) == Disarm((NOSPACE,), before=COMPACTED.with_end(NOW))
    assert "clears the alarm" in why(plan(replace(roomy, own=B)))
    assert not isinstance(plan(with_reading(roomy, C, size=80 * MB)), Disarm)


def test_a_quota_that_was_raised_clears_the_alarm_without_a_remedy() -> None:
    assert plan(space(quotas=dict.fromkeys(NAMES, 2 * QUOTA))) == Disarm((NOSPACE,), before=None)
    assert plan(space(quotas=dict.fromkeys(NAMES, 0))) == Disarm((NOSPACE,), before=None), (
        "0 is etcd's default of 2 GiB"
    )
    assert plan(space(quotas=dict.fromkeys(NAMES, -1))) == Disarm((NOSPACE,), before=None), "negative is no quota"
    assert DEFAULT_QUOTA == 2147483648


def test_current_data_that_fills_even_a_defragmented_member_is_for_a_person() -> None:
    crowded = replace(space(record=COMPACTED.with_done(B)), readings=dict.fromkeys(NAMES, reading(in_use=90 * MB)))
    decision = plan(crowded)
    assert isinstance(decision, NeedsPerson)
    assert decision.why == "current data fills it, not old revisions"
    assert "delete keys" in decision.hint


def test_what_counts_as_in_use_before_it_was_defragmented_is_not_believed() -> None:
    """etcd counts what a compaction gave up as in use until its next write."""
    stale = replace(space(record=COMPACTED, own=B), readings=dict.fromkeys(NAMES, reading(in_use=90 * MB)))
    assert isinstance(plan(stale), Defragment)


def test_what_was_given_up_only_after_a_member_was_defragmented_is_fetched_once_more() -> None:
    again = space(record=COMPACTED.with_done(B).with_done(C), own=B)
    decision = plan(again)
    assert isinstance(decision, Defragment)
    assert decision.before.done == ()


def test_what_a_person_deletes_is_compacted_ten_minutes_later_and_all_are_defragmented_anew() -> None:
    crowded = replace(
        space(record=COMPACTED.with_done(B), now=NOW + 600, samples=(Sample(700.0, 800),)),
        readings=dict.fromkeys(NAMES, reading(in_use=90 * MB)),
    )
    decision = plan(crowded)
    assert isinstance(decision, Compact)
    assert decision.revision == 800
    assert decision.after.done == ()


def test_where_compaction_is_not_allowed_only_free_pages_are_given_back() -> None:
    forbidden = space(may_compact=False, own=B)
    assert isinstance(plan(forbidden), Defragment)
    full = dict.fromkeys(NAMES, reading(in_use=90 * MB))
    decision = plan(replace(forbidden, record=BEGUN.with_done(B), readings=full))
    assert isinstance(decision, NeedsPerson)
    assert "maintenance.compact: true" in decision.hint


def test_a_second_time_within_a_day_is_for_a_person_and_after_a_day_it_begins_anew() -> None:
    over = COMPACTED.with_done(A).with_done(B).with_done(C).with_end(NOW)
    assert "full again less than a day" in why(plan(space(record=over)))
    assert "full again less than a day" in why(plan(space(record=replace(over, began=NOW + 5 * DAY))))
    later = plan(space(record=over, now=NOW + DAY))
    assert isinstance(later, Compact)
    assert later.before == Remedy(began=NOW + DAY)


def test_a_turn_outlives_the_day_since_clocks_may_be_wrong() -> None:
    old = replace(COMPACTED, began=NOW - 2 * DAY).with_turn(C)
    assert why(plan(space(own=B, record=old, may_compact=False))).startswith("etcd-c is defragmented first")


def test_a_member_that_does_not_answer_stops_everything() -> None:
    silent = replace(space(own=B, record=COMPACTED), readings={A: reading(), B: reading()})
    assert "etcd-c must answer" in why(plan(silent))


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"learner": True}, "etcd-c must become a voter"),
        ({"applied": -1}, "etcd-c must catch up"),
        ({"term": 2}, "etcd-c must catch up"),
        ({"leader": 0}, "must follow one leader"),
        ({"leader": C}, "must follow one leader"),
        ({"version": "3.5.5"}, "etcd 3.5.5 may lose data"),
    ],
)
def test_no_member_is_defragmented_beside_one_that_is_not_a_healthy_voter(
    change: dict[str, Any], expected: str
) -> None:
    assert expected in why(plan(with_reading(space(own=B, record=COMPACTED), C, **change)))


def test_a_learner_that_has_not_started_stops_everything() -> None:
    with_learner = space(own=B, record=COMPACTED, members=(*space().members, listed(9, name="", learner=True)))
    assert "9 must answer" in why(plan(with_learner))


def test_without_room_for_a_second_file_a_person_is_needed() -> None:
    decision = plan(space(own=B, record=COMPACTED, own_free=119 * MB))
    assert isinstance(decision, NeedsPerson)
    assert "has 119.0 MiB free, and 120.0 MiB are needed" in decision.why
    assert isinstance(plan(space(own=B, record=COMPACTED, own_free=120 * MB)), Defragment)


def test_a_corrupt_cluster_is_touched_by_nobody() -> None:
    for record in (None, COMPACTED.with_turn(B)):
        decision = plan(space(own=B, record=record, alarms=(NOSPACE, Alarm(C, "CORRUPT"))))
        assert isinstance(decision, NeedsPerson)
        assert "the data of etcd-c differs" in decision.why


def test_an_alarm_of_a_later_etcd_is_for_a_person() -> None:
    strange = Alarm(C, "TOOHOT")
    assert strange.kind is AlarmKind.UNKNOWN
    assert "TOOHOT of etcd-c" in why(plan(space(alarms=(strange,))))


@pytest.mark.parametrize(
    ("version", "sound"),
    [
        ("3.4.21", False), ("3.4.22", True), ("3.5.1", False), ("3.5.6", True), ("3.5.21+git", True),
        ("3.6.0", True), ("3.6.0-rc.1", True), ("4.0.0", True), ("3.3.27", False), ("", False), ("3.5", False),
    ],
)  # fmt: skip
def test_versions_that_may_be_defragmented_unattended(version: str, sound: bool) -> None:
    assert is_sound(version) is sound


def test_the_record_comes_back_as_it_was_and_half_a_record_is_none() -> None:
    full = COMPACTED.with_done(B).with_turn(C).with_end(NOW)
    assert decode(encode(full)) == full
    assert decode(encode(full)[:-20]) is None
    assert decode(b"{}") is None
    assert decode(b"[]") is None


def test_the_figures_name_each_database_with_its_quota() -> None:
    seen = replace(space(quotas={A: QUOTA, B: -1}), readings={A: reading(), B: reading()})
    assert figures(seen) == (
        "etcd-a 100.0 MiB of a quota of 100.0 MiB, 10.0 MiB of it in use;"
        " etcd-b 100.0 MiB of no quota, 10.0 MiB of it in use; etcd-c does not answer"
    )
