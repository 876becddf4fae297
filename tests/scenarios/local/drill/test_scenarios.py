"""Drills on pretended clusters that heal early, late, in another order, only in part, or into something wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from builders.view import SHORTS, a_disk, a_generation, a_host, a_view, but, listed
from clusters.drill import (
    MemoryEtcd,
    PretendGround,
    PretendOld,
    Transform,
    connected,
    dead,
    healthy,
    taken_over,
    unhealthy,
)
from protokube.local.drill.run_drill import run_drill
from protokube.local.drill.scripts import API_LIMIT, CUT_SECONDS, LONGEST_GAP
from protokube.local.drill.values import DRILLS, Step, Verdict
from protokube.records import Record
from protokube.view.cluster import ClusterView
from protokube.view.values import HostView

FEW = settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])
BLOWS = {
    "kill-master": "kill_host",
    "lose-volume": "delete_volume",
    "partition": "cut_host",
    "pause-master": "declare_dead",
    "power-off": "power_off",
}


def lost_volume(view: ClusterView) -> ClusterView:
    return unhealthy("a")(replace(view, disks=tuple(each for each in view.disks if each.id != "vol-aaaa")))


def new_volume(view: ClusterView) -> ClusterView:
    after = tuple(replace(each, id=0xEE if each.name == "etcd-a" else each.id) for each in listed())
    members = tuple(replace(each, listed=after, leader_id=0xA1) for each in view.members)
    members = but(members, 0, volume="vol-new", id=0xEE, healthy=True)
    return connected(replace(view, disks=(a_disk("a", id="vol-new"), *view.disks), members=members))


def reacting(drill: str, healed: float, api: MemoryEtcd | None = None) -> PretendGround:
    """A cluster in which the blow of this drill hits at once, and which is whole again so many seconds later."""
    ground = PretendGround(api=api)

    def react(arguments: dict[str, Any]) -> None:
        match drill:
            case "kill-master" | "pause-master":
                ground.after(0.0, dead(0))
                ground.after(healed, taken_over("a", 3))
            case "power-off":
                for number, short in enumerate(SHORTS):
                    ground.after(0.0, dead(number))
                    ground.after(healed, taken_over(short, 3 + number))
            case "lose-volume":
                ground.after(0.0, lost_volume)
                ground.after(healed, new_volume)
            case _:
                ground.after(
                    0.0 if arguments["down"] else healed, unhealthy("a") if arguments["down"] else healthy("a")
                )

    ground.reactions[BLOWS[drill]] = react
    return ground


def at(verdict: Verdict, text: str) -> float:
    return next(each.at for each in verdict.steps if text in each.text)


@pytest.mark.parametrize("drill", DRILLS)
def test_every_drill_on_a_cluster_that_heals_is_good(drill: str) -> None:
    verdict = run_drill(drill, reacting(drill, 2.0), "a", 60)

    assert verdict.good, verdict
    assert verdict.there == verdict.acknowledged > 0
    assert verdict.steps[-1].at < 2.0 + CUT_SECONDS + 2.0


@pytest.mark.parametrize(("late", "good"), [(0.0, True), (5.0, True), (1e9, False)])
def test_writes_to_the_api_that_are_answered_only_after_the_last_milestone_are_waited_for(
    late: float, good: bool
) -> None:
    """A request that began while nobody answered ends seconds after the cluster is ready."""
    api = MemoryEtcd()
    ground = reacting("power-off", 2.0, api)
    hit = ground.reactions["power_off"]

    def power_off(arguments: dict[str, Any]) -> None:
        hit(arguments)
        answers = ground.now() + 2.0 + late
        api.fate = lambda _: "kept" if ground.now() > answers else "away"

    ground.reactions["power_off"] = power_off
    verdict = run_drill("power-off", ground, "a", 60)

    assert verdict.good == good
    assert verdict.broken == (() if good else ("the Kubernetes API acknowledged no write after the first fault",))
    assert ground.now() < 100.0 + 30.0


@pytest.mark.parametrize("drill", DRILLS)
def test_every_drill_on_a_cluster_that_does_not_heal_ends_in_time_and_says_what_it_waits_for(drill: str) -> None:
    ground = reacting(drill, 1e9)
    verdict = run_drill(drill, ground, "a", 3)

    assert not verdict.good
    assert verdict.broken == ()
    assert "the cluster to be ready" in verdict.missing
    assert verdict.lacks == ground.look().lacks != ()
    assert ground.now() < 100.0 + 3 + CUT_SECONDS + 5


@pytest.mark.parametrize("drill", DRILLS)
def test_what_was_frozen_or_cut_is_undone_also_when_nothing_heals(drill: str) -> None:
    ground = reacting(drill, 1e9)
    run_drill(drill, ground, "a", 3)
    methods = [call for call, _ in ground.calls]

    assert methods.count("freeze_host") <= methods.count("kill_host")
    cuts = [arguments["down"] for call, arguments in ground.calls if call == "cut_host"]
    assert cuts in ([], [True, False])


UNDONE: dict[str, tuple[str, dict[str, Any]]] = {
    "partition": ("cut_host", {"host": "master-0", "down": False}),
    "pause-master": ("kill_host", {"host": "master-0"}),
}


def undone(drill: str, ground: PretendGround) -> bool:
    """Undone once, and nothing was done to anybody afterwards."""
    return ground.calls.count(UNDONE[drill]) == 1 and ground.calls[-1] == UNDONE[drill]


@pytest.mark.parametrize("drill", UNDONE)
@pytest.mark.parametrize("error", [BrokenPipeError, KeyboardInterrupt])
def test_what_was_frozen_or_cut_is_undone_whichever_line_nobody_could_be_told(
    drill: str, error: type[BaseException]
) -> None:
    lines = len(run_drill(drill, reacting(drill, 2.0), "a", 60).steps)
    assert lines > 4
    for last in range(lines):
        ground, numbers = reacting(drill, 2.0), iter(range(lines))

        def on_step(_: Step, last: int = last, numbers: Iterator[int] = numbers) -> None:
            if next(numbers) == last:
                raise error

        with pytest.raises(error):
            run_drill(drill, ground, "a", 60, on_step)
        assert undone(drill, ground), (last, ground.calls)


@pytest.mark.parametrize(("drill", "blow"), [("partition", "cut_host"), ("pause-master", "freeze_host")])
def test_a_blow_that_hit_before_its_answer_was_waited_for_in_vain_is_undone(drill: str, blow: str) -> None:
    ground = reacting(drill, 2.0)

    def hit(arguments: dict[str, Any]) -> None:
        if arguments.get("down", True):
            raise KeyboardInterrupt

    ground.reactions[blow] = hit
    with pytest.raises(KeyboardInterrupt):
        run_drill(drill, ground, "a", 60)
    assert ground.calls[0][0] == blow
    assert undone(drill, ground)


def test_a_drill_that_is_stopped_before_its_first_blow_does_nothing_to_anybody() -> None:
    class Stopped(PretendGround):
        aimed = False

        def old_host(self, host: HostView, client_port: int) -> PretendOld:
            self.aimed = True
            return super().old_host(host, client_port)

        def now(self) -> float:
            if self.aimed:
                raise KeyboardInterrupt
            return super().now()

    ground = Stopped()
    with pytest.raises(KeyboardInterrupt):
        run_drill("pause-master", ground, "a", 60)
    assert ground.calls == []


@pytest.mark.parametrize("drill", DRILLS)
def test_every_drill_finds_a_write_that_was_acknowledged_and_forgotten(drill: str) -> None:
    ground = reacting(drill, 2.0)
    ground.etcd = MemoryEtcd(lambda number: "lost" if number == 7 else "kept")
    verdict = run_drill(drill, ground, "a", 60)

    assert verdict.broken == ("1 acknowledged writes are lost: 7",)
    assert verdict.there == verdict.acknowledged - 1


@pytest.mark.parametrize("drill", DRILLS)
def test_every_drill_finds_a_second_history(drill: str) -> None:
    ground = reacting(drill, 2.0)
    ground.etcd = MemoryEtcd(lambda number: "back" if number == 9 else "kept")
    verdict = run_drill(drill, ground, "a", 60)

    assert verdict.broken == ("the revision went back at write 9: a second history answered",)


@pytest.mark.parametrize("drill", DRILLS)
def test_every_drill_finds_that_the_members_became_another_cluster(drill: str) -> None:
    ground = reacting(drill, 2.0)

    def another(view: ClusterView) -> ClusterView:
        return replace(view, members=tuple(replace(each, cluster_id=0xBAD) for each in view.members))

    ground.after(2.5, another)

    assert "the members are of another cluster than before: bad" in run_drill(drill, ground, "a", 60).broken


@pytest.mark.parametrize("drill", DRILLS)
def test_writes_that_fail_for_a_while_are_counted_and_nothing_more(drill: str) -> None:
    ground = reacting(drill, 2.0)
    ground.etcd = MemoryEtcd(lambda number: "away" if 8 <= number <= 10 else "silent" if number == 11 else "kept")
    verdict = run_drill(drill, ground, "a", 60)

    assert verdict.good, verdict
    assert verdict.unanswered == 4


def test_a_time_without_writes_that_is_too_long_for_an_election_breaks_a_promise() -> None:
    ground = reacting("kill-master", 14.0)
    silent = [False]
    ground.etcd = MemoryEtcd(lambda _: "away" if silent[0] and ground.now() < 113.0 else "kept")
    react = ground.reactions["kill_host"]

    def kill(arguments: dict[str, Any]) -> None:
        silent[0] = True
        react(arguments)

    ground.reactions["kill_host"] = kill
    verdict = run_drill("kill-master", ground, "a", 60)

    assert verdict.longest_gap > LONGEST_GAP
    assert len(verdict.broken) == 1
    assert verdict.broken[0].startswith("no write was acknowledged for 1")
    assert 0 <= verdict.gap_began + 0.5 < 1.0


def test_the_address_of_a_dead_master_has_to_leave_in_time() -> None:
    ground = reacting("kill-master", 1.0)

    def stale(view: ClusterView) -> ClusterView:
        api = Record(name=view.api_names[0], type="A", values=("10.77.0.11", "10.77.0.12"), ttl=10)
        return replace(view, records=(api, *(each for each in view.records if each.name != api.name)))

    react = ground.reactions["kill_host"]

    def kill(arguments: dict[str, Any]) -> None:
        react(arguments)
        ground.after(1.0, stale)
        ground.after(20.0, connected)

    ground.reactions["kill_host"] = kill
    verdict = run_drill("kill-master", ground, "a", 60)

    took = at(verdict, "lists exactly")
    assert 20.0 <= took <= 20.2
    assert verdict.broken == (
        f"it took {took:.1f} s until the names of the API were right; the limit is {API_LIMIT:g} s",
    )


def test_a_cut_host_whose_volume_was_taken_meanwhile_is_a_broken_promise() -> None:
    ground = reacting("partition", 1.0)
    ground.after(3.0, taken_over("a", 3))
    verdict = run_drill("partition", ground, "a", 60)

    assert "vol-aaaa was taken over by master-3, though no host was dead" in verdict.broken


def test_a_replaced_volume_on_which_the_member_has_its_old_id_is_a_broken_promise() -> None:
    ground = reacting("lose-volume", 1.0)

    def old_id(view: ClusterView) -> ClusterView:
        members = tuple(replace(each, listed=listed(), leader_id=0xA1) for each in view.members)
        return replace(view, members=but(members, 0, id=0xA0))

    ground.after(1.6, old_id)
    ground.after(2.0, old_id)
    verdict = run_drill("lose-volume", ground, "a", 60)

    assert verdict.broken == ("etcd-a has its old id on a new volume: it must have joined as a new member",)


# Whatever the order in which things heal.


def in_parts(order: list[int], times: list[float]) -> tuple[list[tuple[float, Transform]], float]:
    """The successor, the volume, the name, the member, the connections and the API, each at its own time."""

    def host(view: ClusterView) -> ClusterView:
        return replace(view, hosts=(*view.hosts, a_host(3, peers=())))

    def disk(view: ClusterView) -> ClusterView:
        disks = but(view.disks, 0, attached_to="master-3", phase="serving", epoch=2)
        return replace(view, disks=disks, members=but(view.members, 0, host="master-3"))

    def name(view: ClusterView) -> ClusterView:
        own = Record(name=view.members[0].dns_name, type="A", values=("10.77.0.14",), ttl=5)
        return replace(view, records=(own, *(each for each in view.records if each.name != own.name)))

    def api(view: ClusterView) -> ClusterView:
        own = Record(name=view.api_names[0], type="A", values=("10.77.0.12", "10.77.0.13", "10.77.0.14"), ttl=10)
        return replace(view, records=(own, *(each for each in view.records if each.name != own.name)))

    def peers(view: ClusterView) -> ClusterView:
        everybody = {each.address for each in view.hosts}
        return replace(
            view, hosts=tuple(replace(each, peers=tuple(sorted(everybody - {each.address}))) for each in view.hosts)
        )

    parts: list[Transform] = [disk, name, healthy("a"), peers, api]
    moments = sorted(times)
    placed = [(moments[0], host), *((moments[1 + place], parts[part]) for place, part in enumerate(order))]
    return placed, moments[-1]


TIMES = st.lists(st.floats(0.1, 8.0), min_size=6, max_size=6)


@FEW
@given(st.permutations(range(5)), TIMES)
def test_in_whatever_order_it_heals_the_drill_waits_for_all_of_it(order: list[int], times: list[float]) -> None:
    ground = PretendGround()
    events, healed = in_parts(order, times)

    def kill(_: dict[str, Any]) -> None:
        ground.after(0.0, dead(0))
        for when, transform in events:
            ground.after(when, transform)

    ground.reactions["kill_host"] = kill
    verdict = run_drill("kill-master", ground, "a", 60)

    assert verdict.good, verdict
    assert healed <= at(verdict, "the cluster is ready") <= healed + 0.2
    assert [each.at for each in verdict.steps] == sorted(each.at for each in verdict.steps)


@FEW
@given(st.permutations(range(5)), TIMES, st.integers(0, 4))
def test_as_long_as_one_part_is_missing_the_drill_is_not_good(order: list[int], times: list[float], gone: int) -> None:
    ground = PretendGround()
    events, _ = in_parts(order, times)
    left = [each for place, each in enumerate(events) if place == 0 or order[place - 1] != gone]

    def kill(_: dict[str, Any]) -> None:
        ground.after(0.0, dead(0))
        for when, transform in left:
            ground.after(when, transform)

    ground.reactions["kill_host"] = kill
    verdict = run_drill("kill-master", ground, "a", 10)

    assert not verdict.good
    assert verdict.missing


@FEW
@given(st.floats(0.1, 20.0), st.floats(1.0, 20.0), st.sampled_from(list(DRILLS)))
def test_a_drill_is_good_exactly_if_the_cluster_heals_before_the_time_is_up(
    healed: float, seconds: float, drill: str
) -> None:
    if abs(healed - seconds) < 1.0 or drill == "partition":
        return
    verdict = run_drill(drill, reacting(drill, healed), "a", seconds)
    late_names = healed > API_LIMIT and drill in ("kill-master", "pause-master")

    assert bool(verdict.missing) == (healed > seconds)
    assert bool(verdict.broken) == (late_names and healed <= seconds)


def not_ready() -> list[Callable[[ClusterView], ClusterView]]:
    return [
        unhealthy("b"),
        dead(1),
        lambda view: replace(view, generations={"main": a_generation(open=True)}),
        lambda view: replace(view, disks=but(view.disks, 2, mark="forming")),
        lambda view: replace(view, members=but(view.members, 1, learner=True)),
    ]


@pytest.mark.parametrize("number", range(5))
@pytest.mark.parametrize("drill", DRILLS)
def test_no_drill_begins_with_a_cluster_that_is_not_whole(drill: str, number: int) -> None:
    ground = PretendGround(before=not_ready()[number](a_view()))
    with pytest.raises(Exception, match="needs a ready cluster"):
        run_drill(drill, ground, None, 60)

    assert ground.calls == []
