"""Each fault that a test can inject into the memory cloud has the effect of its name."""

from __future__ import annotations

from dataclasses import replace

import pytest

from builders.volumes import a_volume
from protokube.errors import Refused, TryLater
from protokube.providers.clients.memory import MemoryCloud
from protokube.providers.machines import Machine
from protokube.providers.volumes import AttachmentState, VolumeTaken
from protokube.providers.volumes.memory import MemoryVolumePool


def a_machine(name: str, zone: str = "local") -> Machine:
    return Machine(id=name, name=name, zone=zone, address="10.0.0.9", group="masters")


def test_a_world_can_be_given_whole() -> None:
    cloud = MemoryCloud(a_volume("vol-1"), machines=[a_machine("i-left"), a_machine("i-right")])

    cloud.seen_from("i-left").attach("vol-1")

    with pytest.raises(VolumeTaken, match="attached to i-left"):
        cloud.seen_from("i-right").attach("vol-1")
    assert str(cloud.seen_from("i-left").device("vol-1").path) == "/dev/memory/vol-1"


def test_made_up_machines_have_names_and_addresses_of_their_own() -> None:
    cloud = MemoryCloud()
    machines = [cloud.add_machine() for _ in range(300)]

    assert len({machine.id for machine in machines}) == len({machine.address for machine in machines}) == 300
    chosen = cloud.add_machine("i-mine", name="mine", zone="b", group="g", address="10.1.1.1")
    assert chosen == Machine(id="i-mine", name="mine", zone="b", address="10.1.1.1", group="g")
    assert cloud.add_machine(external="203.0.113.1").external == "203.0.113.1"


def test_an_id_is_never_used_again() -> None:
    cloud = MemoryCloud()
    cloud.add_machine("i-1")
    cloud.declare_dead("i-1")

    with pytest.raises(ValueError, match="i-1 was used before"):
        cloud.add_machine("i-1")


def test_a_killed_machine_keeps_its_volumes_until_somebody_declares_it_dead() -> None:
    cloud = MemoryCloud(a_volume("vol-1"))
    dead, next_one = cloud.add_machine(), cloud.add_machine()
    cloud.seen_from(dead.id).attach("vol-1")

    cloud.kill_machine(dead.id)

    assert cloud.holder("vol-1") == dead.id
    assert dead in cloud.machines()
    with pytest.raises(VolumeTaken):
        cloud.seen_from(next_one.id).attach("vol-1")
    with pytest.raises(TryLater):
        cloud.seen_from(dead.id).list_volumes()
    cloud.declare_dead(dead.id)
    assert cloud.holder("vol-1") is None
    assert dead not in cloud.machines()


def test_a_frozen_machine_reaches_nobody_and_goes_on_where_it_was() -> None:
    cloud = MemoryCloud(a_volume("vol-1"))
    machine = cloud.add_machine()
    seen = cloud.seen_from(machine.id)
    seen.attach("vol-1")

    cloud.freeze(machine.id)
    with pytest.raises(TryLater, match="does not answer"):
        seen.me()
    cloud.thaw(machine.id)

    assert seen.me() == machine
    assert cloud.holder("vol-1") == machine.id


def test_a_frozen_machine_that_was_declared_dead_wakes_up_with_nothing() -> None:
    cloud = MemoryCloud(a_volume("vol-1"))
    machine = cloud.add_machine()
    seen = cloud.seen_from(machine.id)
    seen.attach("vol-1")
    cloud.freeze(machine.id)
    cloud.declare_dead(machine.id)
    cloud.thaw(machine.id)

    assert seen.list_volumes()[0].attached_to is None
    with pytest.raises(Refused, match="declared dead"):
        seen.attach("vol-1")


def test_a_lost_answer_hides_what_was_done() -> None:
    cloud = MemoryCloud(a_volume("vol-1"))
    machine = cloud.add_machine()
    seen = cloud.seen_from(machine.id)
    cloud.answers_lost = True

    with pytest.raises(TryLater, match="lost"):
        seen.attach("vol-1")

    cloud.answers_lost = False
    assert cloud.holder("vol-1") == machine.id


def test_while_it_is_down_nothing_is_done() -> None:
    cloud = MemoryCloud(a_volume("vol-1"))
    seen = cloud.seen_from(cloud.add_machine().id)
    cloud.down = True

    with pytest.raises(TryLater):
        seen.attach("vol-1")

    assert cloud.holder("vol-1") is None


def test_a_zonal_volume_stays_in_its_zone() -> None:
    cloud = MemoryCloud(a_volume("vol-1", zone="a"), zonal=True)
    here, there = cloud.add_machine(zone="a"), cloud.add_machine(zone="b")

    assert cloud.seen_from(there.id).zonal
    with pytest.raises(Refused, match="in zone a"):
        cloud.seen_from(there.id).attach("vol-1")
    cloud.seen_from(here.id).attach("vol-1")


def test_every_call_is_counted_and_only_changes_count_as_changes() -> None:
    cloud = MemoryCloud(a_volume("vol-1"))
    machine = cloud.add_machine()
    seen = cloud.seen_from(machine.id)
    before = cloud.changes

    for _ in range(3):
        seen.list_volumes()
        seen.attach("vol-1")
        seen.write_mark("vol-1", "forming")
        seen.write_epoch("vol-1", 1, machine.id, generation="g1")

    assert cloud.calls["list_volumes"] == cloud.calls["attach"] == 3
    assert cloud.changes == before + 3


def test_a_volume_that_is_detached_slowly_is_nobody_elses_until_that_is_finished() -> None:
    cloud = MemoryCloud(a_volume("vol-1"), machines=[a_machine("i-left"), a_machine("i-right")])
    left, right = cloud.seen_from("i-left"), cloud.seen_from("i-right")
    left.attach("vol-1")
    cloud.detaches_slowly = True
    left.release("vol-1")

    for each in (left, right):
        with pytest.raises(TryLater, match="it is being detached from i-left"):
            each.attach("vol-1")
    with pytest.raises(TryLater, match="vol-1 is not deleted yet: it is being detached from i-left"):
        MemoryVolumePool(cloud).delete("vol-1")
    cloud.finish_detaching()
    assert left.list_volumes() == [a_volume("vol-1")]
    right.attach("vol-1")
    right.release("vol-1")
    assert left.list_volumes() == [a_volume("vol-1")]


@pytest.mark.parametrize(
    ("state", "why"),
    [(AttachmentState.DETACHING, "it is being detached from a machine"), (AttachmentState.BUSY, "it is busy"),
     (AttachmentState.ATTACHING, "it is being attached to a machine")],
)  # fmt: skip
def test_a_volume_that_is_attached_to_nobody_and_not_settled_is_not_free(state: AttachmentState, why: str) -> None:
    cloud = MemoryCloud(replace(a_volume("vol-1"), state=state), machines=[a_machine("i-1")])

    with pytest.raises(TryLater, match=why):
        cloud.seen_from("i-1").attach("vol-1")
    with pytest.raises(TryLater, match=f"vol-1 is not deleted yet: {why}"):
        MemoryVolumePool(cloud).delete("vol-1")


def test_a_busy_volume_of_ours_is_not_attached_again_until_it_is_no_longer_busy() -> None:
    busy = replace(a_volume("vol-1"), attached_to="i-1", state=AttachmentState.BUSY)
    with pytest.raises(TryLater, match="it is busy"):
        MemoryCloud(busy, machines=[a_machine("i-1")]).seen_from("i-1").attach("vol-1")


def test_a_machine_nobody_added_is_refused() -> None:
    with pytest.raises(Refused, match="no machine i-nobody"):
        MemoryCloud().seen_from("i-nobody").list_volumes()


def test_a_lost_volume_cannot_be_lost_again() -> None:
    cloud = MemoryCloud(a_volume("vol-1"))
    cloud.delete_volume("vol-1")

    with pytest.raises(Refused, match="no volume vol-1"):
        cloud.delete_volume("vol-1")
    with pytest.raises(Refused, match="no volume vol-1"):
        cloud.holder("vol-1")
