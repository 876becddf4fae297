"""What a kubelet sees of our manifests while they are written: whole files, and no change where nothing changed."""

from __future__ import annotations

import hashlib
import os
import select
import struct
import threading
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from clusters.hosts import fast_folder
from clusters.scenario.host import tmpfs
from protokube.host.aside import set_aside
from protokube.host.files import write_atomic
from protokube.local.base import syscalls
from protokube.local.pods.manifestdir import EVENTS

ROUNDS, TURNS = 1000, 50
IN_MODIFY = 0x2


def a_text(number: int) -> bytes:
    """Of a length that goes up and down, and that tells whether it is whole."""
    body = f"number: {number}\n".encode() * (1 + (number * 7919) % 400)
    return body + hashlib.sha256(body).hexdigest().encode()


def is_whole(text: bytes) -> bool:
    return hashlib.sha256(text[:-64]).hexdigest().encode() == text[-64:]


class Reader(threading.Thread):
    """Reads the whole folder on every event, as a hasty kubelet would."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder, self.names, self.seen, self.torn = folder, set[str](), set[bytes](), list[tuple[str, bytes]]()
        self.looks = 0
        self.handle = syscalls.inotify()
        syscalls.watch(self.handle, str(folder), EVENTS | IN_MODIFY)
        self.over = threading.Event()

    def run(self) -> None:
        while not self.over.is_set():
            if select.select([self.handle], [], [], 0.05)[0]:
                self.names |= set(events(os.read(self.handle, 65536)))
                self.look()
        self.look()
        os.close(self.handle)

    def look(self) -> None:
        self.looks += 1
        for path in self.folder.iterdir():
            try:
                content = path.read_bytes()
            except FileNotFoundError:
                continue
            self.seen.add(content)
            if not is_whole(content):
                self.torn.append((path.name, content))


def events(data: bytes) -> Iterator[str]:
    while data:
        _, _, _, length = struct.unpack_from("iIII", data)
        yield data[16 : 16 + length].rstrip(b"\0").decode()
        data = data[16 + length :]


@pytest.fixture
def reader() -> Iterator[Reader]:
    with tmpfs() as root:
        (root / "manifests").mkdir()
        reader = Reader(root / "manifests")
        reader.start()
        try:
            yield reader
        finally:
            reader.over.set()
            reader.join()


def rounds(reader: Reader) -> Iterator[int]:
    """A thousand; slower ones follow, where the reader did not get its turns meanwhile."""
    for number in count():
        if number >= ROUNDS:
            if reader.looks >= TURNS or not reader.is_alive():
                return
            time.sleep(0.001)
        yield number


def names_in(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


def ended(reader: Reader) -> Reader:
    reader.over.set()
    reader.join()
    return reader


def test_a_thousand_changes_never_show_half_a_file_nor_a_second_name(reader: Reader) -> None:
    path = reader.folder / "kube-apiserver.manifest"
    for number in rounds(reader):
        assert write_atomic(path, a_text(number), 0o644, staging=reader.folder.parent)
    ended(reader)
    assert reader.torn == []
    assert reader.names == {path.name}
    assert a_text(number) in reader.seen
    assert names_in(reader.folder.parent) == ["manifests"]


def test_the_reader_would_notice_a_file_that_is_written_in_place(reader: Reader) -> None:
    """The test above can fail."""
    path = reader.folder / "kube-apiserver.manifest"
    for number in rounds(reader):
        with path.open("wb", buffering=0) as file:
            text = a_text(number)
            file.write(text[:10])
            file.write(text[10:])
    assert ended(reader).torn


def test_what_has_not_changed_is_not_written_again(reader: Reader) -> None:
    path = reader.folder / "kube-apiserver.manifest"
    assert write_atomic(path, a_text(1), 0o644, staging=reader.folder.parent)
    before = path.stat()
    for _ in range(ROUNDS):
        assert not write_atomic(path, a_text(1), 0o644, staging=reader.folder.parent)
    after = path.stat()
    for what in ("st_ino", "st_mtime_ns", "st_ctime_ns"):
        assert getattr(before, what) == getattr(after, what)


def test_setting_aside_onto_another_file_system_keeps_content_and_times(tmp_path: Path) -> None:
    with tmpfs() as root:
        assert root.stat().st_dev != tmp_path.stat().st_dev, f"{fast_folder()} is no file system of its own"
        source, link = root / "etcd.manifest~", root / "etcd.manifest.old"
        source.write_bytes(a_text(5))
        os.utime(source, (1e9, 1e9))
        link.symlink_to("/nowhere")

        places = [set_aside(each, tmp_path / "aside", "now") for each in (source, link, root / "gone")]

        assert places == [tmp_path / "aside/etcd.manifest~.now", tmp_path / "aside/etcd.manifest.old.now", None]
        assert places[0] is not None
        assert places[1] is not None
        assert (places[0].read_bytes(), places[0].stat().st_mtime) == (a_text(5), 1e9)
        assert str(places[1].readlink()) == "/nowhere"
        assert names_in(root) == []
        assert names_in(tmp_path / "aside") == ["etcd.manifest.old.now", "etcd.manifest~.now"]
