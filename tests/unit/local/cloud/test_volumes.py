"""The table of volumes: one transaction decides who holds a volume."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from builders.volumes import a_volume, all_at_once
from protokube.errors import Refused
from protokube.local.base.db import Database
from protokube.local.cloud.host_registry import HostRegistry
from protokube.local.cloud.volumes import Volumes
from protokube.providers.volumes import VolumeTaken


@pytest.fixture
def database() -> Iterator[Database]:
    made = Database(Path(":memory:"))
    yield made
    made.close()


@pytest.fixture
def volumes(database: Database) -> Volumes:
    table = Volumes(database)
    table.add("vol-1", a_volume(), "r1", founder=True)
    return table


@pytest.fixture
def hosts(database: Database) -> list[str]:
    return [HostRegistry(database).add("m", zone="local").name for _ in range(2)]


def test_a_claim_is_won_once_and_says_whether_it_was_new(volumes: Volumes, hosts: list[str]) -> None:
    first, second = hosts

    assert volumes.claim("vol-1", first)
    assert not volumes.claim("vol-1", first)
    with pytest.raises(VolumeTaken, match=f"attached to {first}"):
        volumes.claim("vol-1", second)
    assert [volume.id for volume in volumes.held_by(first)] == ["vol-1"]


def test_only_its_holder_is_relieved_of_a_volume(volumes: Volumes, hosts: list[str]) -> None:
    first, second = hosts
    volumes.claim("vol-1", first)

    assert not volumes.free("vol-1", second)
    assert volumes.find("vol-1").attached_to == first
    assert volumes.free("vol-1", first)
    assert volumes.claim("vol-1", second)


def test_a_dead_host_claims_nothing_not_even_what_it_held(
    volumes: Volumes, hosts: list[str], database: Database
) -> None:
    volumes.claim("vol-1", hosts[0])
    HostRegistry(database).mark_dead(hosts[0])

    with pytest.raises(Refused, match=f"{hosts[0]} takes no volume"):
        volumes.claim("vol-1", hosts[0])
    with pytest.raises(Refused, match="never was takes no volume"):
        volumes.claim("vol-1", "never was")


def test_a_host_that_was_declared_dead_writes_nothing_about_what_it_still_holds(
    volumes: Volumes, hosts: list[str], database: Database
) -> None:
    volumes.claim("vol-1", hosts[0])
    HostRegistry(database).mark_dead(hosts[0])

    with pytest.raises(Refused, match="writes nothing about vol-1"):
        volumes.write_mark("vol-1", "formed", hosts[0])
    with pytest.raises(Refused, match="writes nothing about vol-1"):
        volumes.write_epoch("vol-1", 1, hosts[0], hosts[0], generation="g1")

    assert (volumes.find("vol-1").mark, volumes.find("vol-1").epoch) == ("", 0)


def test_of_a_mark_and_a_successor_at_once_the_mark_is_never_written_after_the_volume_moved(
    volumes: Volumes, database: Database
) -> None:
    registry = HostRegistry(database)
    for number in range(20):
        volume = f"vol-w{number}"
        first, second = (registry.add("m", zone="local").name for _ in range(2))
        volumes.add(volume, a_volume(), volume, founder=False)
        volumes.claim(volume, first)

        def move(volume: str = volume, first: str = first, second: str = second) -> str:
            volumes.free(volume, first)
            volumes.claim(volume, second)
            return volumes.find(volume).mark

        works = (move, partial(volumes.write_mark, volume, "late", first))
        seen, written = all_at_once(2, lambda me, works=works: works[me]())  # type: ignore[misc]

        assert volumes.find(volume).mark == seen
        assert (seen == "") == isinstance(written, Refused)


def test_of_claims_and_a_death_at_once_a_dead_host_never_comes_out_as_a_new_holder(
    volumes: Volumes, database: Database
) -> None:
    registry = HostRegistry(database)
    for number in range(20):
        volume, host = f"vol-r{number}", registry.add("m", zone="local").name
        volumes.add(volume, a_volume(), volume, founder=False)
        works = (partial(registry.mark_dead, host), partial(volumes.claim, volume, host))

        results = all_at_once(2, lambda me, works=works: works[me]())  # type: ignore[misc]

        held = volumes.find(volume).attached_to == host
        assert held != isinstance(results[1], Refused)


def test_a_deleted_volume_is_held_by_nobody_and_its_row_stays(volumes: Volumes, hosts: list[str]) -> None:
    volumes.claim("vol-1", hosts[0])

    volumes.delete("vol-1")

    assert volumes.everything() == volumes.held_by(hosts[0]) == []
    assert volumes.deleted() == ["vol-1"]
    for call in (
        volumes.find,
        lambda name: volumes.claim(name, hosts[1]),
        lambda name: volumes.write_mark(name, "x", hosts[0]),
    ):
        with pytest.raises(Refused, match="no volume vol-1"):
            call("vol-1")


def test_what_a_request_was_answered_with_is_told_without_what_happened_since(
    volumes: Volumes, hosts: list[str]
) -> None:
    volumes.claim("vol-1", hosts[0])
    volumes.write_mark("vol-1", "formed", hosts[0])
    volumes.write_epoch("vol-1", 3, hosts[0], hosts[0], generation="g1")

    assert volumes.made_for("r1", founder=True) == a_volume("vol-1")
    assert volumes.made_for("r1", founder=False) is None
    later = volumes.add("vol-2", a_volume(), "r1", founder=False)
    assert later == replace(a_volume("vol-2"), request="r1")


def test_an_id_is_eight_hexadecimal_digits_and_new(volumes: Volumes) -> None:
    made = {volumes.new_id() for _ in range(50)}

    assert len(made) == 50
    assert all(re.fullmatch(r"vol-[0-9a-f]{8}", volume) for volume in made)
