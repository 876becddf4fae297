"""Who we are and who else there is, in every kind of infrastructure."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from conformance.volumes.worlds import FileWorld, FloatingWorld, World
from protokube.errors import InvalidRequest, Refused, TryLater
from protokube.providers.machines import Machine
from protokube.providers.machines.file import FileMachines
from protokube.providers.machines.local import decode_machine


def test_a_machine_knows_itself_and_is_in_the_list(world: World) -> None:
    for machine in (world.mine, world.other):
        machines = world.machines_seen_from(machine)

        me = machines.me()

        assert me.id == machine
        assert me in machines.list_machines()
        assert me.name
        assert me.address
        assert me.master


def test_an_external_address_is_reported_where_the_provider_was_given_one_and_empty_otherwise(world: World) -> None:
    for machine, external in ((world.mine, world.external), (world.other, "")):
        me = world.machines_seen_from(machine).me()

        assert me.external == external
        assert me.address not in ("", world.external)
        assert me in world.machines_seen_from(world.other).list_machines()


def test_everybody_sees_the_same_list_sorted_by_id(world: World) -> None:
    listed = world.machines_seen_from(world.mine).list_machines()

    assert [machine.id for machine in listed] == sorted(machine.id for machine in listed)
    assert list(world.machines_seen_from(world.other).list_machines()) == list(listed)


def test_no_two_machines_share_an_address_or_a_name(world: World) -> None:
    listed = world.machines_seen_from(world.mine).list_machines()

    assert len({machine.address for machine in listed}) == len(listed)
    assert len({machine.name for machine in listed}) == len(listed)


def test_a_machine_that_was_declared_dead_is_gone_from_the_list_and_still_knows_who_it_was(
    floating: FloatingWorld,
) -> None:
    dead, other = floating.add_machine(), floating.add_machine()
    before = floating.machines_seen_from(dead).me()

    floating.declare_dead(dead)

    assert [machine.id for machine in floating.machines_seen_from(other).list_machines()] == [other]
    assert floating.machines_seen_from(dead).me() == before


def test_a_new_machine_is_nobody_who_was_there_before(floating: FloatingWorld) -> None:
    seen = set()
    for _ in range(10):
        machine = floating.add_machine()
        seen.add((machine, floating.machines_seen_from(machine).me().address))
        floating.declare_dead(machine)

    assert len({machine for machine, _ in seen}) == len({address for _, address in seen}) == 10


def test_a_cloud_that_does_not_answer_says_so(floating: FloatingWorld) -> None:
    machines = floating.machines_seen_from(floating.add_machine())
    floating.go_down(True)

    calls: list[Callable[[], object]] = [machines.me, machines.list_machines]
    for call in calls:
        with pytest.raises(TryLater):
            call()


def test_the_document_of_a_daemon_without_external_addresses_is_decoded() -> None:
    document = {
        "id": "m-1",
        "name": "m-1",
        "zone": "local",
        "address": "10.77.0.11",
        "group": "masters",
        "master": True,
    }

    assert decode_machine(document) == Machine(
        id="m-1", name="m-1", zone="local", address="10.77.0.11", group="masters"
    )


def test_a_machine_that_is_not_in_the_inventory_is_told_to_be_added(tmp_path: Path) -> None:
    rack = FileWorld(tmp_path)

    with pytest.raises(Refused, match="rack-z is not in the inventory"):
        rack.machines_seen_from("rack-z").me()


def test_an_inventory_that_went_bad_is_refused(tmp_path: Path) -> None:
    rack = FileWorld(tmp_path)
    machines = rack.machines_seen_from("rack-a")
    rack.inventory.write_text("machines: 3\n")

    with pytest.raises(Refused, match="problems in the inventory"):
        machines.list_machines()
    with pytest.raises(InvalidRequest):
        FileMachines(rack.inventory, "rack-a")
