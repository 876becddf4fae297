"""Our state is reported to systemd if it listens, without ever blocking."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from protokube.host.notify import notify, watchdog_seconds


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[tuple[str, socket.socket]]:
    """A socket in the file system, as systemd has it."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(tmp_path / "notify"))
        listening.settimeout(20)
        yield str(tmp_path / "notify"), listening


def test_fields_are_lines_of_one_datagram(manager: tuple[str, socket.socket]) -> None:
    address, listening = manager

    assert notify({"NOTIFY_SOCKET": address}, READY="1", STATUS="two members served")
    assert listening.recv(4096) == b"READY=1\nSTATUS=two members served"


def test_a_status_of_several_lines_cannot_pose_as_another_field(manager: tuple[str, socket.socket]) -> None:
    address, listening = manager

    notify({"NOTIFY_SOCKET": address}, STATUS="waiting\nREADY=1", WATCHDOG="1")

    assert listening.recv(4096) == b"STATUS=waiting READY=1\nWATCHDOG=1"


def test_an_abstract_socket_is_reached_too() -> None:
    name = f"protokube-test-{os.getpid()}-{time.monotonic_ns()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind("\0" + name)
        listening.settimeout(20)

        assert notify({"NOTIFY_SOCKET": "@" + name}, STOPPING="1")
        assert listening.recv(4096) == b"STOPPING=1"


@pytest.mark.parametrize("address", [None, "", "relative", "/nowhere/notify", "@nobody-listens-here", "/" + "x" * 200])
def test_nobody_listening_is_nothing(address: str | None) -> None:
    assert not notify({} if address is None else {"NOTIFY_SOCKET": address}, READY="1")


def test_the_environment_of_the_process_is_what_counts(
    manager: tuple[str, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", manager[0])

    assert notify(WATCHDOG="1")
    assert manager[1].recv(4096) == b"WATCHDOG=1"


def test_a_manager_too_busy_to_listen_does_not_keep_us_waiting(manager: tuple[str, socket.socket]) -> None:
    address, _ = manager
    started = time.monotonic()

    sent = [notify({"NOTIFY_SOCKET": address}, STATUS="x" * 1000) for _ in range(2000)]

    assert sent[0]
    assert not sent[-1]
    assert time.monotonic() - started < 20


@pytest.mark.parametrize(
    ("environment", "seconds"),
    [
        ({}, None),
        ({"WATCHDOG_USEC": "30000000"}, 30.0),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": str(os.getpid())}, 30.0),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "1"}, None),
        ({"WATCHDOG_USEC": "soon"}, None),
        ({"WATCHDOG_USEC": "0"}, None),
    ],
)
def test_how_often_systemd_wants_to_hear_from_us(environment: dict[str, str], seconds: float | None) -> None:
    assert watchdog_seconds(environment) == seconds
