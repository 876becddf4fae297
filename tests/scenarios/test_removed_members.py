"""A member that somebody removed from etcd's list by hand: stopped, counted for five minutes, and back once a day.

Whoever removes it again within that day means it. Its data is set aside, never deleted, and only while a majority of
those that are left has everything that is on the disk.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from clusters.scenario.acts import (
    add_by_hand,
    asides,
    boot,
    power_off,
    refusals,
    remove_by_hand,
    remove_the_one_that_came_furthest,
    restore_while_down,
    take_over,
    waits,
)
from clusters.scenario.cluster import Stage
from clusters.scenario.edges import AgentDied
from clusters.scenario.host import Host

DAY = 86400.0
COUNTING = "it rejoins by itself after 5 minutes, unless it is listed again or taken out of the configuration before"


def ids(stage: Stage) -> dict[str, int]:
    members = stage.etcd["main"].led()[0].db.state.members
    return {each.name.removeprefix("etcd-"): each.id for each in members}


def phase(host: Host, volume: str) -> str:
    return str(next(each["phase"] for each in host.status["volumes"] if each["id"] == volume))


def is_stopped(stage: Stage, member: str) -> bool:
    return any(f"of main/{member} was removed" in text for text in waits(stage) | refusals(stage)) and (
        stage.holder_of(member).links() == {}
    )


def pass_days(stage: Stage, days: int) -> None:
    """Nobody does anything meanwhile; then rounds go on."""
    stage.clock.advance(days * DAY)
    stage.run(60)


def all_back(stage: Stage) -> bool:
    return stage.healthy() and not waits(stage) and not refusals(stage)


def test_a_member_that_is_removed_while_it_serves_is_stopped_and_rejoins_after_five_minutes(formed: Stage) -> None:
    host, volume, model = formed.holder_of("b"), formed.volume_of("b"), formed.etcd["main"]
    old = remove_by_hand(formed, "b")
    noticed = formed.until(lambda: is_stopped(formed, "b"))
    assert noticed <= 60
    starts, seen = model.starts, set()
    for _ in range(56):
        formed.run(5)
        seen |= {text for text in waits(formed) if "main/b" in text}
        assert phase(host, volume) == "removed"
        assert not refusals(formed)
    assert seen == {f"member {old:x} of main/b was removed from etcd's member list; {COUNTING}"}
    assert model.starts == starts, "a member that was removed is not started again and again"
    assert asides(formed, "b") == []

    formed.until(lambda: all_back(formed), within=90)

    assert ids(formed)["b"] != old
    assert asides(formed, "b") == ["data.aside-1"]
    record = formed.generation()
    assert record.readded["b"].member_id == old
    assert record.lacking == {}
    assert model.acknowledged <= model.led()[0].db.state.writes


def test_five_minutes_are_not_cut_short_by_anything(formed: Stage) -> None:
    remove_by_hand(formed, "b")
    began = formed.clock.seconds
    formed.until(lambda: asides(formed, "b"), within=400)
    assert formed.clock.seconds - began >= 300


def test_a_member_that_is_removed_while_its_machine_is_down_rejoins_five_minutes_after_it_is_back(
    formed: Stage,
) -> None:
    power_off(formed, "b")
    old = remove_by_hand(formed, "b")
    formed.run(600)  # nobody holds its disk: nobody counts
    boot(formed, "b")
    began = formed.clock.seconds
    formed.until(lambda: asides(formed, "b"), within=400)
    assert formed.clock.seconds - began >= 300
    formed.until(lambda: all_back(formed), within=90)
    assert ids(formed)["b"] != old


def test_a_leader_that_is_removed_rejoins(formed: Stage) -> None:
    leader = formed.etcd["main"].led()[0].name.removeprefix("etcd-")
    remove_by_hand(formed, leader)
    formed.until(lambda: all_back(formed) and asides(formed, leader), within=500)


def test_the_second_removal_within_a_day_is_meant_and_stays_so_for_ever(formed: Stage) -> None:
    remove_by_hand(formed, "b")
    formed.until(lambda: asides(formed, "b") and all_back(formed), within=500)
    formed.run(600)
    second = remove_by_hand(formed, "b")
    formed.until(lambda: refusals(formed))
    volume, host = formed.volume_of("b"), formed.holder_of("b")
    (refusal,) = refusals(formed)
    assert refusal == (
        f"member {second:x} of main/b was removed from etcd's member list again within a day of its rejoining: that is"
        " taken to be meant"
    )
    assert phase(host, volume) == "removed"
    assert host.round_ is not None
    (note,) = host.round_.report.person
    assert "etcdctl member add etcd-b --learner --peer-urls=https://etcd-b" in note.hint
    assert "take b out of the members of main in the spec" in note.hint
    pass_days(formed, 2)
    assert refusals(formed) == {refusal}
    assert asides(formed, "b") == ["data.aside-1"]

    add_by_hand(formed, "b")  # the way back that the hint names
    formed.until(lambda: all_back(formed), within=90)
    assert asides(formed, "b") == ["data.aside-1", "data.aside-2"]


def test_a_removal_more_than_a_day_later_heals_by_itself_again(formed: Stage) -> None:
    remove_by_hand(formed, "b")
    formed.until(lambda: asides(formed, "b") and all_back(formed), within=500)
    pass_days(formed, 1)
    remove_by_hand(formed, "b")
    formed.until(lambda: len(asides(formed, "b")) == 2 and all_back(formed), within=500)


@pytest.mark.parametrize("jump", [DAY, -DAY, 10 * DAY])
def test_a_clock_that_jumps_never_makes_it_rejoin_sooner_or_twice_a_day(formed: Stage, jump: float) -> None:
    remove_by_hand(formed, "b")
    began = formed.clock.seconds
    formed.run(100)
    formed.clock.wall += jump
    formed.until(lambda: asides(formed, "b"), within=500)
    assert formed.clock.seconds - began >= 300
    formed.until(lambda: all_back(formed), within=90)
    formed.clock.wall += 2 * DAY
    remove_by_hand(formed, "b")
    formed.run(700)
    assert len(asides(formed, "b")) == 1
    assert any("taken to be meant" in text for text in refusals(formed))


def test_an_agent_that_starts_anew_goes_on_counting(formed: Stage) -> None:
    remove_by_hand(formed, "b")
    began = formed.clock.seconds
    formed.run(200)
    formed.agent_dies(formed.holder_of("b"))
    formed.until(lambda: asides(formed, "b"), within=600)
    assert 300 <= formed.clock.seconds - began <= 300 + 60 + 60 + 30


def test_another_machine_goes_on_counting(formed: Stage) -> None:
    remove_by_hand(formed, "b")
    began = formed.clock.seconds
    formed.run(200)
    host = formed.holder_of("b")
    formed.kill(host)
    formed.replace_machine(host)
    formed.until(lambda: asides(formed, "b"), within=600)
    assert 300 <= formed.clock.seconds - began <= 300 + 60 + 60 + 30
    formed.until(lambda: all_back(formed), within=90)


def test_nothing_is_counted_while_no_quorum_says_so(formed: Stage) -> None:
    remove_by_hand(formed, "b")
    formed.until(lambda: is_stopped(formed, "b"))
    formed.freeze(formed.holder_of("c"))
    formed.run(900)
    assert asides(formed, "b") == []
    assert formed.holder_of("b").links() == {}, "what a quorum removed does not start without one"
    assert any("no quorum can be asked about it now" in text for text in waits(formed))
    formed.thaw(formed.holder_of("c"))
    formed.until(lambda: asides(formed, "b") and all_back(formed), within=600)


def test_a_removal_that_nobody_can_record_waits(formed: Stage) -> None:
    formed.store.read_only = True
    remove_by_hand(formed, "b")
    formed.run(900)
    assert asides(formed, "b") == []
    assert any("since when cannot be recorded" in text for text in waits(formed))
    formed.store.read_only = False
    began = formed.clock.seconds
    formed.until(lambda: asides(formed, "b") and all_back(formed), within=600)
    assert formed.clock.seconds - began >= 300


def test_two_of_three_that_are_removed_one_after_the_other_both_rejoin(formed: Stage) -> None:
    remove_by_hand(formed, "b")
    formed.run(20)
    remove_by_hand(formed, "c")
    formed.until(lambda: asides(formed, "b") and asides(formed, "c") and all_back(formed), within=900)
    model = formed.etcd["main"]
    assert model.acknowledged <= model.led()[0].db.state.writes


@pytest.mark.parametrize("learner", [True, False])
def test_a_member_that_a_person_removes_and_adds_again_joins_as_that_entry_at_once(
    formed: Stage, learner: bool
) -> None:
    old = remove_by_hand(formed, "b")
    new = add_by_hand(formed, "b", learner=learner)
    formed.until(lambda: asides(formed, "b") and all_back(formed), within=200)
    assert ids(formed)["b"] != old
    if learner:
        assert ids(formed)["b"] == new
    assert formed.generation().superseded == {}


def test_the_count_ends_when_the_peer_url_is_listed_again(formed: Stage) -> None:
    remove_by_hand(formed, "b")
    formed.run(200)
    assert formed.generation().lacking.keys() == {"b"}
    add_by_hand(formed, "b")
    formed.until(lambda: all_back(formed), within=200)
    assert formed.generation().lacking == {}


def test_it_stays_out_where_the_spec_says_so(formed: Stage) -> None:
    (etcd,) = formed.wanted.etcd
    formed.wanted = replace(formed.wanted, etcd=(replace(etcd, rejoin_removed_after=None),))
    for host in formed.hosts.values():
        formed.start_agent(host)
    remove_by_hand(formed, "b")
    formed.run(1200)
    assert asides(formed, "b") == []
    assert any("maintenance.rejoinRemoved is off" in text for text in refusals(formed))


def test_it_does_not_rejoin_once_the_configuration_does_not_list_it(formed: Stage) -> None:
    remove_by_hand(formed, "b")
    formed.until(lambda: is_stopped(formed, "b"))
    (etcd,) = formed.wanted.etcd
    left = tuple(each for each in etcd.members if each.short != "b")
    formed.wanted = replace(formed.wanted, etcd=(replace(etcd, members=left),))
    for host in formed.hosts.values():
        formed.start_agent(host)
    formed.run(1200)
    assert asides(formed, "b") == []
    assert set(ids(formed)) == {"a", "c"}


def test_an_older_copy_of_a_removed_members_disk_is_a_persons(formed: Stage) -> None:
    copied = formed.copy_disk(formed.volume_of("b"))
    take_over(formed, "b")
    remove_by_hand(formed, "b")
    restore_while_down(formed, "b", copied)
    formed.run(900)
    assert asides(formed, "b") == []
    assert any("is an older copy of its disk" in text for text in refusals(formed))


def test_a_removed_member_that_came_further_than_the_others_is_kept_for_a_person(formed: Stage) -> None:
    remove_the_one_that_came_furthest(formed)
    formed.run(20)
    assert any("it may hold the newest data" in text for text in refusals(formed))
    assert asides(formed, "b") == []


@pytest.mark.parametrize("passages", range(0, 40, 2))
def test_an_agent_that_dies_anywhere_while_a_member_rejoins_finishes_it(formed: Stage, passages: int) -> None:
    remove_by_hand(formed, "b")
    host = formed.holder_of("b")
    formed.until(lambda: "b" in formed.generation().lacking)
    formed.run(280)

    def die() -> None:
        raise AgentDied

    def over() -> bool:
        known = formed.generation().lacking.get("b")
        return known is None or known.observed >= 300

    while not over():
        formed.rounds(1, seconds=5)
    host.fuse.set(passages, die)
    formed.rounds(12, seconds=5)
    host.fuse.left = -1
    formed.until(lambda: asides(formed, "b") and all_back(formed), within=900)
    assert len(asides(formed, "b")) == 1
