"""The raft position of a log on a disk that fails: a position that did not reach the disk is not reported."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from pathlib import Path

import pytest

from clusters.disks import Liar, an_image, in_memory, lying, own_mounts, run
from protokube.etcd.wal import LogReader, UnreadableLog
from unit.etcd.walfiles import append, entry, head, segment, state

START = head() + entry(1) + state(1, 1)


@pytest.fixture(scope="module", autouse=True)
def apart() -> Iterator[None]:
    with own_mounts():
        yield


@pytest.fixture
def disk() -> Iterator[tuple[Liar, Path]]:
    """A mounted disk that fails on demand, and its mount point."""
    with in_memory() as folder:
        image, point = an_image(folder), folder / "mounted"
        run("mkfs.ext4", "-q", "-F", image)
        point.mkdir()
        with lying(image) as liar:
            run("mount", liar.block.path, point)
            try:
                yield liar, point
            finally:
                liar.tell("heal")
                run("umount", point)


def test_a_position_that_cannot_be_synced_is_not_reported(disk: tuple[Liar, Path]) -> None:
    liar, point = disk
    path = segment(point / "wal", 0, 0, START)
    reader = LogReader(path.parent)
    assert reader.sync_and_read().commit == 1
    append(path, len(START), entry(2) + state(1, 2))
    liar.tell("refuse", 0)

    with pytest.raises(OSError, match="Input/output error") as failure:
        reader.sync_and_read()

    assert failure.value.errno == errno.EIO


def test_a_log_that_the_disk_does_not_give_back_is_unreadable(disk: tuple[Liar, Path]) -> None:
    liar, point = disk
    path = segment(point / "wal", 0, 0, START)
    run("umount", point)
    run("mount", liar.block.path, point)  # nothing of it is in memory any more
    assert [each.name for each in path.parent.iterdir()] == [path.name]
    liar.tell("error", 0, liar.image.stat().st_size)

    with pytest.raises(UnreadableLog, match="cannot read"):
        LogReader(path.parent).read()
