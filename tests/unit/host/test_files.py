"""Files are old or new, never in between; what has not changed is left alone."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from protokube.host.files import link_atomic, read_or_none, remove, write_atomic


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def names(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o755])
def test_a_file_is_written_with_exactly_its_mode_whatever_the_umask(tmp_path: Path, mode: int) -> None:
    before = os.umask(0o077)
    try:
        assert write_atomic(tmp_path / "file", b"data", mode)
    finally:
        os.umask(before)

    assert (tmp_path / "file").read_bytes() == b"data"
    assert mode_of(tmp_path / "file") == mode
    assert names(tmp_path) == ["file"]


def test_a_file_that_has_not_changed_is_left_alone(tmp_path: Path) -> None:
    place = tmp_path / "file"
    write_atomic(place, b"data", 0o600)
    before = place.stat()

    assert not write_atomic(place, b"data", 0o600)

    assert (place.stat().st_ino, place.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


@pytest.mark.parametrize(("data", "mode"), [(b"other", 0o600), (b"datA", 0o600), (b"", 0o600), (b"data", 0o644)])
def test_a_file_that_differs_is_replaced_by_a_new_one(tmp_path: Path, data: bytes, mode: int) -> None:
    place = tmp_path / "file"
    write_atomic(place, b"data", 0o600)
    before = place.stat().st_ino

    assert write_atomic(place, data, mode)

    assert (place.read_bytes(), mode_of(place)) == (data, mode)
    assert place.stat().st_ino != before


def test_a_reader_who_has_the_old_file_keeps_it(tmp_path: Path) -> None:
    place = tmp_path / "file"
    write_atomic(place, b"old")

    with place.open("rb") as reader:
        write_atomic(place, b"new")

        assert reader.read() == b"old"


def test_a_link_is_replaced_by_a_file_even_if_it_leads_to_the_same_content(tmp_path: Path) -> None:
    (tmp_path / "target").write_bytes(b"data")
    (tmp_path / "target").chmod(0o644)
    (tmp_path / "file").symlink_to("target")

    assert write_atomic(tmp_path / "file", b"data", 0o644)

    assert not (tmp_path / "file").is_symlink()
    assert (tmp_path / "target").read_bytes() == b"data"


@pytest.mark.parametrize("kind", [stat.S_IFCHR, stat.S_IFIFO, stat.S_IFSOCK])
def test_a_device_a_pipe_and_a_socket_are_never_replaced(tmp_path: Path, kind: int) -> None:
    place = tmp_path / "place"
    os.mknod(place, kind | 0o600, os.makedev(1, 3))

    with pytest.raises(OSError, match="it is a device, pipe or socket"):
        write_atomic(place, b"data")

    assert stat.S_IFMT(place.lstat().st_mode) == kind
    assert list(tmp_path.iterdir()) == [place]


def test_what_is_not_durable_is_written_all_the_same(tmp_path: Path) -> None:
    assert write_atomic(tmp_path / "file", b"data", durable=False)
    assert not write_atomic(tmp_path / "file", b"data", durable=False)

    assert (tmp_path / "file").read_bytes() == b"data"


def test_the_draft_can_lie_where_nobody_watches(tmp_path: Path) -> None:
    staging, watched = tmp_path / "staging", tmp_path / "watched"
    staging.mkdir()
    watched.mkdir()
    watched.chmod(0o755)

    assert write_atomic(watched / "etcd.manifest", b"data", staging=staging)

    assert names(watched) == ["etcd.manifest"]
    assert names(staging) == []


def test_a_write_that_fails_leaves_the_old_file_and_no_draft(tmp_path: Path) -> None:
    folder = tmp_path / "file"
    folder.mkdir()

    with pytest.raises(IsADirectoryError):
        write_atomic(folder, b"data")

    assert names(tmp_path) == ["file"]


def test_a_folder_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        write_atomic(tmp_path / "missing" / "file", b"data")


def test_a_link_is_made_and_left_alone_while_it_is_right(tmp_path: Path) -> None:
    link = tmp_path / "link"

    assert link_atomic(Path("/mnt/vol-1/etcd.manifest"), link)
    before = link.lstat().st_ino
    assert not link_atomic(Path("/mnt/vol-1/etcd.manifest"), link)

    assert link.readlink() == Path("/mnt/vol-1/etcd.manifest")
    assert link.lstat().st_ino == before
    assert names(tmp_path) == ["link"]


def test_a_link_that_leads_elsewhere_is_replaced(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to("/mnt/vol-1")

    assert link_atomic(Path("/mnt/vol-2"), link)

    assert link.readlink() == Path("/mnt/vol-2")
    assert names(tmp_path) == ["link"]


def test_a_file_in_the_place_of_a_link_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "link").write_text("a file")

    assert link_atomic(Path("/mnt/vol-1"), tmp_path / "link")

    assert (tmp_path / "link").is_symlink()


def test_a_link_over_a_folder_fails_and_leaves_no_draft(tmp_path: Path) -> None:
    (tmp_path / "link").mkdir()

    with pytest.raises(IsADirectoryError):
        link_atomic(Path("/mnt/vol-1"), tmp_path / "link")

    assert names(tmp_path) == ["link"]


def test_removing_says_whether_there_was_something(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("data")
    (tmp_path / "dangling").symlink_to("/nowhere")

    assert remove(tmp_path / "file")
    assert remove(tmp_path / "dangling")
    assert not remove(tmp_path / "file")

    assert names(tmp_path) == []


def test_removing_a_link_leaves_what_it_leads_to(tmp_path: Path) -> None:
    (tmp_path / "target").write_text("data")
    (tmp_path / "link").symlink_to("target")

    assert remove(tmp_path / "link")

    assert names(tmp_path) == ["target"]


def test_a_folder_is_not_removed(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()

    with pytest.raises(IsADirectoryError):
        remove(tmp_path / "folder")


def test_only_a_missing_file_reads_as_none(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "dangling").symlink_to("nowhere")

    assert read_or_none(tmp_path / "file") == b""
    assert read_or_none(tmp_path / "missing") is None
    assert read_or_none(tmp_path / "dangling") is None
    with pytest.raises(IsADirectoryError):
        read_or_none(tmp_path)
    with pytest.raises(NotADirectoryError):
        read_or_none(tmp_path / "file" / "below")
