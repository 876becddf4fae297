"""Names and addresses of hosts: new ones for each, as long as there are any."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from protokube.errors import Refused, TryLater
from protokube.local.base.db import Database
from protokube.local.cloud.host_registry import FIRST, LAST, NETWORK, Census


@pytest.fixture
def census() -> Iterator[Census]:
    database = Database(Path(":memory:"))
    yield Census(database)
    database.close()


def test_a_host_is_named_after_its_group_and_numbered_from_eleven(census: Census) -> None:
    first, second = census.admit("master-a", zone="a"), census.admit("master-b", zone="b", master=False)

    assert first.name.startswith("master-a-")
    assert len(first.name) == len("master-a-") + 4
    assert (first.address, second.address) == ("10.77.0.11", "10.77.0.12")
    assert second.machine().group == "master-b"
    assert (second.machine().zone, second.machine().master) == ("b", False)
    assert (first.pid, first.started, first.dead) == (None, None, False)


def test_the_address_of_a_dead_host_is_not_used_again_while_others_are_free(census: Census) -> None:
    addresses = []
    for _ in range(20):
        host = census.admit("m", zone="local")
        addresses.append(host.address)
        census.bury(host.name)

    assert len(set(addresses)) == 20


def test_once_all_addresses_were_used_the_one_free_for_the_longest_time_is_next(census: Census) -> None:
    hosts = [census.admit("m", zone="local") for _ in range(FIRST, LAST + 1)]
    with pytest.raises(TryLater, match="every address"):
        census.admit("m", zone="local")
    for number in (200, 3, 100):
        census.bury(hosts[number].name)

    assert census.admit("m", zone="local").address == f"{NETWORK}{FIRST + 3}"
    assert census.admit("m", zone="local").address == f"{NETWORK}{FIRST + 100}"


def test_the_address_of_a_host_that_is_dead_by_declaration_only_is_still_in_use(census: Census) -> None:
    hosts = [census.admit("m", zone="local") for _ in range(FIRST, LAST + 1)]
    for number in (5, 6):
        census.bury(hosts[number].name)

    again = census.admit("m", zone="local", in_use=lambda host: host.name == hosts[5].name)

    assert again.address == hosts[6].address


def test_a_host_is_buried_once(census: Census) -> None:
    host = census.admit("m", zone="local")

    assert census.bury(host.name)
    assert not census.bury(host.name)
    assert census.living() == []
    assert [each.name for each in census.everybody()] == [host.name]


def test_what_is_known_of_a_host_is_what_was_written(census: Census) -> None:
    host = census.admit("m", zone="local")

    census.write_started(host.name, 4711, 99)

    found = census.find(host.name)
    assert (found.pid, found.started) == (4711, 99)
    with pytest.raises(Refused, match="no host m-none"):
        census.find("m-none")
