"""What holds for volumes of every kind, floating or bolted down. The first volume of a world is `mine`'s to hold."""

from __future__ import annotations

import pytest

from builders.volumes import SIZE
from conformance.volumes.worlds import World
from protokube.errors import Refused
from protokube.providers.volumes import Volume, VolumeProvider, VolumeTaken, epoch_key


def held(world: World) -> tuple[VolumeProvider, Volume]:
    """A volume that our machine holds."""
    volumes = world.seen_from(world.mine)
    first = min(volumes.list_volumes(), key=lambda volume: volume.member)
    volumes.attach(first.id)
    return volumes, first


def test_a_list_is_complete_sorted_and_says_what_each_volume_is_for(world: World) -> None:
    listed = world.seen_from(world.mine).list_volumes()

    assert [volume.id for volume in listed] == sorted(volume.id for volume in listed)
    assert {volume.member for volume in listed} == {"a", "b", "c"}
    assert {volume.members for volume in listed} == {("a", "b", "c")}
    assert {(volume.etcd_cluster, volume.size, volume.made_empty) for volume in listed} == {("main", SIZE, True)}


def test_what_a_machine_attached_is_listed_as_its_own_by_everybody(world: World) -> None:
    _, volume = held(world)

    for machine in (world.mine, world.other):
        found = [each for each in world.seen_from(machine).list_volumes() if each.id == volume.id]
        assert [each.attached_to for each in found] == [world.mine]


def test_attaching_again_what_a_machine_holds_is_nothing(world: World) -> None:
    volumes, volume = held(world)
    before = volumes.list_volumes()

    volumes.attach(volume.id)

    assert volumes.list_volumes() == before


def test_what_another_machine_holds_is_taken_and_the_error_says_by_whom(world: World) -> None:
    _, volume = held(world)

    with pytest.raises(VolumeTaken, match=world.mine):
        world.seen_from(world.other).attach(volume.id)


def test_the_device_of_a_volume_is_told_to_its_holder_only(world: World) -> None:
    volumes, volume = held(world)

    device = volumes.device(volume.id)

    assert device.path.is_absolute()
    assert device.serial == volume.id
    assert volumes.device(volume.id) == device
    with pytest.raises(Refused):
        world.seen_from(world.other).device(volume.id)


def test_a_holder_reads_back_the_mark_it_wrote(world: World) -> None:
    volumes, volume = held(world)
    assert volume.mark == ""

    for mark in ("formatting:1c2b", "forming", "formed", "formed"):
        volumes.write_mark(volume.id, mark)

        assert [each.mark for each in volumes.list_volumes() if each.id == volume.id] == [mark]


def test_an_epoch_never_goes_down(world: World) -> None:
    volumes, volume = held(world)

    def seen() -> tuple[int, str]:
        found = next(each for each in volumes.list_volumes() if each.id == volume.id)
        return found.epoch, found.last_holder

    assert seen() == (0, "")
    told = []
    for epoch in (1, 5, 5, 4, 0, 6):
        volumes.write_epoch(volume.id, epoch, world.mine, generation="g1")
        told.append(seen())

    assert told == [(epoch, world.mine) for epoch in (1, 5, 5, 5, 5, 6)]


def test_only_the_machine_that_holds_a_volume_writes_its_mark_and_its_epoch(world: World) -> None:
    volumes, volume = held(world)
    volumes.write_mark(volume.id, "forming")
    volumes.write_epoch(volume.id, 2, world.mine, generation="g1")
    before = volumes.list_volumes()
    other = world.seen_from(world.other)

    with pytest.raises(Refused, match=volume.id):
        other.write_mark(volume.id, "formed")
    with pytest.raises(Refused, match=volume.id):
        other.write_epoch(volume.id, 3, world.other, generation="g1")
    with pytest.raises(Refused, match=volume.id):
        other.write_epoch(volume.id, 3, world.mine, generation="g1")

    assert volumes.list_volumes() == before


def test_a_holder_names_no_other_machine_as_the_holder(world: World) -> None:
    volumes, volume = held(world)

    with pytest.raises(Refused, match=f"may not name another machine as the holder of {volume.id}"):
        volumes.write_epoch(volume.id, 1, world.other, generation="g1")

    assert [(each.epoch, each.last_holder) for each in volumes.list_volumes() if each.id == volume.id] == [(0, "")]


def test_an_epoch_says_which_volume_and_generation_it_was_written_for(world: World) -> None:
    volumes, volume = held(world)

    volumes.write_epoch(volume.id, 3, world.mine, generation="g1")

    found = next(each for each in volumes.list_volumes() if each.id == volume.id)
    assert found.epoch_of == epoch_key(volume.id, "g1")
    assert (found.epoch_for("g1"), found.epoch_for("g2")) == (3, 0)


def test_an_epoch_of_another_generation_is_overwritten_and_never_lowered_within_one(world: World) -> None:
    volumes, volume = held(world)

    def seen() -> tuple[int, str]:
        found = next(each for each in volumes.list_volumes() if each.id == volume.id)
        return found.epoch, found.epoch_of.removeprefix(f"{volume.id}/")

    recorded = []
    for epoch, generation in ((7, "g1"), (2, "g2"), (1, "g2"), (2, "g2"), (3, "g2")):
        volumes.write_epoch(volume.id, epoch, world.mine, generation=generation)
        recorded.append(seen())

    assert recorded == [(7, "g1"), (2, "g2"), (2, "g2"), (2, "g2"), (3, "g2")]


def test_a_mark_leaves_the_epoch_alone_and_an_epoch_the_mark(world: World) -> None:
    volumes, volume = held(world)

    volumes.write_mark(volume.id, "forming")
    volumes.write_epoch(volume.id, 3, world.mine, generation="g1")
    volumes.write_mark(volume.id, "formed")

    found = next(each for each in volumes.list_volumes() if each.id == volume.id)
    assert (found.mark, found.epoch, found.last_holder) == ("formed", 3, world.mine)


def test_a_volume_that_is_not_there_is_refused_by_every_call(world: World) -> None:
    volumes = world.seen_from(world.mine)

    for call in (
        lambda: volumes.attach("vol-none"),
        lambda: volumes.device("vol-none"),
        lambda: volumes.write_mark("vol-none", "forming"),
        lambda: volumes.write_epoch("vol-none", 1, "me", generation="g1"),
        lambda: volumes.release("vol-none"),
    ):
        with pytest.raises(Refused, match="vol-none"):
            call()


def test_a_volume_is_bound_to_no_zone_here(world: World) -> None:
    assert world.seen_from(world.mine).zonal is False
