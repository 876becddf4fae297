"""All volumes of a cluster, for a command: the list, the founders, and a deletion that takes nothing in use."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import pytest

from builders.volumes import SIZE, a_volume, all_at_once
from conformance.volumes.worlds import FloatingWorld
from protokube.errors import Refused, TryLater
from protokube.providers.volumes import VolumePool, VolumeTaken


def ids(pool: VolumePool) -> list[str]:
    return [volume.id for volume in pool.list_volumes()]


def test_each_member_gets_one_blank_volume_in_the_order_asked_for(floating: FloatingWorld) -> None:
    pool = floating.pool()
    likes = [a_volume(etcd_cluster=key, member=member) for key in ("main", "events") for member in "cab"]

    made = pool.create_founders(likes)

    assert [replace(each, id="") for each in made] == likes
    assert all(each.made_empty and each.attached_to is None and not each.mark for each in made)
    assert ids(pool) == sorted(each.id for each in made)
    assert len(set(ids(pool))) == 6


def test_a_founder_is_created_empty_whatever_it_shall_be_like(floating: FloatingWorld) -> None:
    used = replace(a_volume("vol-mine"), attached_to="i-1", mark="formed", epoch=7, last_holder="i-1", request="r1")

    (made,) = floating.pool().create_founders([used])

    assert replace(made, id="") == a_volume()
    assert made.id != "vol-mine"


def test_founders_asked_for_again_are_the_same_also_at_another_size_or_once_they_are_in_use(
    floating: FloatingWorld,
) -> None:
    pool = floating.pool()
    first = pool.create_founders([a_volume(member=member) for member in "ab"])
    machine = floating.seen_from(floating.add_machine())
    machine.attach(first[0].id)
    machine.write_mark(first[0].id, "formed")

    again = floating.pool().create_founders([a_volume(member=member, size=SIZE * 2) for member in "abc"])

    assert list(again[:2]) == list(first)
    assert len(pool.list_volumes()) == 3


def test_commands_that_create_the_founders_at_the_same_time_create_each_of_them_once(floating: FloatingWorld) -> None:
    likes = [a_volume(member=member) for member in "abc"]

    results = all_at_once(6, lambda _: list(floating.pool().create_founders(likes)))

    assert all(result == results[0] for result in results)
    assert len(floating.pool().list_volumes()) == 3


def test_a_command_lists_what_machines_made_who_holds_it_and_what_has_no_tags(floating: FloatingWorld) -> None:
    pool, machine = floating.pool(), floating.add_machine()
    held, bare = pool.create_founders([a_volume(member=member) for member in "ab"])
    seen = floating.seen_from(machine)
    seen.attach(held.id)
    made = seen.create_volume(a_volume(member="c"), request="r1")
    floating.remove_tags(bare.id)

    listed = {volume.id: volume for volume in pool.list_volumes()}

    assert list(listed) == sorted([held.id, bare.id, made.id])
    assert listed[held.id].attached_to == machine
    assert listed[made.id] == made
    assert (listed[bare.id].tagged, listed[bare.id].member) == (False, "")


def test_a_deleted_volume_is_gone_and_its_founder_is_not_created_again(floating: FloatingWorld) -> None:
    pool = floating.pool()
    gone, kept = pool.create_founders([a_volume(member=member) for member in "ab"])

    pool.delete(gone.id)

    assert ids(pool) == [kept.id]
    assert pool.create_founders([a_volume()]) == [gone]
    assert ids(pool) == [kept.id]
    with pytest.raises(Refused, match=gone.id):
        floating.seen_from(floating.add_machine()).attach(gone.id)


def test_a_volume_without_tags_can_be_deleted(floating: FloatingWorld) -> None:
    volume = floating.one_volume()
    floating.remove_tags(volume.id)

    floating.pool().delete(volume.id)

    assert ids(floating.pool()) == []


@pytest.mark.parametrize("volume", ["vol-none", "", ".", "../volumes", "vol-%", "*"])
def test_an_unknown_id_deletes_nothing(floating: FloatingWorld, volume: str) -> None:
    pool = floating.pool()
    before = pool.create_founders([a_volume(member=member) for member in "ab"])

    pool.delete(volume)

    assert ids(pool) == sorted(each.id for each in before)


def test_deleting_again_has_no_effect(floating: FloatingWorld) -> None:
    pool = floating.pool()
    gone, kept = pool.create_founders([a_volume(member=member) for member in "ab"])

    pool.delete(gone.id)
    pool.delete(gone.id)

    assert ids(pool) == [kept.id]


def test_an_attached_volume_is_not_deleted_and_its_holder_notices_nothing(floating: FloatingWorld) -> None:
    volume, machine = floating.one_volume(), floating.add_machine()
    seen = floating.seen_from(machine)
    seen.attach(volume.id)
    seen.write_mark(volume.id, "formed")
    before = floating.pool().list_volumes()

    with pytest.raises(Refused, match=f"{volume.id} is attached") as caught:
        floating.pool().delete(volume.id)

    assert machine in caught.value.saw
    assert floating.pool().list_volumes() == before
    assert seen.device(volume.id).serial == volume.id
    seen.write_mark(volume.id, "formed")


def test_a_volume_can_be_deleted_once_its_holder_released_it_or_is_dead(floating: FloatingWorld) -> None:
    pool = floating.pool()
    released, freed = pool.create_founders([a_volume(member=member) for member in "ab"])
    polite, dead = floating.add_machine(), floating.add_machine()
    floating.seen_from(polite).attach(released.id)
    floating.seen_from(dead).attach(freed.id)

    floating.seen_from(polite).release(released.id)
    floating.declare_dead(dead)
    for volume in (released, freed):
        pool.delete(volume.id)

    assert ids(pool) == []


def test_a_volume_that_is_attached_while_it_is_deleted_is_either_held_or_gone(floating: FloatingWorld) -> None:
    pool = floating.pool()
    machine = floating.add_machine()
    seen = floating.seen_from(machine)
    for volume in pool.create_founders([a_volume(member=f"m{number}") for number in range(20)]):
        calls: list[Callable[[], None]] = [
            lambda volume=volume: seen.attach(volume.id),  # type: ignore[misc]
            lambda volume=volume: pool.delete(volume.id),  # type: ignore[misc]
        ]

        attached, deleted = all_at_once(2, lambda number, calls=calls: calls[number]())  # type: ignore[misc]

        found = [each.attached_to for each in pool.list_volumes() if each.id == volume.id]
        assert (attached is None) != (deleted is None)
        assert found == ([machine] if attached is None else [])
        failed = deleted if attached is None else attached
        assert isinstance(failed, Refused | TryLater)
        assert not isinstance(failed, VolumeTaken)


def test_a_volume_of_another_cluster_is_not_deleted(floating: FloatingWorld, other_cluster: FloatingWorld) -> None:
    mine = floating.one_volume()
    before = other_cluster.pool().list_volumes()
    assert mine.id not in ids(other_cluster.pool())

    for volume in before:
        with suppress(Refused):  # where the provider sees whose it is
            floating.pool().delete(volume.id)

    assert other_cluster.pool().list_volumes() == before != []
    assert ids(floating.pool()) == [mine.id]


def test_a_provider_that_does_not_answer_has_no_empty_list(floating: FloatingWorld) -> None:
    pool = floating.unreachable_pool()

    calls: list[Callable[[], object]] = [
        pool.list_volumes,
        lambda: pool.create_founders([a_volume()]),
        lambda: pool.delete("vol-1"),
    ]
    for call in calls:
        with pytest.raises(TryLater):
            call()
