"""The kept mount table: every mount and unmount is seen at once, a change of options a moment later."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from protokube.host import Mount
from protokube.host.mounts import AGE, MountTable


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def point(tmp_path: Path) -> Iterator[Path]:
    point = tmp_path / "point"
    point.mkdir()
    yield point
    subprocess.run(["umount", point], check=False, capture_output=True)


def mount(point: Path, *options: str) -> None:
    subprocess.run(["mount", "-t", "tmpfs", *options, "none", point], check=True)


def at(table: MountTable, point: Path) -> Mount | None:
    return next((each for each in table.mounts() if each.point == point), None)


def test_a_mount_and_an_unmount_are_seen_at_once_although_no_time_passes(point: Path) -> None:
    table = MountTable(clock=Clock())
    assert at(table, point) is None

    for _ in range(3):
        mount(point)
        assert at(table, point) is not None
        subprocess.run(["umount", point], check=True)
        assert at(table, point) is None


def test_options_are_never_older_than_said(point: Path) -> None:
    clock = Clock()
    table = MountTable(clock=clock)
    mount(point)
    seen = at(table, point)
    assert seen is not None
    assert "rw" in seen.options

    mount(point, "-o", "remount,ro")
    clock.now += AGE
    seen = at(table, point)

    assert seen is not None
    assert "ro" in seen.options


def test_a_clock_that_goes_back_keeps_nothing(point: Path) -> None:
    clock = Clock()
    table = MountTable(clock=clock)
    mount(point)
    table.mounts()

    mount(point, "-o", "remount,ro")
    clock.now -= 1000
    seen = at(table, point)

    assert seen is not None
    assert "ro" in seen.options


def test_a_table_that_did_not_change_is_not_even_translated_again() -> None:
    table = MountTable(clock=Clock())

    assert table.mounts() is table.mounts()
