"""Names and addresses of hosts: unused ones for each, as long as there are any."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from protokube.errors import Refused, TryLater
from protokube.local.base.db import Database
from protokube.local.cloud.host_registry import FIRST, LAST, NETWORK, HostRegistry


@pytest.fixture
def registry() -> Iterator[HostRegistry]:
    database = Database(Path(":memory:"))
    yield HostRegistry(database)
    database.close()


def test_a_host_is_named_after_its_group_and_numbered_from_eleven(registry: HostRegistry) -> None:
    first, second = registry.add("master-a", zone="a"), registry.add("master-b", zone="b", master=False)

    assert first.name.startswith("master-a-")
    assert len(first.name) == len("master-a-") + 4
    assert (first.address, second.address) == ("10.77.0.11", "10.77.0.12")
    assert second.machine().group == "master-b"
    assert (second.machine().zone, second.machine().master) == ("b", False)
    assert (first.pid, first.started, first.dead) == (None, None, False)


def test_the_address_of_a_dead_host_is_not_used_again_while_others_are_free(registry: HostRegistry) -> None:
    addresses = []
    for _ in range(20):
        host = registry.add("m", zone="local")
        addresses.append(host.address)
        registry.mark_dead(host.name)

    assert len(set(addresses)) == 20


def test_once_all_addresses_were_used_the_one_free_for_the_longest_time_is_next(registry: HostRegistry) -> None:
    hosts = [registry.add("m", zone="local") for _ in range(FIRST, LAST + 1)]
    with pytest.raises(TryLater, match="every address"):
        registry.add("m", zone="local")
    for number in (200, 3, 100):
        registry.mark_dead(hosts[number].name)

    assert registry.add("m", zone="local").address == f"{NETWORK}{FIRST + 3}"
    assert registry.add("m", zone="local").address == f"{NETWORK}{FIRST + 100}"


def test_the_address_of_a_host_that_is_dead_by_declaration_only_is_still_in_use(registry: HostRegistry) -> None:
    hosts = [registry.add("m", zone="local") for _ in range(FIRST, LAST + 1)]
    for number in (5, 6):
        registry.mark_dead(hosts[number].name)

    again = registry.add("m", zone="local", in_use=lambda host: host.name == hosts[5].name)

    assert again.address == hosts[6].address


def test_a_host_is_buried_once(registry: HostRegistry) -> None:
    host = registry.add("m", zone="local")

    assert registry.mark_dead(host.name)
    assert not registry.mark_dead(host.name)
    assert registry.living() == []
    assert [each.name for each in registry.all_hosts()] == [host.name]


def test_what_is_known_of_a_host_is_what_was_written(registry: HostRegistry) -> None:
    host = registry.add("m", zone="local")

    registry.write_started(host.name, 4711, 99)

    found = registry.find(host.name)
    assert (found.pid, found.started) == (4711, 99)
    with pytest.raises(Refused, match="no host m-none"):
        registry.find("m-none")


def test_after_a_reboot_nobody_is_taken_for_a_host_by_its_number(registry: HostRegistry) -> None:
    host = registry.add("m", zone="local")
    registry.forget_processes_of_another_boot("before")
    registry.write_started(host.name, 4711, 99)
    registry.forget_processes_of_another_boot("before")
    assert registry.find(host.name).pid == 4711, "the daemon alone was restarted"

    registry.forget_processes_of_another_boot("after")

    found = registry.find(host.name)
    assert (found.pid, found.started, found.dead) == (None, None, False), "its volumes are taken from it as from others"


def test_a_database_of_before_boots_were_noted_keeps_its_hosts(registry: HostRegistry) -> None:
    host = registry.add("m", zone="local")
    registry.write_started(host.name, 4711, 99)

    registry.forget_processes_of_another_boot("some boot")

    assert registry.find(host.name).pid == 4711
