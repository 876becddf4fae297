"""Two disks of one member, since tags vanished or a disk was replaced: one is served, the other left as it is."""

from __future__ import annotations

import pytest

from clusters.scenario.acts import attach_by_hand, boot, refusals, restore_while_down, started_old, take_over
from clusters.scenario.cluster import Stage
from protokube.host import Content

MINUTE = 60.0
IDLE_LISTS = 40
"""Lists of volumes that three agents with nothing to do may ask for in a minute."""


def ids(stage: Stage) -> set[int]:
    return {each.id for each in stage.etcd["main"].led()[0].db.state.members}


def volumes_of(stage: Stage, member: str) -> list[str]:
    return [each.id for each in stage.cloud.volumes() if each.member == member]


def replace_while_hidden(stage: Stage, member: str) -> tuple[str, str]:
    """The tags of its volume are taken away until another one took its place: the old id, and the new one."""
    old = stage.volume_of(member)
    stage.hide(old)
    stage.until(lambda: volumes_of(stage, member) != [] and stage.healthy(), within=2 * MINUTE)
    return old, stage.volume_of(member)


def is_quiet(stage: Stage) -> None:
    """Nothing is started, and nobody is busy with it."""
    starts, lists = stage.etcd["main"].starts, stage.cloud.calls["list_volumes"]
    stage.run(MINUTE)
    assert stage.etcd["main"].starts == starts
    assert stage.cloud.calls["list_volumes"] - lists <= IDLE_LISTS


def is_kept_and_unused(stage: Stage, volume: str) -> None:
    platter = stage.platters[volume]
    assert volume in {each.id for each in stage.cloud.volumes()}
    assert stage.cloud.find(volume).attached_to is None
    assert not any(volume in {*host.links().values(), *host.disks.table} for host in stage.hosts.values() if host.alive)
    assert platter.folder is not None
    assert list(platter.folder.glob("**/member/db"))


def test_of_two_disks_of_one_member_on_one_machine_the_one_that_serves_goes_on(formed: Stage) -> None:
    host = formed.holder_of("a")
    old, new = replace_while_hidden(formed, "a")
    assert formed.holder(new) == formed.holder(old) == host.id
    starts = formed.etcd["main"].starts
    members = ids(formed)

    formed.show(old)
    formed.run(30)

    assert host.links() == {"etcd.manifest": new}
    assert formed.etcd["main"].starts == starts
    assert ids(formed) == members
    is_kept_and_unused(formed, old)
    is_quiet(formed)
    assert formed.write()


def test_a_superseded_disk_is_recorded_when_its_member_joins_anew(formed: Stage) -> None:
    old, _ = replace_while_hidden(formed, "a")
    assert formed.generation().superseded == {old: "a"}


def test_a_superseded_disk_is_neither_claimed_nor_served_nor_deleted(formed: Stage) -> None:
    host = formed.holder_of("a")
    old = formed.volume_of("a")
    formed.hide(old)
    formed.kill(host)
    formed.replace_machine(host)
    formed.until(lambda: volumes_of(formed, "a") != [] and formed.healthy(), within=2 * MINUTE)
    spare = formed.boot("master-a")  # it holds nothing, and could take it

    formed.show(old)
    formed.run(30)

    assert spare.links() == {}
    is_kept_and_unused(formed, old)
    assert formed.healthy()
    is_quiet(formed)


def test_a_superseded_disk_stays_unused_where_every_machine_is_new(formed: Stage) -> None:
    old, _ = replace_while_hidden(formed, "a")
    formed.show(old)
    formed.run(10)
    for member in "abc":
        host = formed.hosts[formed.serving()[member].id]
        formed.kill(host)
        formed.replace_machine(host)
        formed.until(formed.healthy)
    is_kept_and_unused(formed, old)


def test_a_disk_whose_replacement_was_replaced_in_turn_is_found_out_and_given_away(formed: Stage) -> None:
    """Only a founder is recorded when its member joins anew: this one is known by its id, which etcd does not list."""
    formed.delete_volume(formed.volume_of("a"))
    formed.until(formed.healthy, within=2 * MINUTE)
    host, old = formed.holder_of("a"), formed.volume_of("a")
    formed.hide(old)
    formed.kill(host)
    formed.replace_machine(host)
    formed.until(lambda: volumes_of(formed, "a") != [] and formed.healthy(), within=2 * MINUTE)
    formed.boot("master-a")

    formed.show(old)
    formed.run(MINUTE)

    assert old in formed.generation().superseded
    is_kept_and_unused(formed, old)
    assert formed.healthy()
    is_quiet(formed)


def test_a_snapshot_of_a_member_that_has_joined_anew_since_is_superseded_and_a_person_decides(formed: Stage) -> None:
    """The id on it was removed from etcd when the same snapshot was set aside. A disk that is there is not lost."""
    volume, copied = formed.volume_of("b"), formed.copy_disk(formed.volume_of("b"))
    take_over(formed, "b")
    restore_while_down(formed, "b", copied)
    formed.until(formed.healthy)
    assert formed.write()

    restore_while_down(formed, "b", copied)
    formed.run(2 * MINUTE)
    assert len(volumes_of(formed, "b")) == 1
    assert formed.generation().superseded == {volume: "b"}
    assert not started_old(formed)
    is_kept_and_unused(formed, volume)
    assert any("which is superseded" in host.sentence for host in formed.hosts.values() if host.runs)
    assert formed.write()

    formed.delete_volume(volume)
    formed.until(formed.healthy, within=2 * MINUTE)


def test_tags_that_are_back_while_the_replacement_is_blank_leave_the_old_disk_in_use(formed: Stage) -> None:
    host, old, members = formed.holder_of("a"), formed.volume_of("a"), ids(formed)
    formed.hide(old)
    formed.kill(host)
    formed.declare_dead(host)
    formed.until(lambda: volumes_of(formed, "a") != [], within=2 * MINUTE)
    (blank,) = volumes_of(formed, "a")

    formed.show(old)
    boot(formed, "a", "a")
    formed.until(lambda: set(formed.serving()) == {"a", "b", "c"})
    formed.run(30)

    assert formed.hosts[formed.holder(old) or ""].links() == {"etcd.manifest": old}
    assert formed.cloud.find(blank).attached_to is None
    assert formed.platters[blank].content is Content.BLANK
    assert ids(formed) == members
    assert asides_of(formed, old) == []
    is_quiet(formed)


def test_a_machine_that_holds_the_blank_replacement_gives_it_away_for_the_old_disk(formed: Stage) -> None:
    host, old, members = formed.holder_of("a"), formed.volume_of("a"), ids(formed)
    formed.hide(old)
    formed.kill(host)
    formed.declare_dead(host)
    (new,) = boot(formed, "a")
    new.disks.seconds = lambda _job: 1000.0  # it is still being read when the tags are back
    formed.until(lambda: any(formed.holder(each) == new.id for each in volumes_of(formed, "a")), within=2 * MINUTE)
    (blank,) = volumes_of(formed, "a")
    new.disks.seconds = lambda _job: 0.0

    formed.show(old)
    formed.until(lambda: set(formed.serving()) == {"a", "b", "c"}, within=2 * MINUTE)
    formed.run(10)

    assert new.links() == {"etcd.manifest": old}
    assert formed.cloud.find(blank).attached_to is None
    assert formed.platters[blank].content is Content.BLANK
    assert formed.platters[blank].formats == []
    assert ids(formed) == members


@pytest.mark.parametrize("seconds", [5, 30])
def test_two_disks_of_two_members_on_one_machine_leave_one_for_another_master(formed: Stage, seconds: int) -> None:
    """No quorum is at stake."""
    host, first = formed.holder_of("a"), formed.volume_of("a")
    attach_by_hand(formed, "b", host)
    formed.run(seconds)

    assert host.links() == {"etcd.manifest": first}
    assert any("is attached here beside" in text for text in refusals(formed))
    is_quiet(formed)


def asides_of(stage: Stage, volume: str) -> list[str]:
    folder = stage.platters[volume].folder
    assert folder is not None
    return [each.name for each in folder.glob("**/*.aside-*")]
