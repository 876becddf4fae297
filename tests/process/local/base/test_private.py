"""Files, folders and sockets that only their owner may open, whatever the umask is."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from protokube.local.base import private


@pytest.fixture(params=[0o000, 0o022, 0o077], ids=["umask 000", "umask 022", "umask 077"])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


@pytest.mark.usefixtures("umask")
def test_what_is_made_is_closed_to_others(tmp_path: Path) -> None:
    private.make_folder(tmp_path / "folder")
    os.close(private.open_file(tmp_path / "file", os.O_WRONLY))
    with socket.socket(socket.AF_UNIX) as listener:
        private.bind(listener, str(tmp_path / "socket"))

    assert mode(tmp_path / "folder") == 0o700
    assert mode(tmp_path / "file") == mode(tmp_path / "socket") == 0o600
