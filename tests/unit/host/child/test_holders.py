"""Who uses a device is found among all processes, and named."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from protokube.host.child.holders import FEW, users


def number_of(path: Path) -> tuple[int, int]:
    device = path.stat().st_dev
    return os.major(device), os.minor(device)


@pytest.fixture
def elsewhere() -> Path:
    """A file system of its own that few processes use, and a number that /proc can be asked for."""
    return Path("/dev/shm")


class Processes:
    """A made-up /proc whose links lead to real places."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def add(self, pid: int, **links: Path) -> None:
        self.add_named(pid, "etcd", links)

    def add_named(self, pid: int, name: str | None, links: dict[str, Path]) -> None:
        place = self.folder / str(pid)
        (place / "fd").mkdir(parents=True)
        if name is not None:
            (place / "comm").write_text(f"{name}\n")
        for link, target in links.items():
            (place / link.replace("fd", "fd/")).symlink_to(target)


@pytest.fixture
def processes(tmp_path: Path) -> Processes:
    return Processes(tmp_path / "proc")


@pytest.mark.parametrize(
    ("link", "does"), [("cwd", "works in"), ("root", "has its root at"), ("exe", "runs"), ("fd7", "has open")]
)
def test_every_way_of_using_a_file_system_is_seen(processes: Processes, elsewhere: Path, link: str, does: str) -> None:
    processes.add_named(12, "etcd", {link: elsewhere})

    assert users(number_of(elsewhere), proc=processes.folder) == [f"etcd (pid 12) {does} /dev/shm"]


def test_other_file_systems_do_not_count(processes: Processes, elsewhere: Path) -> None:
    processes.add(12, cwd=Path("/proc"), fd3=Path("/dev/null"), fd4=Path("/nowhere"))

    assert users(number_of(elsewhere), proc=processes.folder) == []


def test_our_own_process_does_not_count(processes: Processes, elsewhere: Path) -> None:
    processes.add(os.getpid(), cwd=elsewhere)

    assert users(number_of(elsewhere), proc=processes.folder) == []


def test_a_process_is_named_once_and_few_are_named(processes: Processes, elsewhere: Path) -> None:
    for pid in range(100, 110):
        processes.add(pid, cwd=elsewhere, root=elsewhere, fd1=elsewhere)

    found = users(number_of(elsewhere), proc=processes.folder)

    assert len(found) == FEW
    assert found[0].startswith("etcd (pid 100)")


def test_a_process_without_a_name_is_told_too(processes: Processes, elsewhere: Path) -> None:
    processes.add_named(12, None, {"cwd": elsewhere})

    assert users(number_of(elsewhere), proc=processes.folder) == ["a process (pid 12) works in /dev/shm"]


def test_a_process_that_has_gone_is_passed_over(processes: Processes, elsewhere: Path) -> None:
    (processes.folder / "11").mkdir(parents=True)
    processes.add(12, cwd=elsewhere)

    assert len(users(number_of(elsewhere), proc=processes.folder)) == 1


def test_the_search_ends_when_its_time_is_over(processes: Processes, elsewhere: Path) -> None:
    processes.add(12, cwd=elsewhere)

    assert users(number_of(elsewhere), seconds=-1, proc=processes.folder) == []
