"""Who is alive and who is elected, over leases of the model of etcd: nobody is believed longer than its lease."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from clusters.scenario.cluster import Stage
from clusters.scenario.host import Host, tmpfs
from protokube.agent.edges import MasterAddresses
from protokube.agent.etcd.presence import ELECTED, EVERY, MASTERS, TTL, LeasePresence
from protokube.etcd import Alarm, KeyValue


@pytest.fixture
def stage() -> Iterator[Stage]:
    with tmpfs() as folder:
        stage = Stage(folder)
        stage.boot_all()
        stage.until(stage.healthy)
        stage.run(5)
        yield stage


def elected(stage: Stage) -> list[Host]:
    return [each for each in stage.hosts.values() if each.presence.elected()]


def keys(stage: Stage) -> dict[str, KeyValue]:
    return dict(stage.etcd["main"].led()[0].db.state.keys)


def test_every_master_sees_every_living_one_with_its_address(stage: Stage) -> None:
    addresses = {each.id: each.address for each in stage.hosts.values()}
    assert [each.presence.live() for each in stage.hosts.values()] == [addresses] * 3


def test_the_external_address_of_a_master_is_its_internal_one_if_it_has_no_other(stage: Stage) -> None:
    new = stage.boot(external="203.0.113.1")
    stage.run(5)
    expected = {
        each.id: MasterAddresses(internal=each.address, external=each.machine.external or each.address)
        for each in stage.hosts.values()
    }
    assert expected[new.id].external == "203.0.113.1"
    for host in stage.hosts.values():
        assert host.presence.addresses() == expected
        assert host.presence.live() == {machine: each.internal for machine, each in expected.items()}


@pytest.mark.parametrize("record", ['{"address": "10.0.0.9"}', '{"address": "10.0.0.9", "external": null}'])
def test_a_record_without_an_external_address_has_the_internal_one(stage: Stage, record: str) -> None:
    (host,) = elected(stage)
    host.presence._etcd.put(f"{MASTERS}i-older", record, 0)
    host.presence.beat()
    addresses = host.presence.addresses()
    assert addresses is not None
    assert addresses["i-older"] == MasterAddresses(internal="10.0.0.9", external="10.0.0.9")


def test_exactly_one_is_elected(stage: Stage) -> None:
    assert len(elected(stage)) == 1


def test_before_its_first_answer_a_master_knows_nothing(stage: Stage) -> None:
    new = stage.boot()
    assert new.presence.live() is None
    assert new.presence.addresses() is None
    assert not new.presence.elected()


def test_a_master_that_stops_beating_is_gone_for_the_others_within_its_lease(stage: Stage) -> None:
    gone = next(each for each in stage.hosts.values() if not each.presence.elected())
    stage.freeze(gone)
    stage.run(TTL + EVERY + 0.1)
    living = [each for each in stage.hosts.values() if each is not gone]
    assert all(gone.id not in (each.presence.live() or {}) for each in living)


def test_an_office_ends_with_its_lease_and_another_one_takes_it(stage: Stage) -> None:
    (old,) = elected(stage)
    stage.freeze(old)
    stage.run(TTL + 2 * EVERY)
    (new,) = (each for each in elected(stage) if each is not old)
    assert new is not old


def test_what_was_heard_is_not_believed_for_as_long_as_the_lease_lasts(stage: Stage) -> None:
    (old,) = elected(stage)
    heard = stage.clock.seconds
    old.presence.beat()
    stage.clock.advance(TTL - 1.1)
    assert old.presence.elected()
    stage.clock.advance(0.2)
    assert stage.clock.seconds - heard < TTL
    assert not old.presence.elected()
    assert old.presence.live() is None


def test_without_a_quorum_nobody_is_elected_after_a_few_seconds(stage: Stage) -> None:
    first, second, third = stage.hosts.values()
    stage.freeze(first)
    stage.freeze(second)
    stage.run(TTL)
    assert not third.presence.elected()
    assert third.presence.live() is None


@pytest.mark.parametrize("delay", [0.0, 1.0, 3.9, 4.1, 4.9, 5.1, 9.0, 60.0])
def test_two_are_never_elected_at_once_however_long_one_was_away(stage: Stage, delay: float) -> None:
    (old,) = elected(stage)
    stage.freeze(old)
    end = stage.clock.seconds + delay
    while stage.clock.seconds < end:
        stage.run(min(0.3, end - stage.clock.seconds))
        assert len([each for each in elected(stage) if each is not old or each.presence.elected()]) <= 1
    stage.thaw(old)
    assert len(elected(stage)) <= 1
    for _ in range(40):
        stage.run(0.3)
        assert len(elected(stage)) <= 1
    assert len(elected(stage)) == 1


def test_an_answer_that_took_long_counts_from_when_it_was_asked_for(stage: Stage) -> None:
    (old,) = elected(stage)

    class Slow:
        """An etcd that answers after a while."""

        def __init__(self, inner: object, seconds: float) -> None:
            self.inner, self.seconds = inner, seconds

        def __getattr__(self, name: str) -> object:
            stage.clock.advance(self.seconds)
            return getattr(self.inner, name)

    inner = old.presence._etcd
    old.presence._etcd = Slow(inner, 2.2)  # type: ignore[assignment]
    old.presence.beat()
    assert not old.presence.elected()


def test_a_lease_that_was_lost_is_taken_anew_and_the_old_office_is_not_believed(stage: Stage) -> None:
    (old,) = elected(stage)
    lease = old.presence._lease
    stage.freeze(old)
    stage.run(TTL + 2 * EVERY)
    stage.thaw(old)
    stage.run(2 * EVERY)
    assert old.presence._lease != lease
    assert not old.presence.elected()
    assert keys(stage)[f"{MASTERS}{old.id}"].lease == old.presence._lease


def test_a_new_agent_on_the_elected_machine_does_not_believe_the_office_of_the_old_one(stage: Stage) -> None:
    (host,) = elected(stage)
    stage.agent_dies(host)
    host.presence.beat()
    assert keys(stage)[ELECTED].value == host.id
    assert not host.presence.elected()  # the office hangs on a lease that nobody renews
    stage.run(TTL + 2 * EVERY)
    assert len(elected(stage)) == 1


def test_an_agent_that_leaves_gives_its_lease_back_and_never_returns(stage: Stage) -> None:
    (old,) = elected(stage)
    old.presence.retire()
    assert ELECTED not in keys(stage)
    assert f"{MASTERS}{old.id}" not in keys(stage)
    assert not old.presence.elected()
    stage.run(10)
    assert f"{MASTERS}{old.id}" not in keys(stage)
    assert len(elected(stage)) == 1


def test_leaving_without_an_etcd_is_no_error(stage: Stage) -> None:
    (old,) = elected(stage)
    for host in stage.hosts.values():
        if host is not old:
            stage.freeze(host)
    old.presence.retire()
    assert not old.presence.elected()


def test_a_change_of_who_lives_wakes_the_rounds_and_nothing_else_does(stage: Stage) -> None:
    woken: list[float] = []
    (host,) = elected(stage)
    presence = LeasePresence(host.presence._etcd, host.machine, host.clock, lambda: woken.append(stage.clock.seconds))
    presence.beat()
    assert len(woken) == 1
    presence.beat()
    presence.beat()
    assert len(woken) == 1
    other = next(each for each in stage.hosts.values() if each is not host)
    stage.freeze(other)
    for _ in range(8):
        stage.clock.advance(EVERY)
        presence.beat()
        host.presence.beat()
    assert len(woken) >= 2


def test_a_key_that_says_nothing_readable_is_a_master_without_an_address(stage: Stage) -> None:
    (host,) = elected(stage)
    for value in ("not JSON", "[]", '{"name": "x"}'):
        host.presence._etcd.put(f"{MASTERS}i-strange", value, 0)
        host.presence.beat()
        live = host.presence.live()
        assert live is not None
        assert live["i-strange"] == ""


def full(stage: Stage) -> None:
    model = stage.etcd["main"]
    model.carry_out(model.led(), lambda state: replace(state, alarms=frozenset({Alarm(1, "NOSPACE")})))


def test_in_a_full_etcd_leases_are_kept_and_so_are_the_living_and_the_elected(stage: Stage) -> None:
    (before,) = elected(stage)
    full(stage)
    before.presence._is_serving = lambda: True  # what a full etcd cannot be told
    stage.run(4 * TTL)
    assert elected(stage) == [before]
    assert all(len(each.presence.live() or ()) == 3 for each in stage.hosts.values())
    others = [each for each in stage.hosts.values() if each is not before]
    assert all(before.id not in (each.presence.serving() or ()) for each in others)


def test_a_full_etcd_elects_nobody_in_place_of_one_that_is_gone(stage: Stage) -> None:
    (gone,) = elected(stage)
    full(stage)
    stage.freeze(gone)
    stage.run(2 * TTL)
    assert elected(stage) in ([], [gone])
    living = [each for each in stage.hosts.values() if each is not gone]
    assert all(len(each.presence.live() or ()) == 2 for each in living)
