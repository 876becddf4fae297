"""A changed configuration on a cluster that runs: one master after the other, and the way back."""

from __future__ import annotations

from dataclasses import replace

import pytest

from clusters.scenario.acts import refusals, waits
from clusters.scenario.checks import Watch
from clusters.scenario.cluster import Stage
from clusters.scenario.edges import AgentDied
from protokube.launch.machine import MasterConfig
from protokube.launch.rollout import State
from protokube.store import layout

QUOTA, BAD = {"quota-backend-bytes": 4 * 2**30}, {"quota-backend-bytes": -1}


def with_settings(wanted: MasterConfig, **settings: object) -> MasterConfig:
    """The same with other settings of etcd."""
    etcd = tuple(
        replace(each, members=tuple(replace(m, settings={**m.settings, **settings}) for m in each.members))
        for each in wanted.etcd
    )
    return replace(wanted, etcd=etcd)


def done(stage: Stage, number: int) -> bool:
    return stage.rollout().state is State.DONE and stage.rollout().wanted == number


def watched(stage: Stage, seconds: float, most_away: int = 1) -> None:
    """Let time pass, and check all along that no more than one member is away, and that nothing is lost."""
    watch = Watch(stage)
    end = stage.clock.seconds + seconds
    while stage.clock.seconds < end:
        stage.run(0.1)
        assert stage.write() or most_away > 1, stage.story()
        watch.after_event()
        assert len(stage.etcd["main"].processes) >= 3 - most_away, stage.story()


def test_a_changed_setting_of_etcd_reaches_every_master_one_after_the_other(formed: Stage) -> None:
    starts = formed.etcd["main"].starts
    number = formed.put_in_force(with_settings(formed.wanted, **QUOTA))
    formed.announce()

    watched(formed, 40)

    assert done(formed, number), formed.story()
    assert {each.wanted.revision for each in formed.hosts.values()} == {number}
    assert formed.etcd["main"].starts == starts + 3
    texts = [each.text for each in formed.rollout().events]
    assert sum("takes revision 2: restarts etcd main" in each for each in texts) == 3
    assert texts[-1] == "all masters run revision 2"
    assert formed.healthy()


def test_without_an_announcement_it_is_seen_within_a_minute(formed: Stage) -> None:
    number = formed.put_in_force(with_settings(formed.wanted, **QUOTA))

    assert formed.until(lambda: done(formed, number), within=120) < 120


def test_what_restarts_nothing_is_taken_by_all_without_turns(formed: Stage) -> None:
    starts = formed.etcd["main"].starts
    number = formed.put_in_force(replace(formed.wanted, certificate_lifetime=86400.0))
    formed.announce()

    formed.until(lambda: done(formed, number), within=30)

    assert formed.etcd["main"].starts == starts
    assert not [each.text for each in formed.rollout().events if "takes revision" in each.text]


def test_settings_that_etcd_rejects_stop_at_the_first_master_which_returns_to_the_former_ones(formed: Stage) -> None:
    formed.etcd["main"].rejected = dict(BAD)
    number = formed.put_in_force(with_settings(formed.wanted, **BAD))
    formed.announce()

    watched(formed, 150)

    record = formed.rollout()
    assert (record.state, record.turn) == (State.STOPPED, None), formed.story()
    assert record.failure is not None
    assert "it does not run" in record.failure.text
    assert "invalid settings" in record.failure.text
    assert {each.wanted.revision for each in formed.hosts.values()} == {number - 1}
    assert sum("takes revision" in each.text for each in record.events) == 1
    assert formed.healthy()
    assert any(f"revision {number} stopped at" in each for each in refusals(formed))


def test_after_a_stop_a_corrected_revision_is_rolled_out(formed: Stage) -> None:
    formed.etcd["main"].rejected = dict(BAD)
    formed.put_in_force(with_settings(formed.wanted, **BAD))
    formed.announce()
    formed.until(lambda: formed.rollout().state is State.STOPPED, within=150)

    number = formed.put_in_force(with_settings(formed.wanted, **QUOTA))
    formed.announce()

    formed.until(lambda: done(formed, number), within=120)
    assert formed.healthy()
    assert refusals(formed) == set()


def test_nothing_restarts_while_another_member_is_away_and_the_reason_is_reported(formed: Stage) -> None:
    away = formed.holder_of("c")
    formed.freeze(away)
    formed.run(10)
    formed.put_in_force(with_settings(formed.wanted, **QUOTA))

    formed.run(130)

    assert formed.rollout().turn is None
    assert {each.wanted.revision for each in formed.hosts.values()} == {1}
    assert any("etcd-c does not answer" in each for each in waits(formed))

    formed.thaw(away)
    formed.until(lambda: done(formed, 2), within=150)
    assert formed.healthy()


def test_a_master_that_dies_in_its_turn_is_replaced_and_the_rollout_goes_on(formed: Stage) -> None:
    number = formed.put_in_force(with_settings(formed.wanted, **QUOTA))
    formed.announce()
    formed.until(lambda: formed.rollout().turn is not None)
    turn = formed.rollout().turn
    assert turn is not None
    host = formed.hosts[turn.machine]
    formed.kill(host)
    formed.run(5)
    assert formed.rollout().turn == turn, "a turn must not end while its machine may come back"

    new = formed.replace_machine(host)

    assert new.wanted.revision == 1, "it starts with the revision that all masters ran"
    formed.until(lambda: done(formed, number), within=240)
    assert new.wanted.revision == number
    assert formed.healthy()


def test_a_turn_whose_machine_hangs_ends_with_no_time_limit(formed: Stage) -> None:
    formed.put_in_force(with_settings(formed.wanted, **QUOTA))
    formed.announce()
    formed.until(lambda: formed.rollout().turn is not None)
    turn = formed.rollout().turn
    assert turn is not None
    formed.freeze(formed.hosts[turn.machine])

    formed.run(1800)

    assert formed.rollout().turn == turn
    others = {each.wanted.revision for each in formed.hosts.values() if each.id != turn.machine}
    assert others == {1}
    formed.thaw(formed.hosts[turn.machine])
    formed.until(lambda: done(formed, 2), within=240)


def test_a_new_machine_starts_with_the_wanted_revision_once_all_run_it(formed: Stage) -> None:
    number = formed.put_in_force(with_settings(formed.wanted, **QUOTA))
    formed.announce()
    formed.until(lambda: done(formed, number), within=120)
    host = formed.holder_of("a")
    formed.kill(host)

    new = formed.replace_machine(host)

    assert new.wanted.revision == number
    formed.until(formed.healthy)


def test_a_new_machine_starts_with_its_launch_data_if_the_store_is_away(formed: Stage) -> None:
    formed.store.down = True

    new = formed.boot("master-a")

    assert new.wanted.revision == 1


@pytest.mark.parametrize("passages", range(0, 120, 6))
def test_an_agent_killed_at_any_call_of_a_rollout_ends_with_the_wanted_revision(formed: Stage, passages: int) -> None:
    number = formed.put_in_force(with_settings(formed.wanted, **QUOTA))
    formed.announce()
    formed.until(lambda: formed.rollout().turn is not None)
    turn = formed.rollout().turn
    assert turn is not None
    host = formed.hosts[turn.machine]

    def die() -> None:
        raise AgentDied

    host.fuse.set(passages, die)
    for _ in range(200):
        formed.rounds(1, seconds=0.5)
        if done(formed, number):
            break
    assert done(formed, number), formed.story()
    assert formed.healthy()


def test_an_answer_of_the_store_that_is_lost_delays_and_breaks_nothing(formed: Stage) -> None:
    number = formed.put_in_force(with_settings(formed.wanted, **QUOTA))
    formed.announce()
    formed.store.answers_lost = True
    formed.run(30)
    formed.store.answers_lost = False

    formed.until(lambda: done(formed, number), within=120)
    assert formed.healthy()


def test_a_revision_that_no_living_cluster_can_take_changes_nothing_and_needs_a_person(formed: Stage) -> None:
    main = formed.wanted.etcd[0]
    moved = replace(main, members=(replace(main.members[0], dns_name="elsewhere.example.com"), *main.members[1:]))
    formed.put_in_force(replace(formed.wanted, etcd=(moved,)))
    formed.announce()

    formed.run(30)

    assert {each.wanted.revision for each in formed.hosts.values()} == {1}
    assert any("cannot be taken" in each for each in refusals(formed))
    assert formed.healthy()


def test_a_damaged_revision_in_the_store_changes_nothing_and_needs_a_person(formed: Stage) -> None:
    number = formed.put_in_force(with_settings(formed.wanted, **QUOTA))
    formed.store.inner.put(layout.revision(formed.wanted.cluster, number), b'{"number": 2}')
    formed.announce()

    formed.run(30)

    assert {each.wanted.revision for each in formed.hosts.values()} == {1}
    assert any("this is no revision" in each for each in refusals(formed))
    assert formed.healthy()
