"""The faults of disks in the chaos soak do to a real disk what they say, and take it back."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from helpers_cluster import RealCluster, until
from soak.chaos.faults_disks import ABORT, REMOUNT, STOP, HungDisk, IoErrors, ReadOnly
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


@pytest.mark.parametrize("way", [ABORT, STOP, REMOUNT])
def test_a_file_system_that_was_made_read_only_takes_no_write(field: Field, way: str) -> None:
    fault = ReadOnly(member="a", way=way)
    point = field.until_mounted("a")
    write(point)

    fault.apply(field)

    with pytest.raises(OSError, match=r"error|[Rr]ead-only"):
        write(point)
    fault.undo(field)
    fault.mend(field)
    until(lambda: field.cluster.healthy() == {"main/a"}, "a new mount serves")


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


def test_a_disk_with_errors_can_be_read_by_nobody_until_they_end(field: Field) -> None:
    fault = IoErrors(member="a", lasts=3.0)
    device = Path(field.volume("a")["device"])

    def readable() -> bool:
        handle = os.open(device, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return len(os.pread(handle, 4096, 0)) == 4096
        except OSError:
            return False
        finally:
            os.close(handle)

    assert readable()
    fault.apply(field)
    assert not readable()
    fault.undo(field)
    assert readable()
    fault.mend(field)
    until(lambda: field.cluster.healthy() == {"main/a"}, "a new mount serves")
