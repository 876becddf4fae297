"""Drills: what is waited for, what is promised, and what is said of a cluster that kept it or did not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders.view import CLUSTER, a_disk, a_generation, a_host, a_member, a_view, but, listed, names_of
from clusters.drill import MemoryEtcd, PretendGround, connected, dead, healthy, reported, taken_over, unhealthy
from protokube.cli.render.drill import render_verdict, verdict_tree
from protokube.errors import InvalidRequest, Refused, TryLater
from protokube.local.drill import milestones as miles
from protokube.local.drill.judge import ONE_ROUND, judge
from protokube.local.drill.run_drill import choose, run_drill
from protokube.local.drill.scripts import SCRIPTS
from protokube.local.drill.values import DRILLS, OldHolder, Promises, Reached, Step, Timeline
from protokube.local.drill.writer import Write, WriteLog, key_of, value_of
from protokube.members.survey.listing import list_bytes
from protokube.view.cluster import ClusterView

BEFORE = a_view()
AFTER = taken_over("a", 3)(dead(0)(BEFORE))


def a_log(*numbers: int, gap: float = 0.1) -> WriteLog:
    writes = tuple(Write(number, gap * (number - 1), gap * number, number) for number in numbers)
    return WriteLog(prefix="/d/", began=0.0, ended=gap * (max(numbers, default=0) + 1), writes=writes)


def written(*numbers: int) -> dict[str, str]:
    return {key_of("/d/", number): value_of(number) for number in numbers}


def a_timeline(**changes: Any) -> Timeline:
    timeline = Timeline(
        drill="kill-master", target="master-0", key="main",
        promises=Promises(taken_over=("vol-aaaa",), gone=("master-0",), longest_gap=5.0, limits={"api": 15.0}),
        steps=(Step(0.0, "killed master-0"),), reached=(Reached("api", 6.0),), missing=(), began=0.0, before=BEFORE,
        after=AFTER, log=a_log(1, 2, 3), found=written(1, 2, 3),
    )  # fmt: skip
    return replace(timeline, **changes)


OLD = OldHolder(host="master-0", ran=True, attempts=3, acknowledged=(), landed=(), gone_after=0.4)


# The verdict.


def test_a_drill_in_which_everything_was_kept_is_good() -> None:
    verdict = judge(a_timeline(old=OLD))

    assert (verdict.good, verdict.broken, verdict.missing) == (True, (), ())
    assert (verdict.acknowledged, verdict.there, verdict.unanswered) == (3, 3, 0)
    assert verdict.same_list
    assert verdict.longest_gap == pytest.approx(0.1)


def test_writes_through_the_kubernetes_api_are_counted_apart() -> None:
    verdict = judge(a_timeline(api_log=a_log(1, 2), api_found=written(1, 2)))

    assert verdict.good
    assert verdict.api is not None
    assert (verdict.api.acknowledged, verdict.api.there, verdict.api.unanswered) == (2, 2, 0)
    assert verdict_tree(verdict)["apiWrites"]["readBack"] == 2
    assert "through the Kubernetes API: 2 acknowledged, all of them read back" in "\n".join(render_verdict(verdict))


def test_without_kubernetes_nothing_is_said_of_its_api() -> None:
    verdict = judge(a_timeline())

    assert "apiWrites" not in verdict_tree(verdict)
    assert "Kubernetes" not in "\n".join(render_verdict(verdict))


def test_writes_through_the_kubernetes_api_that_could_not_be_read_back_are_awaited() -> None:
    verdict = judge(a_timeline(api_log=a_log(1), api_found=None))

    assert verdict.missing == ("the writes through the Kubernetes API to be read back",)


BROKEN: dict[str, tuple[dict[str, Any], str]] = {
    "a write is lost": ({"found": written(1, 3)}, "1 acknowledged writes are lost: 2"),
    "a write is there that nobody made": (
        {"found": written(1, 2, 3, 9)},
        "1 keys are there that were never written: /d/00000009",
    ),
    "nothing was acknowledged": ({"log": a_log(), "found": {}}, "not one write was acknowledged"),
    "the revision went back": (
        {"log": WriteLog(prefix="/d/", began=0, ended=1, writes=(Write(1, 0, 0.1, 9), Write(2, 0.1, 0.2, 3))),
         "found": written(1, 2)},
        "the revision went back at write 2: a second history answered",
    ),
    "the gap is too long": (
        {"log": a_log(1, 2, gap=6.0), "found": written(1, 2)},
        "no write was acknowledged for 6.0 s, though a quorum was there; the limit is 5 s",
    ),
    "another cluster answers": (
        {"after": replace(AFTER, members=tuple(replace(each, cluster_id=0xBAD) for each in AFTER.members))},
        "the members are of another cluster than before: bad",
    ),
    "the list changed": (
        {"after": replace(AFTER, members=tuple(replace(each, listed=(*listed()[:2], replace(listed()[2], id=0xFF)))
                                               for each in AFTER.members))},
        "the member list of main is not the same as before",
    ),
    "an epoch went down": (
        {"after": replace(AFTER, disks=but(AFTER.disks, 1, epoch=0))},
        "the epoch of vol-bbbb went down from 1 to 0",
    ),
    "a takeover without an epoch": (
        {"after": taken_over("a", 3, raises=0)(dead(0)(BEFORE))},
        "vol-aaaa was taken over without raising its epoch: 1 before, 1 after",
    ),
    "the volume did not move": ({"after": BEFORE}, "vol-aaaa is still attached to master-0"),
    "the volume vanished": (
        {"after": reported(replace(AFTER, disks=AFTER.disks[1:]))},
        "vol-aaaa is not there any more",
    ),
    "a name came back": ({"after": BEFORE}, "master-0 came back under its old name"),
    "an address came back": (
        {"after": taken_over("a", 3, address=11)(dead(0)(BEFORE))},
        "the address 10.77.0.11 was given to a new host",
    ),
    "the old holder acknowledged": (
        {"old": replace(OLD, acknowledged=("/x",))},
        "master-0 acknowledged 1 writes after its volume was taken over",
    ),
    "the old holder's write landed": (
        {"old": replace(OLD, landed=("/x", "/y"))},
        "2 writes of master-0 are in the cluster, made after its volume was taken over",
    ),
    "the old holder stayed": (
        {"old": replace(OLD, gone_after=None)},
        f"etcd went on running on master-0 for good; it has to be gone within {ONE_ROUND:g} s",
    ),
    "the old holder stayed too long": (
        {"old": replace(OLD, gone_after=12.5)},
        f"etcd went on running on master-0 for 12.5 s; it has to be gone within {ONE_ROUND:g} s",
    ),
    "a write through the Kubernetes API is lost": (
        {"api_log": a_log(1, 2), "api_found": written(1)},
        "1 acknowledged writes through the Kubernetes API are lost: 2",
    ),
    "the Kubernetes API never answered again": (
        {"api_log": a_log(1, 2), "api_found": written(1, 2), "began": 50.0},
        "the Kubernetes API acknowledged no write after the first fault",
    ),
    "another history answered through the Kubernetes API": (
        {"api_log": WriteLog(prefix="/d/", began=0, ended=1, writes=(Write(1, 0, 0.1, 9), Write(2, 0.1, 0.2, 3))),
         "api_found": written(1, 2)},
        "through the Kubernetes API, the revision went back at write 2",
    ),
    "the names of the API were late": (
        {"reached": (Reached("api", 15.2),)},
        "it took 15.2 s until the names of the API were right; the limit is 15 s",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", BROKEN)
def test_a_promise_that_was_broken_is_said_and_the_drill_is_not_good(what: str) -> None:
    changes, sentence = BROKEN[what]
    verdict = judge(a_timeline(**changes))

    assert sentence in verdict.broken
    assert not verdict.good


@pytest.mark.parametrize("what", BROKEN)
def test_what_is_broken_is_one_thing_unless_it_takes_others_with_it(what: str) -> None:
    verdict = judge(a_timeline(**BROKEN[what][0]))
    together = {"the volume did not move", "a name came back"}

    assert len(verdict.broken) == (3 if what in together else 1), verdict.broken


def test_where_no_quorum_is_left_a_gap_of_any_length_is_no_broken_promise() -> None:
    slow = a_timeline(log=a_log(1, 2, gap=60.0), found=written(1, 2), promises=Promises())

    assert judge(slow).broken == ()


def test_what_was_still_waited_for_is_not_broken_but_not_good_either() -> None:
    verdict = judge(a_timeline(missing=("etcd-a to be healthy",), after=dead(0)(BEFORE)))

    assert (verdict.good, verdict.broken, verdict.missing) == (False, (), ("etcd-a to be healthy",))


def test_writes_that_could_not_be_read_back_are_awaited_not_lost() -> None:
    verdict = judge(a_timeline(found=None))

    assert (verdict.broken, verdict.missing, verdict.there) == ((), ("the writes to be read back",), 0)


def test_an_old_holder_without_etcd_before_it_woke_up_proves_nothing() -> None:
    verdict = judge(a_timeline(old=replace(OLD, ran=False)))

    assert verdict.missing == (
        "etcd to be still there on master-0 when it woke up; without it, the drill proves nothing",
    )


def test_a_cut_cable_lets_nobody_take_anything_over() -> None:
    verdict = judge(a_timeline(promises=Promises(same_homes=True)))

    assert verdict.broken == ("vol-aaaa was taken over by master-3, though no host was dead",)
    assert judge(a_timeline(promises=Promises(same_homes=True), after=BEFORE)).good


def replaced(new: int, **others: int) -> ClusterView:
    ids = {"etcd-a": new, **others}
    after = tuple(replace(each, id=ids.get(each.name, each.id)) for each in listed())
    return replace(BEFORE, members=tuple(replace(each, listed=after) for each in BEFORE.members))


def test_a_replaced_member_has_its_old_name_and_a_new_id() -> None:
    promises = Promises(same_list=False, replaced="etcd-a")

    assert judge(a_timeline(promises=promises, after=replaced(0xEE))).good
    assert judge(a_timeline(promises=promises, after=replaced(0xA0))).broken == (
        "etcd-a has its old id on a new volume: it must have joined as a new member",
    )
    assert judge(a_timeline(promises=promises, after=replaced(0xEE, **{"etcd-b": 0xEF}))).broken == (
        "etcd-b changed in the member list, though only etcd-a was replaced",
    )


def test_a_replaced_member_that_is_missing_is_named() -> None:
    gone = replace(BEFORE, members=tuple(replace(each, listed=listed(("b", "c"))) for each in BEFORE.members))
    verdict = judge(a_timeline(promises=Promises(same_list=False, replaced="etcd-a"), after=gone))

    assert verdict.broken == ("the members are etcd-b, etcd-c, not etcd-a, etcd-b, etcd-c as before",)


def test_the_list_of_the_other_etcd_cluster_has_to_stay_whatever_happens_to_this_one() -> None:
    def both(view: ClusterView, last: int) -> ClusterView:
        other = (*listed()[:2], replace(listed()[2], id=last))
        events = tuple(
            replace(each, member=each.member.replace("main", "events"), listed=other) for each in view.members
        )
        record = a_generation()
        return replace(view, members=(*view.members, *events), generations={"main": record, "events": record})

    promises = Promises(same_list=False, replaced="etcd-a")
    timeline = a_timeline(promises=promises, before=both(BEFORE, 0xA2), after=both(replaced(0xEE), 0xFF))

    assert judge(timeline).broken == ("the member list of events is not the same as before",)
    assert judge(replace(timeline, after=both(replaced(0xEE), 0xA2))).good


def test_a_gap_is_told_from_the_first_blow_on() -> None:
    assert judge(a_timeline(began=0.05)).gap_began == pytest.approx(-0.05, abs=0.31)


def test_many_lost_writes_are_told_by_a_few() -> None:
    numbers = tuple(range(1, 21))
    verdict = judge(a_timeline(log=a_log(*numbers), found={}))

    assert verdict.broken == ("20 acknowledged writes are lost: 1, 2, 3, 4, 5 and 15 more",)


@settings(deadline=None)  # a busy machine is no bug
@given(st.sets(st.integers(1, 30), min_size=1), st.sets(st.integers(1, 30)))
def test_a_drill_is_good_exactly_if_every_acknowledged_write_is_there_and_no_other(
    sent: set[int], found: set[int]
) -> None:
    verdict = judge(a_timeline(log=a_log(*sorted(sent)), found=written(*found), promises=Promises(same_list=False)))

    assert verdict.good == (sent == found)
    assert verdict.there == len(sent & found)


@settings(deadline=None)  # a busy machine is no bug
@given(st.permutations(list(listed())))
def test_the_order_of_a_list_does_not_make_it_another(members: list[Any]) -> None:
    assert list_bytes(members) == list_bytes(listed())


# What is waited for.


def test_a_host_is_dead_when_it_is_gone_not_running_or_declared_dead() -> None:
    mile = miles.is_dead("master-0")

    assert mile.reached(BEFORE) == ""
    for hosts in (BEFORE.hosts[1:], but(BEFORE.hosts, 0, alive=False), but(BEFORE.hosts, 0, dead=True)):
        assert mile.reached(replace(BEFORE, hosts=hosts)) == "master-0 is dead"


def test_a_volume_is_attached_to_a_successor_and_not_to_the_dead() -> None:
    mile = miles.is_attached(a_disk("a"), ["master-0"])

    assert mile.reached(BEFORE) == ""
    assert mile.reached(dead(0)(BEFORE)) == ""
    assert mile.reached(AFTER) == "vol-aaaa is attached to master-3 (10.77.0.14)"


def test_a_name_is_right_when_it_points_at_the_new_host() -> None:
    mile = miles.is_named(a_member("a"), ["master-0"])

    assert mile.reached(BEFORE) == ""
    assert mile.reached(replace(AFTER, records=BEFORE.records)) == ""
    assert mile.reached(AFTER) == f"etcd-a.internal.{CLUSTER} points at 10.77.0.14"


def test_a_member_is_healthy_again_only_as_a_voter_on_another_host() -> None:
    mile = miles.is_healthy("main/a", "etcd-a", ["master-0"])

    assert mile.reached(BEFORE) == ""
    assert mile.reached(replace(AFTER, members=but(AFTER.members, 0, learner=True))) == ""
    assert mile.reached(unhealthy("a")(AFTER)) == ""
    assert mile.reached(AFTER) == "etcd-a is healthy on master-3"


def test_peers_are_connected_when_both_sides_have_called() -> None:
    mile = miles.has_peers("main/a", "etcd-a")
    new = next(index for index, each in enumerate(AFTER.hosts) if each.name == "master-3")

    assert mile.reached(AFTER) == "etcd-a and its peers are connected"
    assert mile.reached(replace(AFTER, hosts=but(AFTER.hosts, new, peers=("10.77.0.12",)))) == ""
    assert mile.reached(replace(AFTER, hosts=but(AFTER.hosts, 0, peers=("10.77.0.13",)))) == ""


def test_the_names_of_the_api_are_right_without_the_dead_and_with_all_others() -> None:
    mile = miles.api_lists_the_living(["master-0"])
    addresses = {"a": "10.77.0.11", "b": "10.77.0.12", "c": "10.77.0.13"}

    assert mile.reached(BEFORE) == ""
    assert mile.reached(replace(BEFORE, records=names_of({"b": "10.77.0.12", "c": "10.77.0.13"}))) != ""
    assert miles.api_lists_the_living([]).reached(replace(BEFORE, records=names_of(addresses))) != ""
    assert mile.reached(replace(BEFORE, hosts=(a_host(0),))) == ""


def test_after_a_loss_everything_is_waited_for_in_the_order_it_comes() -> None:
    awaited = [each.awaited for each in miles.after_a_loss(BEFORE, ["master-0"])]

    assert awaited == [
        "master-0 to be dead",
        "vol-aaaa to be attached to a successor",
        f"etcd-a.internal.{CLUSTER} to point at its new host",
        "etcd-a to be healthy",
        "etcd-a and its peers to be connected",
        "the name of the API to list exactly the masters that live",
        "the cluster to be ready",
    ]
    assert all(each.reached(AFTER) for each in miles.after_a_loss(BEFORE, ["master-0"]))


def test_a_host_that_still_runs_is_not_waited_for_to_be_dead() -> None:
    awaited = [each.awaited for each in miles.after_a_loss(BEFORE, ["master-0"], still_running=True)]

    assert "master-0 to be dead" not in awaited
    assert "etcd-a to be connected to its peers" in awaited


def test_peers_may_stay_connected_to_a_frozen_host_as_its_kernel_answers() -> None:
    mile = miles.has_peers("main/a", "etcd-a", not_on=["master-0"], both_ways=False)
    new = next(index for index, each in enumerate(AFTER.hosts) if each.name == "master-3")

    assert mile.reached(replace(AFTER, hosts=but(AFTER.hosts, new, peers=("10.77.0.12",)))) == ""
    assert mile.reached(replace(AFTER, hosts=but(AFTER.hosts, 0, peers=("10.77.0.13",)))) != ""


def test_a_new_volume_is_one_with_another_id_for_the_same_member() -> None:
    disk = a_disk("a")
    new = replace(BEFORE, disks=(a_disk("a", id="vol-new"), *BEFORE.disks[1:]))

    assert miles.is_not_listed("vol-aaaa").reached(BEFORE) == ""
    assert miles.is_not_listed("vol-aaaa").reached(new) == "vol-aaaa is gone"
    assert miles.is_replaced(disk).reached(BEFORE) == ""
    assert miles.is_replaced(disk).reached(new) == "vol-new was made for main/a"
    assert miles.is_voter_on_another(disk, "etcd-a").reached(new) == ""
    moved = replace(new, members=but(new.members, 0, volume="vol-new"))
    assert miles.is_voter_on_another(disk, "etcd-a").reached(moved) == "etcd-a is a healthy voter on vol-new"


# Whole drills, on a pretended cluster.


def heals(ground: PretendGround, *, after: float = 1.0) -> None:
    """master-0 dies, master-3 takes its volume over."""

    def die(_: dict[str, Any]) -> None:
        ground.after(0.1, dead(0))
        ground.after(after, taken_over("a", 3))

    ground.reactions |= {"kill_host": die, "declare_dead": die}


def test_a_killed_master_is_waited_for_until_its_successor_serves() -> None:
    ground = PretendGround()
    heals(ground)
    steps: list[Step] = []
    verdict = run_drill("kill-master", ground, "a", 60, steps.append)

    assert verdict.good, verdict
    assert ground.calls == [("kill_host", {"host": "master-0"})]
    assert tuple(steps) == verdict.steps
    assert [each.text for each in verdict.steps][:3] == [
        "killed master-0",
        "master-0 is dead",
        "vol-aaaa is attached to master-3 (10.77.0.14)",
    ]
    assert verdict.steps[0].at == 0.0
    assert [each.at for each in verdict.steps] == sorted(each.at for each in verdict.steps)
    assert 1.0 <= verdict.steps[2].at <= 1.1
    assert verdict.acknowledged > 5


def test_the_leader_is_meant_where_no_member_is_named() -> None:
    assert choose(BEFORE, None).name == "etcd-a"
    moved = replace(BEFORE, members=tuple(replace(each, leader_id=0xA2) for each in BEFORE.members))
    assert choose(moved, None).name == "etcd-c"


@pytest.mark.parametrize("asked", ["b", "main/b", "etcd-b", f"etcd-b.internal.{CLUSTER}"])
def test_a_member_can_be_named_in_every_way_it_is_called(asked: str) -> None:
    assert choose(BEFORE, asked).member == "main/b"


def test_a_member_that_is_not_there_is_said_with_the_one_that_was_meant() -> None:
    with pytest.raises(InvalidRequest) as caught:
        choose(BEFORE, "main/bb")

    assert caught.value.hint == "did you mean `main/b`?"


def test_a_drill_does_not_begin_with_a_cluster_that_is_not_ready() -> None:
    ground = PretendGround(before=replace(BEFORE, generations={"main": a_generation(open=True)}))
    with pytest.raises(TryLater) as caught:
        run_drill("kill-master", ground, None, 60)

    assert caught.value.saw == "the creation of main is not closed yet"
    assert ground.calls == []


def test_a_drill_does_not_begin_where_not_even_the_first_writes_are_acknowledged() -> None:
    ground = PretendGround(MemoryEtcd(lambda _: "away"))
    with pytest.raises(TryLater, match="not even the first writes"):
        run_drill("kill-master", ground, None, 60)

    assert ground.calls == []


def test_when_the_time_is_up_what_is_still_waited_for_is_said() -> None:
    ground = PretendGround()
    ground.reactions["kill_host"] = lambda _: ground.after(0.1, dead(0))
    verdict = run_drill("kill-master", ground, "a", 3)

    assert verdict.broken == ()
    assert verdict.missing[0] == "vol-aaaa to be attached to a successor"
    assert "the cluster to be ready" in verdict.missing


def test_a_lost_write_is_found_by_reading_everything_back() -> None:
    ground = PretendGround(MemoryEtcd(lambda number: "lost" if number == 3 else "kept"))
    heals(ground)

    assert run_drill("kill-master", ground, "a", 60).broken == ("1 acknowledged writes are lost: 3",)


def test_without_a_quorum_at_the_end_nothing_is_read_back() -> None:
    ground = PretendGround()
    ground.readable = False
    heals(ground)

    assert run_drill("kill-master", ground, "a", 60).missing == ("the writes to be read back",)


def test_a_paused_master_is_thawed_beside_its_successor_and_removed_at_the_end() -> None:
    ground = PretendGround()
    heals(ground)
    verdict = run_drill("pause-master", ground, "a", 60)

    assert [call for call, _ in ground.calls] == ["freeze_host", "declare_dead", "thaw_host", "kill_host"]
    assert ground.calls[1][1] == {"host": "master-0", "kill": False}
    assert verdict.good, verdict
    assert verdict.old is not None
    assert (verdict.old.ran, verdict.old.acknowledged, verdict.old.landed) == (True, (), ())
    assert verdict.old.attempts >= 4
    assert verdict.old.gone_after == pytest.approx(0.3, abs=0.11)


def test_an_old_holder_that_acknowledges_or_lands_or_stays_breaks_a_promise() -> None:
    ground = PretendGround()
    heals(ground)
    ground.old_acknowledges, ground.old_lands, ground.old_lasts = True, True, 1e9
    verdict = run_drill("pause-master", ground, "a", 60)

    assert len(verdict.broken) == 4  # the fourth: keys that nobody of us wrote
    assert ground.calls[-1] == ("kill_host", {"host": "master-0"})


def test_a_paused_master_whose_volume_nobody_takes_is_removed_all_the_same() -> None:
    ground = PretendGround()
    verdict = run_drill("pause-master", ground, "a", 2)

    assert "vol-aaaa to be attached to a successor" in verdict.missing
    assert [call for call, _ in ground.calls] == ["freeze_host", "declare_dead", "kill_host"]


def test_the_cable_is_put_back_and_the_member_comes_back() -> None:
    ground = PretendGround()
    ground.reactions["cut_host"] = lambda arguments: ground.after(
        0.2, unhealthy("a") if arguments["down"] else healthy("a")
    )
    verdict = run_drill("partition", ground, "a", 60)

    assert verdict.good, verdict
    assert ground.calls == [
        ("cut_host", {"host": "master-0", "down": True}),
        ("cut_host", {"host": "master-0", "down": False}),
    ]
    times = {each.text: each.at for each in verdict.steps}
    assert times["put the cable of master-0 back after 8 s"] >= 8.0


def test_the_cable_is_put_back_also_if_the_cut_was_never_seen() -> None:
    ground = PretendGround()
    verdict = run_drill("partition", ground, "a", 1)

    assert verdict.missing == ("etcd-a to be cut off",)
    assert ground.calls[-1] == ("cut_host", {"host": "master-0", "down": False})


def test_a_lost_volume_comes_back_as_another_one() -> None:
    ground = PretendGround()

    def lose(arguments: dict[str, Any]) -> None:
        def gone(view: ClusterView) -> ClusterView:
            return unhealthy("a")(replace(view, disks=view.disks[1:]))

        def new(view: ClusterView) -> ClusterView:
            after = tuple(replace(each, id=0xEE if each.name == "etcd-a" else each.id) for each in listed())
            members = tuple(replace(each, listed=after) for each in view.members)
            members = but(members, 0, volume="vol-new", id=0xEE, leader_id=0xA1, healthy=True)
            members = tuple(replace(each, leader_id=0xA1) for each in members)
            return connected(replace(view, disks=(a_disk("a", id="vol-new"), *view.disks), members=members))

        assert arguments == {"volume": "vol-aaaa"}
        ground.after(0.1, gone)
        ground.after(3.0, new)

    ground.reactions["delete_volume"] = lose
    verdict = run_drill("lose-volume", ground, "a", 60)

    assert verdict.good, verdict
    assert not verdict.same_list
    assert [each.text for each in verdict.steps][:3] == [
        "deleted vol-aaaa",
        "vol-aaaa is gone",
        "vol-new was made for main/a",
    ]


def test_after_a_power_failure_all_hosts_are_others_and_all_writes_are_there() -> None:
    ground = PretendGround()

    def fail(_: dict[str, Any]) -> None:
        for number, short in enumerate("abc"):
            ground.after(0.1, dead(number))
            ground.after(2.0 + number, taken_over(short, 3 + number))

    ground.reactions["power_off"] = fail
    verdict = run_drill("power-off", ground, None, 60)

    assert verdict.good, verdict
    assert verdict.target == "all hosts: master-0, master-1, master-2"
    assert verdict.same_list


def test_a_host_that_survives_a_power_failure_under_its_old_name_is_said() -> None:
    ground = PretendGround()

    def fail(_: dict[str, Any]) -> None:
        for number, short in enumerate("abc"):
            ground.after(0.1, dead(number))
            ground.after(2.0, taken_over(short, (number + 1) % 3))

    ground.reactions["power_off"] = fail
    verdict = run_drill("power-off", ground, None, 5)

    assert "master-0 came back under its old name" in verdict.broken


def test_a_cloud_that_refuses_the_blow_ends_the_drill() -> None:
    ground = PretendGround()

    def refuse(_: dict[str, Any]) -> None:
        raise Refused("master-0 does not run")

    ground.reactions["kill_host"] = refuse
    with pytest.raises(Refused, match="does not run"):
        run_drill("kill-master", ground, "a", 60)


def test_a_cloud_that_fails_after_the_first_blow_costs_the_drill_but_not_the_verdict() -> None:
    ground = PretendGround()
    heals(ground)

    def fail(_: dict[str, Any]) -> None:
        raise TryLater("the local cloud does not answer thaw_host", saw="timed out")

    ground.reactions["thaw_host"] = fail
    verdict = run_drill("pause-master", ground, "a", 60)

    assert verdict.missing == ("the local cloud does not answer thaw_host: timed out",)
    assert verdict.broken == ()
    assert ground.calls[-1] == ("kill_host", {"host": "master-0"})


def test_a_single_master_may_be_away_for_as_long_as_it_takes() -> None:
    one = replace(
        BEFORE, hosts=(a_host(0, peers=()),), disks=(a_disk("a"),), members=(a_member("a", listed=listed(("a",))),),
        records=names_of({"a": "10.77.0.11"}),
    )  # fmt: skip
    ground = PretendGround(before=one)
    heals(ground, after=30.0)
    verdict = run_drill("kill-master", ground, None, 60)

    assert verdict.good, verdict


def test_every_drill_has_a_script_and_a_sentence() -> None:
    assert list(SCRIPTS) == list(DRILLS)
