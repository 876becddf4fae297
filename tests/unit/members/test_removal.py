"""When a member that was removed by hand rejoins: each condition, and whatever clocks, agents and lists do."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.examples import examples
from protokube.members.removal import (
    DAY,
    LONGEST_GAP,
    Lacking,
    Later,
    Looks,
    Never,
    Readded,
    Rejoin,
    Removed,
    decide,
    is_due,
    is_over,
    look,
    observe,
)
from protokube.members.start import decide_start
from protokube.members.start_values import Join, Kind, Refuse, Wait
from unit.members.worlds import AHEAD, OLDER, POSITION, B, C, a_generation, a_member, just_mounted, peer_url

AFTER = 300.0
NOW = 1.8e9
OVER = Lacking(member_id=1, since=NOW - AFTER, observed=AFTER)
steady = examples(300, derandomize=True)


def a_removal(**changes: Any) -> Removed:
    """Of member 1 of main/a, five minutes ago, with everything in order."""
    whole = Removed(
        name="main/a", etcd_name="etcd-a", volume="vol-a", peer_url=peer_url("a"), position=POSITION, epoch=3,
        added=None, configured=True, formed=True, siblings=(), named_otherwise=False, answers=False, older=None,
        majority=AHEAD, agreed=True, lacking=OVER, unrecorded="", now=NOW, after=AFTER,
    )  # fmt: skip
    return replace(whole, **changes)


def test_a_member_that_was_removed_five_minutes_ago_rejoins() -> None:
    assert decide(a_removal()) == Rejoin()


@pytest.mark.parametrize(
    ("found", "why"),
    [
        ({"lacking": replace(OVER, observed=299.0)}, "it rejoins by itself after 5 minutes, unless"),
        ({"lacking": replace(OVER, since=NOW - 299)}, "it rejoins by itself after 5 minutes, unless"),
        ({"lacking": None, "unrecorded": "no answer"}, "since when cannot be recorded: no answer"),
        ({"majority": None}, "no majority of the other voters"),
        ({"agreed": False}, "do not agree with each other"),
        ({"siblings": None}, "the list of volumes is not complete"),
        ({"formed": None}, "the generation record cannot be read"),
        ({"answers": True}, "an etcd with that id still answers"),
    ],
)
def test_it_waits_while_something_is_not_proven_yet(found: dict[str, Any], why: str) -> None:
    decision = decide(a_removal(**found))

    assert isinstance(decision, Later)
    assert decision.why.startswith("member 1 of main/a was removed from etcd's member list")
    assert why in decision.why


@pytest.mark.parametrize(
    ("found", "why"),
    [
        ({"lacking": replace(OVER, meant=True)}, "again within a day of its rejoining: that is taken to be meant"),
        ({"after": None}, "maintenance.rejoinRemoved is off"),
        ({"configured": False}, "the configuration does not list it"),
        ({"older": OLDER}, "is an older copy of its disk"),
        ({"formed": False}, "before the cluster was formed"),
        ({"siblings": ("vol-x",)}, "it has several volumes: vol-a, vol-x"),
        ({"named_otherwise": True}, "listed with other peer URLs"),
        ({"majority": replace(AHEAD, term=POSITION.term - 1)}, "of an earlier term than this disk"),
        ({"majority": replace(AHEAD, commit=POSITION.commit - 1)}, "it may hold the newest data"),
    ],
)
def test_a_person_decides_where_waiting_proves_nothing_more(found: dict[str, Any], why: str) -> None:
    decision = decide(a_removal(**found))

    assert isinstance(decision, Never)
    assert why in decision.why
    assert decision.hint


def test_a_disk_that_came_further_than_the_others_shows_both_figures() -> None:
    decision = decide(a_removal(majority=replace(AHEAD, commit=7)))

    assert isinstance(decision, Never)
    assert (
        f"vol-a has term {POSITION.term}, commit {POSITION.commit}; the others have term {AHEAD.term}" in decision.hint
    )


def test_what_a_person_added_in_its_place_is_joined_without_waiting_and_however_often() -> None:
    allowed: list[dict[str, Any]] = [{}, {"lacking": None}, {"after": None}, {"lacking": replace(OVER, meant=True)}]
    for found in allowed:
        assert decide(a_removal(added=9, **found)) == Rejoin()
    for found in ({"majority": None}, {"siblings": ("vol-x",)}, {"older": OLDER}, {"agreed": False}):
        assert decide(a_removal(added=9, **found)) != Rejoin()


# The rows of the table, with a real list.


def removed(**changes: Any) -> Any:
    base = {"members": (B, C), "majority": AHEAD, "lacking": OVER, "now": NOW, "rejoin_removed_after": AFTER}
    return decide_start(just_mounted(**{**base, "siblings": (), **changes}))


def test_the_row_of_a_removed_member_sets_its_data_aside_and_removes_nobody() -> None:
    assert removed() == Join(remove=None, move_aside=True, removed=1)
    assert removed(verified=True) == Join(remove=None, move_aside=True, removed=1)


def test_a_list_that_was_not_read_from_a_quorum_proves_nothing_for_a_member_that_is_served() -> None:
    for found in ({"members": None}, {"majority": None}, {"position": None}):
        decision = removed(verified=True, **{"lacking": None, **found})
        assert not isinstance(decision, Join | Refuse | Wait), found


def test_a_served_member_that_is_listed_goes_on() -> None:
    decision = removed(verified=True, members=(a_member("a", 1), B, C))
    assert not isinstance(decision, Join | Refuse | Wait)


def test_an_id_that_a_quorum_removed_does_not_start_while_none_can_be_asked() -> None:
    decision = removed(members=None, majority=None)
    assert isinstance(decision, Wait)
    assert decision.kind is Kind.REMOVED
    other = removed(members=None, majority=None, lacking=replace(OVER, member_id=5))
    assert not isinstance(other, Wait), "what is recorded of another id says nothing"


def test_an_entry_that_never_started_is_the_persons_wish_and_one_that_did_supersedes_the_disk() -> None:
    added = a_member("a", 9, started=False, learner=True, name="")
    assert removed(members=(added, B, C), lacking=None) == Join(remove=None, move_aside=True, removed=1)
    assert removed(members=(a_member("a", 9), B, C)).kind is Kind.SUPERSEDED
    assert removed(members=(a_member("a", 9, started=False), B, C)).kind is Kind.SUPERSEDED
    other_disk = a_generation(replacements={"a": "vol-a2"})
    assert removed(members=(added, B, C), generation=other_disk).kind is Kind.SUPERSEDED
    assert removed(members=(added, B, C), siblings=("vol-x",)).kind is Kind.SUPERSEDED
    assert isinstance(removed(members=(added, B, C), siblings=None), Wait)


# Time.


def test_a_time_in_the_future_begins_the_count_anew_and_what_is_meant_stays_so() -> None:
    ahead = Lacking(member_id=1, since=NOW + 10, observed=200.0, meant=True)
    assert observe(ahead, Looks(1, 5.0, 50.0), now=NOW, readded=None) == Lacking(member_id=1, since=NOW, meant=True)


def test_another_id_is_counted_from_its_own_first_look() -> None:
    assert observe(OVER, Looks(2, 5.0, 50.0), now=NOW, readded=None) == Lacking(member_id=2, since=NOW)


def test_a_gap_that_is_too_long_counts_nothing() -> None:
    assert look(Looks(1, 0.0, 7.0), 1, LONGEST_GAP + 1) == Looks(1, LONGEST_GAP + 1, 7.0)
    assert look(Looks(1, 0.0, 7.0), 2, 5.0) == Looks(2, 5.0)


def test_the_record_is_written_for_what_is_new_once_a_minute_and_at_the_end() -> None:
    known = Lacking(member_id=1, since=NOW)

    def due(known: Lacking | None, unwritten: float, after: float | None = AFTER) -> bool:
        looks = Looks(1, 0.0, unwritten)
        return is_due(known, observe(known, looks, now=NOW + 400, readded=None), looks, after)

    assert due(None, 0.0)
    assert not due(known, 59.0)
    assert due(known, 60.0)
    assert due(replace(known, observed=280.0), 20.0)
    assert not due(replace(known, observed=300.0), 90.0)
    assert not due(replace(known, meant=True), 90.0)
    assert not due(known, 90.0, after=None)


@dataclass
class Simulation:
    """Agents, clocks and a list that does what it likes; what really happened is kept beside it."""

    true: float = 0.0
    skew: float = 0.0
    member_id: int = 1
    listed: bool = False
    quorum: bool = True
    record: Lacking | None = None
    readded: Readded | None = None
    looks: Looks | None = None
    removed_at: float = 0.0
    rejoins: list[tuple[float, float]] = field(default_factory=list)
    """When, in truth, and when its removal had happened."""

    def round(self) -> None:
        if not self.quorum:
            self.looks = None
            return
        if self.listed:
            self.looks = self.record = None
            return
        self.looks = look(self.looks, self.member_id, self.true)
        now = NOW + self.true + self.skew
        wanted = observe(self.record, self.looks, now=now, readded=self.readded)
        if is_due(self.record, wanted, self.looks, AFTER):
            self.record, self.looks = wanted, replace(self.looks, unwritten=0.0)
        seen = a_removal(lacking=self.record, now=now, position=replace(POSITION, member_id=self.member_id))
        if decide(seen) == Rejoin():
            self.rejoins.append((self.true, self.removed_at))
            self.readded = Readded(member_id=self.member_id, at=now)
            self.member_id += 1
            self.listed, self.record, self.looks = True, None, None


EVENTS = st.one_of(
    st.tuples(st.just("wait"), st.floats(1, 400)),
    st.tuples(st.just("rounds"), st.integers(1, 60)),
    st.tuples(st.just("skew"), st.floats(-3e5, 3e5)),
    st.tuples(st.sampled_from(["restart", "no quorum", "quorum", "remove", "list"]), st.just(0.0)),
)


def play(events: list[tuple[str, float]]) -> Simulation:
    run = Simulation()
    for what, much in events:
        match what:
            case "wait":
                run.true += much
            case "rounds":
                for _ in range(int(much)):
                    run.true += 10
                    run.round()
            case "skew":
                run.skew = much
            case "restart":
                run.looks = None
            case "no quorum" | "quorum":
                run.quorum = what == "quorum"
            case "remove" if run.listed:
                run.listed, run.removed_at = False, run.true
            case "list" if not run.listed:
                run.listed, run.member_id = True, run.member_id + 1
                run.round()
    return run


@given(st.lists(EVENTS, max_size=40))
@steady
def test_nobody_rejoins_before_five_minutes_whatever_clocks_and_agents_do(events: list[tuple[str, float]]) -> None:
    for when, removed_at in play(events).rejoins:
        assert when - removed_at >= AFTER


@given(st.lists(EVENTS.filter(lambda each: each[0] != "skew"), max_size=60))
@steady
def test_nobody_rejoins_twice_within_a_day(events: list[tuple[str, float]]) -> None:
    times = [removed_at for _, removed_at in play(events).rejoins]
    whens = [when for when, _ in play(events).rejoins]
    assert all(later - earlier >= DAY for earlier, later in zip(whens, times[1:], strict=False))


def test_the_simulation_does_rejoin() -> None:
    assert len(play([("rounds", 40)]).rejoins) == 1
    again = play([("rounds", 40), ("wait", DAY), ("remove", 0), ("rounds", 40)])
    assert len(again.rejoins) == 2
    meant = play([("rounds", 40), ("remove", 0), ("rounds", 40), ("wait", 2 * DAY), ("rounds", 40)])
    assert len(meant.rejoins) == 1


ANY = st.builds(
    a_removal,
    added=st.sampled_from([None, None, None, 9]),
    configured=st.booleans(),
    formed=st.sampled_from([True, True, False, None]),
    siblings=st.sampled_from([(), (), None, ("vol-x",)]),
    named_otherwise=st.sampled_from([False, False, True]),
    answers=st.sampled_from([False, False, True]),
    older=st.sampled_from([None, None, OLDER]),
    majority=st.sampled_from([AHEAD, AHEAD, None, replace(AHEAD, commit=1), replace(AHEAD, cluster_id=5)]),
    agreed=st.sampled_from([True, True, False]),
    lacking=st.sampled_from([OVER, OVER, None, replace(OVER, meant=True), replace(OVER, observed=1.0)]),
    after=st.sampled_from([AFTER, AFTER, None]),
)


@given(ANY)
@examples(2000, derandomize=True)
def test_whoever_rejoins_had_every_proof(seen: Removed) -> None:
    if decide(seen) != Rejoin():
        return
    assert seen.configured
    assert seen.formed
    assert seen.siblings == ()
    assert not any((seen.named_otherwise, seen.answers, seen.older))
    assert seen.agreed
    assert seen.majority is not None
    assert seen.majority.cluster_id == seen.position.cluster_id
    assert (seen.majority.term, seen.majority.commit) >= (seen.position.term, seen.position.commit)
    if seen.added is None:
        assert seen.after is not None
        assert seen.lacking is not None
        assert not seen.lacking.meant
        assert is_over(seen.lacking, seen.now, seen.after)
