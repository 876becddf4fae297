"""Files, folders and sockets that only their owner may open, whatever the umask is."""

from __future__ import annotations

import os
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
def test_what_is_there_and_open_is_closed_and_keeps_its_content(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder").chmod(0o755)
    (tmp_path / "file").write_text("before ")
    (tmp_path / "file").chmod(0o664)

    private.make_folder(tmp_path / "folder")
    handle = private.open_file(tmp_path / "file", os.O_WRONLY | os.O_APPEND)
    os.write(handle, b"after")
    os.close(handle)

    assert (mode(tmp_path / "folder"), mode(tmp_path / "file")) == (0o700, 0o600)
    assert (tmp_path / "file").read_text() == "before after"


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").touch(mode=0o644)
    (tmp_path / "link").symlink_to("elsewhere")

    assert not private.close(tmp_path / "link")

    assert mode(tmp_path / "elsewhere") == 0o644


def test_closing_says_whether_it_was_open(tmp_path: Path) -> None:
    (tmp_path / "file").touch(mode=0o640)

    assert private.close(tmp_path / "file")
    assert not private.close(tmp_path / "file")
