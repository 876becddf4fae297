"""The faults of disks in the chaos soak do to a real disk what they say, and take it back."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from clusters.real import RealCluster, until
from soak.chaos.faults_disks import HungDisk
from soak.chaos.field import Field


@pytest.fixture(scope="module")
def cluster() -> Iterator[RealCluster]:
    with RealCluster() as made:
        yield made.up("--masters", "1")


@pytest.fixture
def field(cluster: RealCluster) -> Field:
    until(lambda: cluster.healthy() == {"main/a"}, "the member serves")
    return Field(cluster)


def write(point: Path) -> None:
    handle = os.open(point / "probe", os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.write(handle, b"written")
        os.fsync(handle)
    finally:
        os.close(handle)


def test_writes_to_a_hung_disk_hang_until_it_goes_on_and_then_succeed(field: Field) -> None:
    fault = HungDisk(member="a", lasts=3.0)
    point = field.until_mounted("a")
    done = threading.Event()

    def work() -> None:
        write(point)
        done.set()

    fault.apply(field)
    try:
        threading.Thread(target=work, daemon=True).start()
        assert not done.wait(1.0)
        assert (point / "protokube.json").read_bytes()
    finally:
        fault.undo(field)

    assert done.wait(30)
    fault.undo(field)
    until(lambda: field.cluster.healthy() == {"main/a"}, "the member serves as before")


def test_a_hung_disk_goes_on_although_its_host_was_killed_meanwhile(field: Field) -> None:
    """A file system that is frozen when its last mount goes would stay so for ever."""
    fault = HungDisk(member="a", lasts=3.0)
    host = field.host_of("a")
    fault.apply(field)
    try:
        field.kill_host(host)
    finally:
        fault.undo(field)

    until(lambda: field.host_of("a") != host, "another host has the disk")
    until(lambda: field.cluster.healthy() == {"main/a"}, "it serves")
