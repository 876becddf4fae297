"""Logs of programs without log rotation, and sd_notify messages of units."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from protokube.local.base.logs import open_log, trim
from protokube.local.host.notify import Notices


def test_a_log_is_appended_to_and_its_folder_made(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "down" / "unit.log"
    for text in (b"one\n", b"two\n"):
        handle = open_log(path)
        os.write(handle, text)
        os.close(handle)
    assert path.read_text() == "one\ntwo\n"
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_log_that_has_grown_is_kept_beside_and_goes_on_from_nothing(tmp_path: Path) -> None:
    path = tmp_path / "unit.log"
    handle = open_log(path)
    os.write(handle, b"x" * 5000)
    trim(path, most=1000)
    os.write(handle, b"after\n")
    os.close(handle)
    assert path.read_text() == "after\n"
    assert (tmp_path / "unit.log.1").read_bytes() == b"x" * 5000
    trim(path, most=1000)
    assert path.read_text() == "after\n"


def test_a_log_that_is_not_there_needs_no_trimming(tmp_path: Path) -> None:
    trim(tmp_path / "none.log")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("datagram", "ready", "status", "beat"),
    [
        (b"READY=1", True, "", None),
        (b"READY=0", False, "", None),
        (b"STATUS=a=b\nREADY=1\n", True, "a=b", None),
        (b"WATCHDOG=1", False, "", 3.0),
        (b"MAINPID=7\nnonsense\n\n=\n", False, "", None),
        (b"\xff\xfe", False, "", None),
        (b"", False, "", None),
    ],
)
def test_what_a_unit_says_is_kept(datagram: bytes, ready: bool, status: str, beat: float | None) -> None:
    notices = Notices()
    notices.take(datagram, now=10.0)
    assert notices.snapshot(13.0) == {"ready": ready, "status": status, "watchdog_seconds": beat}
    notices.forget()
    assert notices.snapshot(13.0) == {"ready": False, "status": "", "watchdog_seconds": None}
