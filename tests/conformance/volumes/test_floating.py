"""What holds for volumes that move: creation, death of their holder, loss, and a cloud that does not answer."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import pytest

from builders.volumes import SIZE, a_volume, all_at_once
from conformance.volumes.worlds import FloatingWorld
from protokube.errors import InvalidRequest, Refused, TryLater
from protokube.providers.volumes import AttachmentState, Lock, VolumeTaken, epoch_key


def test_the_attachment_is_the_lock(floating: FloatingWorld) -> None:
    assert floating.seen_from(floating.add_machine()).lock is Lock.ATTACHMENT


def test_of_eight_machines_that_reach_for_one_volume_exactly_one_gets_it(floating: FloatingWorld) -> None:
    machines = [floating.add_machine() for _ in range(8)]
    views = [floating.seen_from(machine) for machine in machines]
    founders = floating.create_founders(*(a_volume(member=f"m{number}") for number in range(20)))

    for volume in founders:
        results = all_at_once(8, lambda me, volume=volume: views[me].attach(volume.id))  # type: ignore[misc]

        winners = [number for number, result in enumerate(results) if result is None]
        assert len(winners) == 1
        assert sum(isinstance(result, VolumeTaken) for result in results) == 7
        holder = next(each.attached_to for each in views[0].list_volumes() if each.id == volume.id)
        assert holder == machines[winners[0]]


def test_a_machine_may_hold_several_volumes_each_with_a_device_of_its_own(floating: FloatingWorld) -> None:
    founders = floating.create_founders(*(a_volume(etcd_cluster=key) for key in ("main", "events")))
    volumes = floating.seen_from(floating.add_machine())

    for volume in founders:
        volumes.attach(volume.id)

    assert len({volumes.device(volume.id).path for volume in founders}) == 2


def test_the_device_of_a_free_volume_is_nobodys(floating: FloatingWorld) -> None:
    volume = floating.one_volume()

    with pytest.raises(Refused, match=volume.id):
        floating.seen_from(floating.add_machine()).device(volume.id)


def test_founders_asked_for_again_are_the_same(floating: FloatingWorld) -> None:
    likes = [a_volume(member=member) for member in "ab"]
    first = floating.create_founders(*likes)

    assert floating.create_founders(*likes, a_volume(member="c"))[:2] == first
    assert [volume.request for volume in first] == ["", ""]


def test_a_volume_is_made_like_another_and_empty(floating: FloatingWorld) -> None:
    volumes = floating.seen_from(floating.add_machine())
    lost = replace(
        a_volume("vol-lost", zone="b", size=SIZE * 2),
        made_empty=False,
        attached_to="somebody",
        mark="formed",
        epoch=7,
        last_holder="somebody",
        request="an earlier one",
    )

    made = volumes.create_volume(lost, request="replace vol-lost")

    assert made == replace(a_volume(made.id, zone="b", size=SIZE * 2), request="replace vol-lost")
    assert volumes.list_volumes() == [made]
    assert made.id != "vol-lost"


def test_one_request_makes_one_volume_however_often_it_is_asked(floating: FloatingWorld) -> None:
    volumes = floating.seen_from(floating.add_machine())
    first = volumes.create_volume(a_volume(), request="r1")
    volumes.attach(first.id)
    volumes.write_mark(first.id, "forming")

    assert volumes.create_volume(a_volume(), request="r1") == first
    assert volumes.create_volume(a_volume(), request="r2").id != first.id
    assert len(volumes.list_volumes()) == 2


def test_one_request_of_many_at_once_makes_one_volume(floating: FloatingWorld) -> None:
    views = [floating.seen_from(floating.add_machine()) for _ in range(8)]

    made = all_at_once(8, lambda me: views[me].create_volume(a_volume(), request="the same"))

    assert len(set(made)) == 1
    assert len(views[0].list_volumes()) == 1


def test_of_epochs_written_at_once_the_greatest_stays(floating: FloatingWorld) -> None:
    volume, holder = floating.one_volume(), floating.add_machine()
    view = floating.seen_from(holder)
    view.attach(volume.id)

    all_at_once(8, lambda number: view.write_epoch(volume.id, number + 1, holder, generation="g1"))

    found = view.list_volumes()[0]
    assert (found.epoch, found.last_holder) == (8, holder)


def test_nobody_writes_about_a_volume_that_is_attached_to_nobody(floating: FloatingWorld) -> None:
    volume, machine = floating.one_volume(), floating.add_machine()
    view = floating.seen_from(machine)

    with pytest.raises(Refused, match=f"{machine} may not write the mark or the epoch of {volume.id}") as refused:
        view.write_mark(volume.id, "formed")
    assert refused.value.saw == f"{volume.id} is attached to nobody"
    with pytest.raises(Refused, match=f"{machine} may not write"):
        view.write_epoch(volume.id, 1, machine, generation="g1")

    assert view.list_volumes() == [volume]


def test_a_holder_that_lost_its_volume_to_a_successor_writes_nothing_about_it(floating: FloatingWorld) -> None:
    volume = floating.one_volume()
    first, second = floating.add_machine(), floating.add_machine()
    former, holder = floating.seen_from(first), floating.seen_from(second)
    former.attach(volume.id)
    former.write_epoch(volume.id, 1, first, generation="g1")
    floating.declare_dead(first)
    holder.attach(volume.id)
    holder.write_epoch(volume.id, 2, second, generation="g1")
    before = holder.list_volumes()

    with pytest.raises(Refused):
        former.write_mark(volume.id, "formed")
    with pytest.raises(Refused):
        former.write_epoch(volume.id, 3, first, generation="g1")

    assert holder.list_volumes() == before


def test_a_machine_that_is_no_master_sees_volumes_and_neither_attaches_nor_makes_any(floating: FloatingWorld) -> None:
    volume = floating.one_volume()
    view = floating.seen_from(floating.add_machine(master=False))

    with pytest.raises(Refused, match="is no master"):
        view.attach(volume.id)
    with pytest.raises(Refused, match="is no master"):
        view.create_volume(a_volume(), request="r")
    with pytest.raises(Refused):
        view.write_mark(volume.id, "formed")

    assert view.list_volumes() == [volume]


def test_a_volume_that_its_machine_gives_away_is_free_and_remembers_its_past(floating: FloatingWorld) -> None:
    volume, mine, other = floating.one_volume(), floating.add_machine(), floating.add_machine()
    volumes = floating.seen_from(mine)
    volumes.attach(volume.id)
    volumes.write_mark(volume.id, "formed")
    volumes.write_epoch(volume.id, 2, mine, generation="g1")

    volumes.release(volume.id)

    key = epoch_key(volume.id, "g1")
    assert volumes.list_volumes() == [replace(volume, mark="formed", epoch=2, epoch_of=key, last_holder=mine)]
    floating.seen_from(other).attach(volume.id)
    assert volumes.list_volumes()[0].attached_to == other


def test_what_another_machine_holds_or_nobody_is_not_given_away(floating: FloatingWorld) -> None:
    volume, mine, other = floating.one_volume(), floating.add_machine(), floating.add_machine()
    floating.seen_from(mine).release(volume.id)
    assert floating.seen_from(mine).list_volumes() == [volume]
    floating.seen_from(other).attach(volume.id)

    floating.seen_from(mine).release(volume.id)

    assert floating.seen_from(mine).list_volumes()[0].attached_to == other


def test_a_volume_that_was_given_away_can_be_taken_again_by_the_same_machine(floating: FloatingWorld) -> None:
    volume, mine = floating.one_volume(), floating.add_machine()
    volumes = floating.seen_from(mine)
    for _ in range(2):
        volumes.attach(volume.id)
        assert volumes.device(volume.id).serial == volume.id
        volumes.release(volume.id)
        with pytest.raises(Refused):
            volumes.device(volume.id)


def test_what_a_dead_machine_held_is_free_and_remembers_its_past(floating: FloatingWorld) -> None:
    volume = floating.one_volume()
    dead = floating.add_machine()
    volumes = floating.seen_from(dead)
    volumes.attach(volume.id)
    volumes.write_mark(volume.id, "formed")
    volumes.write_epoch(volume.id, 2, dead, generation="g1")

    floating.declare_dead(dead)

    successor = floating.add_machine()
    seen = floating.seen_from(successor)
    assert seen.list_volumes() == [
        replace(volume, mark="formed", epoch=2, epoch_of=epoch_key(volume.id, "g1"), last_holder=dead)
    ]
    seen.attach(volume.id)
    assert seen.list_volumes()[0].attached_to == successor


def test_a_volume_that_is_being_detached_is_listed_so_and_nobody_gets_it_before_it_is_free(
    floating: FloatingWorld,
) -> None:
    volume, dead, other = floating.one_volume(), floating.add_machine(), floating.add_machine()
    floating.seen_from(dead).attach(volume.id)
    floating.begin_detaching(dead)
    view = floating.seen_from(other)

    leaving = replace(volume, attached_to=dead, state=AttachmentState.DETACHING)
    assert (view.list_volumes(), view.look_up(volume.id)) == ([leaving], leaving)
    assert (leaving.is_free, leaving.between) == (False, f"it is being detached from {dead}")
    for machine in (other, dead):
        with pytest.raises((TryLater, Refused)):
            floating.seen_from(machine).attach(volume.id)
    with pytest.raises(TryLater, match="being detached"):
        view.attach(volume.id)
    with pytest.raises(TryLater, match=f"{volume.id} is not deleted yet: it is being detached from {dead}"):
        floating.pool().delete(volume.id)
    assert view.list_volumes() == [leaving]
    assert floating.pool().list_volumes() == [leaving]

    floating.declare_dead(dead)
    assert view.list_volumes() == [volume]
    view.attach(volume.id)
    assert view.list_volumes() == [replace(volume, attached_to=other)]


def test_a_machine_that_was_declared_dead_may_look_but_change_nothing(floating: FloatingWorld) -> None:
    volume = floating.one_volume()
    dead = floating.add_machine()
    volumes = floating.seen_from(dead)
    volumes.attach(volume.id)

    floating.declare_dead(dead)

    for call in (
        lambda: volumes.attach(volume.id),
        lambda: volumes.write_mark(volume.id, "forming"),
        lambda: volumes.write_epoch(volume.id, 1, dead, generation="g1"),
        lambda: volumes.release(volume.id),
        lambda: volumes.create_volume(a_volume(), request="late"),
        lambda: volumes.device(volume.id),
    ):
        with pytest.raises(Refused):
            call()
    assert volumes.list_volumes() == [volume]


def test_declaring_a_machine_dead_twice_takes_nothing_from_its_successor(floating: FloatingWorld) -> None:
    volume = floating.one_volume()
    dead, successor = floating.add_machine(), floating.add_machine()
    floating.seen_from(dead).attach(volume.id)
    floating.declare_dead(dead)
    floating.seen_from(successor).attach(volume.id)

    floating.declare_dead(dead)

    assert floating.seen_from(successor).list_volumes()[0].attached_to == successor


def test_a_lost_volume_is_gone_for_its_holder_too_and_its_id_is_never_used_again(floating: FloatingWorld) -> None:
    volume = floating.one_volume()
    volumes = floating.seen_from(floating.add_machine())
    volumes.attach(volume.id)

    floating.delete_volume(volume.id)

    assert volumes.list_volumes() == []
    late: list[Callable[[], object]] = [
        lambda: volumes.attach(volume.id),
        lambda: volumes.write_mark(volume.id, "formed"),
    ]
    for call in late:
        with pytest.raises(Refused, match=volume.id):
            call()
    made = {volumes.create_volume(a_volume(), request=f"r{number}").id for number in range(5)}
    assert volume.id not in made


def test_the_first_answer_to_a_request_stays_the_answer_after_the_volume_is_lost(floating: FloatingWorld) -> None:
    volumes = floating.seen_from(floating.add_machine())
    made = volumes.create_volume(a_volume(), request="r1")
    floating.delete_volume(made.id)

    assert volumes.create_volume(a_volume(), request="r1") == made
    assert volumes.list_volumes() == []


def test_a_cloud_that_does_not_answer_is_asked_again_later_and_has_changed_nothing(floating: FloatingWorld) -> None:
    volume = floating.one_volume()
    volumes = floating.seen_from(floating.add_machine())
    before = volumes.list_volumes()
    floating.go_down(True)

    for call in (
        lambda: volumes.list_volumes(),
        lambda: volumes.attach(volume.id),
        lambda: volumes.device(volume.id),
        lambda: volumes.write_mark(volume.id, "forming"),
        lambda: volumes.write_epoch(volume.id, 1, "me", generation="g1"),
        lambda: volumes.release(volume.id),
        lambda: volumes.create_volume(a_volume(), request="r"),
    ):
        began = time.monotonic()
        with pytest.raises(TryLater):
            call()
        assert time.monotonic() - began < 5

    floating.go_down(False)
    assert volumes.list_volumes() == before


def test_a_request_without_a_name_makes_nothing(floating: FloatingWorld) -> None:
    volumes = floating.seen_from(floating.add_machine())

    with pytest.raises(InvalidRequest):
        volumes.create_volume(a_volume(), request="")

    assert volumes.list_volumes() == []
