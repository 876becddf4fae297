"""A machine goes: its volume, its member and its name go on elsewhere, and nobody is asked."""

from __future__ import annotations

import pytest

from clusters.scenario.cluster import Stage

MINUTE = 60.0


def test_the_volume_of_a_killed_master_is_taken_by_its_successor_which_is_the_old_member(formed: Stage) -> None:
    stage, old = formed, formed.holder_of("b")
    volume, members = stage.volume_of("b"), stage.etcd["main"].led()[0].db.state.members

    stage.kill(old)
    assert stage.write()  # two of three go on
    new = stage.replace_machine(old)
    stage.until(stage.healthy, within=15)

    assert stage.holder_of("b") is new
    assert stage.volume_of("b") == volume
    assert stage.etcd["main"].led()[0].db.state.members == members
    assert (stage.identity(volume).epoch, stage.identity(volume).holder) == (2, new.id)
    assert (stage.cloud.find(volume).epoch, stage.cloud.find(volume).last_holder) == (2, new.id)
    assert stage.dns.addresses("etcd-b.internal.laptop") == (new.address,)
    assert stage.dns.text("etcd-b.internal.laptop") == f"protokube epoch=2 holder={new.id}"
    assert stage.etcd["main"].histories == [1]
    assert stage.write()


def test_a_volume_of_a_killed_master_stays_with_it_until_the_machine_is_declared_dead(formed: Stage) -> None:
    old = formed.holder_of("a")
    formed.kill(old)
    new = formed.boot("master-a")
    formed.run(MINUTE)
    assert formed.holder_of("a") is old
    assert not new.links()
    formed.declare_dead(old)
    formed.until(formed.healthy, within=15)
    assert formed.holder_of("a") is new


def test_a_dead_master_leaves_the_names_of_the_api_within_fifteen_seconds(formed: Stage) -> None:
    old = next(each for each in formed.hosts.values() if not each.presence.elected())
    formed.kill(old)
    formed.until(lambda: old.address not in formed.dns.addresses("api.internal.laptop"), within=15)
    assert len(formed.dns.addresses("api.internal.laptop")) == 2


def test_the_same_holds_for_the_elected_master_itself(formed: Stage) -> None:
    old = next(each for each in formed.hosts.values() if each.presence.elected())
    formed.kill(old)
    formed.until(lambda: old.address not in formed.dns.addresses("api.internal.laptop"), within=15)


def test_a_master_elected_again_does_not_trust_what_it_wrote_in_its_first_term(formed: Stage) -> None:
    """X is elected, then Y, then X again: what X confirmed minutes ago says nothing about what Y wrote since."""
    first = next(each for each in formed.hosts.values() if each.presence.elected())
    others = [each for each in formed.hosts.values() if each is not first]
    formed.run(MINUTE)
    formed.freeze(first)
    formed.until(lambda: any(each.presence.elected() for each in others))
    second = next(each for each in others if each.presence.elected())
    formed.until(lambda: first.address not in formed.dns.addresses("api.internal.laptop"), within=15)
    formed.thaw(first)
    formed.until(lambda: first.address in formed.dns.addresses("api.internal.laptop"), within=15)

    third = next(each for each in others if each is not second)
    formed.freeze(second)
    formed.freeze(third)
    formed.run(10)
    formed.thaw(third)
    formed.until(lambda: first.presence.elected() or third.presence.elected())
    formed.until(lambda: set(formed.dns.addresses("api.internal.laptop")) == {first.address, third.address}, within=15)
    formed.thaw(second)
    formed.until(lambda: len(formed.dns.addresses("api.internal.laptop")) == 3, within=15)


def test_a_reboot_of_a_master_moves_nothing_and_raises_the_epoch_with_the_mount(formed: Stage) -> None:
    host = formed.holder_of("c")
    formed.reboot(host)
    assert len(formed.serving()) == 2
    formed.until(formed.healthy, within=15)
    assert formed.holder_of("c") is host
    volume = formed.volume_of("c")
    assert formed.identity(volume).epoch == formed.cloud.find(volume).epoch == 2


def test_power_goes_everywhere_and_comes_back_on_the_same_machines(formed: Stage) -> None:
    for host in formed.hosts.values():
        formed.reboot(host)
    assert formed.serving() == {}
    formed.until(formed.healthy, within=30)
    assert formed.etcd["main"].histories == [1]
    assert formed.write()


def test_all_machines_are_lost_and_new_ones_go_on_with_the_old_data(formed: Stage) -> None:
    old = list(formed.hosts.values())
    for host in old:
        formed.kill(host)
    formed.run(MINUTE)
    for host in old:
        formed.replace_machine(host)
    formed.until(formed.healthy, within=30)

    assert formed.etcd["main"].histories == [1]
    assert formed.write()
    assert [formed.identity(formed.volume_of(short)).epoch for short in "abc"] == [2, 2, 2]
    live = {host.address for host in formed.hosts.values() if host.alive}
    formed.until(lambda: set(formed.dns.addresses("api.internal.laptop")) == live)


def test_masters_that_are_replaced_ten_times_over_keep_every_write(formed: Stage) -> None:
    for number in range(10):
        old = formed.holder_of("abc"[number % 3])
        formed.kill(old)
        assert formed.write()
        formed.replace_machine(old)
        formed.until(formed.healthy, within=20)
        assert formed.write()
    assert [formed.identity(formed.volume_of(short)).epoch for short in "abc"] == [5, 4, 4]
    assert formed.etcd["main"].histories == [1]


def test_machines_of_one_group_do_not_fight_for_one_volume(stage: Stage) -> None:
    for _ in range(3):
        stage.boot("master-a")
    stage.until(stage.healthy, within=20)
    assert len({stage.holder_of(short).id for short in "abc"}) == 3


@pytest.mark.parametrize("clock_slept", [0.0, 40.0])
def test_a_master_that_was_paused_and_taken_over_stops_serving_in_its_first_round(
    formed: Stage, clock_slept: float
) -> None:
    """Whether its monotonic clock went on during the pause or not."""
    old = formed.holder_of("a")
    formed.freeze(old)
    formed.run(20)
    new = formed.replace_machine(old)
    formed.until(formed.healthy, within=20)
    assert formed.write()
    assert old.links() == {"etcd.manifest": formed.volume_of("a")}

    formed.thaw(old, clock_slept=clock_slept)
    formed.round(old)

    assert old.links() == {}
    assert old.id not in formed.etcd["main"].processes
    assert f"stopped serving: it is attached to {new.id}" in old.sentence
    formed.run(MINUTE)
    assert old.disks.table == {}
    assert formed.dns.addresses("etcd-a.internal.laptop") == (new.address,)
    assert formed.healthy()
    assert formed.etcd["main"].histories == [1]
    formed.until(lambda: old.address not in formed.dns.addresses("api.internal.laptop"), within=15)


def test_a_paused_master_whose_volume_nobody_took_just_goes_on(formed: Stage) -> None:
    host, starts = formed.holder_of("a"), formed.etcd["main"].starts
    formed.freeze(host)
    formed.run(5 * MINUTE)
    assert len(formed.serving()) == 2
    formed.thaw(host)
    formed.until(formed.healthy, within=15)
    assert formed.holder_of("a") is host
    assert formed.etcd["main"].starts == starts
    assert formed.identity(formed.volume_of("a")).epoch == 1


def test_a_volume_that_was_away_and_came_back_while_its_holder_slept_is_taken_over_anew(formed: Stage) -> None:
    """Another master had it in between: what the sleeper has mounted is stale, whatever the list says now."""
    sleeper = formed.holder_of("a")
    volume = formed.volume_of("a")
    formed.freeze(sleeper)
    formed.change_tags(volume, attached_to=None)
    other = formed.boot("master-a")
    formed.until(lambda: formed.identity(volume).epoch == 2, within=20)
    formed.kill(other)
    formed.change_tags(volume, attached_to=sleeper.id)

    formed.thaw(sleeper)
    formed.until(formed.healthy, within=30)

    assert (formed.identity(volume).epoch, formed.identity(volume).holder) == (3, sleeper.id)
    assert formed.write()


def test_a_disk_that_went_back_in_time_is_taken_over_anew_and_served(formed: Stage) -> None:
    """The provider knows a greater epoch than the disk, which was put back from a copy in place: not believed."""
    host = formed.holder_of("a")
    formed.change_tags(formed.volume_of("a"), epoch=7)
    formed.until(lambda: formed.identity(formed.volume_of("a")).epoch == 8, within=30)
    formed.until(formed.healthy, within=30)
    assert formed.holder_of("a") is host
    formed.run(MINUTE)
    assert formed.identity(formed.volume_of("a")).epoch == 8
