"""A revision that needs other machines: each master ends its own in its turn, whatever happens meanwhile."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import pytest

from clusters.scenario.acts import waits
from clusters.scenario.checks import Watch
from clusters.scenario.cluster import Stage
from clusters.scenario.edges import AgentDied
from clusters.scenario.host import Host
from protokube.launch.rollout import State

MEMBERS = 3


def other_machines(stage: Stage) -> int:
    """What `up --kubelet` does: templates first, then the revision."""
    number = another_kind(stage)
    stage.announce()
    return number


def another_kind(stage: Stage) -> int:
    """With kubelets, or without if the revision in force has them, as `rollout undo` does."""
    had = stage.template is not None and stage.template.kubelet_kubeconfig
    wanted = replace(stage.wanted, kubelet_kubeconfig="" if had else "/kubeconfig")
    stage.template = replace(wanted, revision=stage.rollout().wanted + 1)
    return stage.put_in_force(wanted)


def done(stage: Stage, number: int) -> bool:
    return stage.rollout().state is State.DONE and stage.rollout().wanted == number


def watched(stage: Stage, ended: Callable[[], object], within: float) -> None:
    """Let time pass, and check all along that nothing is lost, and that a machine ends only while all members serve."""
    watch, end = Watch(stage), stage.clock.seconds + within
    while not ended():
        assert stage.clock.seconds < end, stage.story()
        stage.run(0.1)
        stage.write()
        watch.after_event()
        assert all(served == MEMBERS for _, served in stage.left), stage.story()


def watched_for(stage: Stage, seconds: float) -> None:
    end = stage.clock.seconds + seconds
    watched(stage, lambda: stage.clock.seconds >= end, within=seconds + 1)


def in_turn(stage: Stage) -> Host:
    """The first master whose turn it is, at the moment when that begins: it ends its machine in its next round."""
    end = stage.clock.seconds + 60
    while (turn := stage.rollout().turn) is None:
        assert stage.clock.seconds < end, stage.story()
        stage.run(0.01)
    return stage.hosts[turn.machine]


def elected(stage: Stage) -> Host:
    return next(host for host in stage.hosts.values() if host.runs and host.presence.elected())


def test_every_machine_is_replaced_one_after_the_other_and_no_write_is_lost(formed: Stage) -> None:
    before = set(formed.hosts)
    number = other_machines(formed)

    watched(formed, lambda: done(formed, number), within=300)

    assert {machine for machine, _ in formed.left} == before
    assert {host.wanted.revision for host in formed.hosts.values() if host.runs} == {number}
    formed.until(formed.healthy)


def test_the_elected_master_dies_while_another_one_is_replaced_and_it_goes_on_with_the_next(formed: Stage) -> None:
    number = other_machines(formed)
    watched(formed, lambda: formed.left, within=60)
    killed = elected(formed)
    formed.kill(killed)
    formed.run(60)
    assert len(formed.left) == 1, "no other one ends while a member is away"

    formed.replace_machine(killed)

    watched(formed, lambda: done(formed, number), within=300)
    formed.until(formed.healthy)


def test_a_machine_that_is_never_replaced_keeps_all_others_where_they_are(formed: Stage) -> None:
    number = other_machines(formed)
    formed.replaces = False
    watched(formed, lambda: formed.left, within=60)
    formed.run(600)
    assert len(formed.left) == 1
    assert any("2 of 3 masters are up" in each or "does not answer" in each for each in waits(formed))

    formed.replaces = True
    (gone,) = (formed.hosts[machine] for machine, _ in formed.left)
    formed.boot(gone.machine.group)

    watched(formed, lambda: done(formed, number), within=300)


def test_a_cloud_that_does_not_answer_ends_no_turn_and_no_machine(formed: Stage) -> None:
    number = other_machines(formed)
    in_turn(formed)
    formed.cloud.down = True
    formed.run(300)
    assert len(formed.left) == 1
    assert formed.rollout().turn is not None

    formed.cloud.down = False

    watched(formed, lambda: done(formed, number), within=300)


@pytest.mark.parametrize("passages", range(0, 60, 6))
def test_an_agent_killed_at_any_call_before_it_ends_its_machine_does_so_in_the_end(
    formed: Stage, passages: int
) -> None:
    number = other_machines(formed)

    def die() -> None:
        raise AgentDied

    in_turn(formed).fuse.set(passages, die)
    for _ in range(600):
        formed.rounds(1, seconds=0.5)
        if done(formed, number):
            break
    assert done(formed, number), formed.story()
    assert len(formed.left) == MEMBERS
    assert all(served == MEMBERS for _, served in formed.left)


def test_one_that_was_made_for_an_attempt_and_the_undo_of_it_end_with_what_all_ran(formed: Stage) -> None:
    """One machine is replaced, then the addition is undone: it leaves again, and the others stay."""
    before = set(formed.hosts)
    other_machines(formed)
    watched(formed, lambda: formed.left, within=60)
    number = other_machines(formed)

    watched(formed, lambda: done(formed, number), within=300)

    assert len(before & {host.id for host in formed.hosts.values() if host.runs}) >= MEMBERS - 1
    formed.until(formed.healthy)


@pytest.mark.parametrize("seed", range(20))
def test_whatever_fails_meanwhile_no_machine_ends_while_a_member_is_away(formed: Stage, seed: int) -> None:
    """Machines and agents die, the cloud is silent, and an operator undoes it or begins anew."""
    chance = random.Random(seed)
    number, dead = other_machines(formed), list[Host]()
    for _ in range(60):
        watched_for(formed, chance.uniform(0.2, 12))
        alive = [host for host in formed.hosts.values() if host.runs]
        what = chance.random()
        if what < 0.15 and len(alive) == MEMBERS:
            dead.append(chance.choice(alive))
            formed.kill(dead[-1])
        elif what < 0.6 and dead:
            formed.replace_machine(dead.pop())
        elif what < 0.75:
            formed.agent_dies(chance.choice(alive))
        elif what < 0.95:
            formed.cloud.down = not formed.cloud.down
        elif what > 0.98:
            number = another_kind(formed)
        if done(formed, number):
            break
    formed.cloud.down = False
    for each in dead:
        formed.replace_machine(each)

    watched(formed, lambda: done(formed, number), within=900)
    formed.until(formed.healthy, within=300)
