"""A disk that fails on demand: one file served through FUSE, to be put under a loop device.

This is a program of its own, since a kernel that waits for an answer of ours must never wait for a process that waits
for the kernel. It serves IMAGE as POINT/NAME, in a mount namespace that whoever starts it has made, so nothing is left
mounted when it ends. It is told what to do on its standard input, one order a line, and says "ok" to each:

    error START END      reads that touch this range fail with EIO
    short START END      reads that touch this range end where it starts
    hang START END       reads that touch this range are not answered until "heal"
    refuse COUNT         after COUNT more writes every write fails with EIO
    forget               writes are answered and thrown away
    freeze               writes are not answered until "heal"
    heal                 all is well again, and everything that waits is answered
    writes               say how many writes there were
    waiting              say how many reads and writes wait for an answer
"""

from __future__ import annotations

import ctypes
import errno
import os
import selectors
import stat
import struct
import sys
from collections.abc import Callable
from pathlib import Path

HEADER, REPLY = struct.Struct("<IIQQIIIHH"), struct.Struct("<IiQ")
ATTRIBUTES = struct.Struct("<QQQQQQIIIIIIIIII")
FORGET, BATCH_FORGET, INTERRUPT = 2, 42, 36
DIRECT = 1
MOST = 1 << 20
ROOT, FILE = 1, 2


class LyingDisk:
    """The FUSE server: requests in, answers out, faults in between."""

    def __init__(self, image: Path, point: Path, name: str) -> None:
        self.image = os.open(image, os.O_RDWR)
        self.name = name
        self.faults: list[tuple[str, int, int]] = []
        self.writes = 0
        self.writes_left: int | None = None
        self.frozen = self.forgetful = False
        self.waiting: list[bytes] = []
        self.device = os.open("/dev/fuse", os.O_RDWR)
        options = f"fd={self.device},rootmode=40000,user_id=0,group_id=0,allow_other"
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.mount(b"lying-disk", os.fsencode(point), b"fuse.lying-disk", 0, options.encode()):
            raise OSError(ctypes.get_errno(), "mount")
        self.operations: dict[int, Callable[[int, bytes], bytes]] = {
            1: self.lookup, 3: self.getattr, 4: self.getattr, 14: self.open, 15: self.read, 16: self.write,
            18: self.nothing, 20: self.nothing, 25: self.nothing, 26: self.init, 27: self.open, 29: self.nothing,
        }  # fmt: skip

    def serve(self) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self.device, selectors.EVENT_READ, self.answer_next)
            selector.register(sys.stdin.fileno(), selectors.EVENT_READ, self.obey_next)
            while True:
                for key, _ in selector.select():
                    key.data()

    def obey_next(self) -> None:
        order = sys.stdin.readline().split()
        if not order:
            sys.exit(0)
        said = "ok"
        match order:
            case ["heal"]:
                self.faults, self.writes_left, self.frozen, self.forgetful = [], None, False, False
                late, self.waiting = self.waiting, []
                for request in late:
                    self.answer(request)
            case ["refuse", count]:
                self.writes_left = int(count)
            case ["forget"]:
                self.forgetful = True
            case ["freeze"]:
                self.frozen = True
            case ["writes"]:
                said = str(self.writes)
            case ["waiting"]:
                said = str(len(self.waiting))
            case [kind, start, end]:
                self.faults.append((kind, int(start), int(end)))
        sys.stdout.write(f"{said}\n")
        sys.stdout.flush()

    def answer_next(self) -> None:
        try:
            request = os.read(self.device, MOST + 4096)
        except OSError as error:
            if error.errno == errno.ENODEV:  # unmounted
                sys.exit(0)
            if error.errno in (errno.ENOENT, errno.EINTR, errno.EAGAIN):  # the request was taken back
                return
            raise
        self.answer(request)

    def answer(self, request: bytes) -> None:
        _, operation, unique, node, *_ = HEADER.unpack_from(request)
        if operation in (FORGET, BATCH_FORGET, INTERRUPT):
            return
        try:
            data, error = self.operations.get(operation, self.unknown)(node, request[HEADER.size :]), 0
        except BlockingIOError:
            self.waiting.append(request)
            return
        except OSError as failed:
            data, error = b"", -(failed.errno or errno.EIO)
        try:
            os.write(self.device, REPLY.pack(REPLY.size + len(data), error, unique) + data)
        except OSError as gone:  # whoever asked was killed meanwhile
            if gone.errno != errno.ENOENT:
                raise

    def init(self, node: int, body: bytes) -> bytes:
        big_writes, max_pages = 1 << 5, 1 << 22
        return struct.pack("<IIIIHHIIHHI28x", 7, 31, 0, big_writes | max_pages, 16, 12, MOST, 1, MOST // 4096, 0, 0)

    def lookup(self, node: int, body: bytes) -> bytes:
        if body.rstrip(b"\0").decode() != self.name:
            raise FileNotFoundError(errno.ENOENT, "lookup")
        return struct.pack("<QQQQII", FILE, 0, 3600, 3600, 0, 0) + self.attributes(FILE)

    def getattr(self, node: int, body: bytes) -> bytes:
        return struct.pack("<QII", 3600, 0, 0) + self.attributes(node)

    def attributes(self, node: int) -> bytes:
        size = os.fstat(self.image).st_size if node == FILE else 0
        mode = stat.S_IFREG | 0o600 if node == FILE else stat.S_IFDIR | 0o700
        return ATTRIBUTES.pack(node, size, size // 512, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)

    def open(self, node: int, body: bytes) -> bytes:
        return struct.pack("<QII", 0, DIRECT if node == FILE else 0, 0)

    def nothing(self, node: int, body: bytes) -> bytes:
        return b""

    def unknown(self, node: int, body: bytes) -> bytes:
        raise OSError(errno.ENOSYS, "not served")

    def read(self, node: int, body: bytes) -> bytes:
        _, offset, size = struct.unpack_from("<QQI", body)
        for kind, start, end in self.faults:
            if offset < end and offset + size > start:
                if kind == "error":
                    raise OSError(errno.EIO, "as told")
                if kind == "hang":
                    raise BlockingIOError
                size = max(0, start - offset)
        return os.pread(self.image, size, offset)

    def write(self, node: int, body: bytes) -> bytes:
        _, offset, size = struct.unpack_from("<QQI", body)
        if self.frozen:
            raise BlockingIOError
        if self.writes_left is not None:
            if self.writes_left == 0:
                raise OSError(errno.EIO, "as told")
            self.writes_left -= 1
        self.writes += 1
        if self.forgetful:
            return struct.pack("<II", size, 0)
        return struct.pack("<II", os.pwrite(self.image, body[40 : 40 + size], offset), 0)


if __name__ == "__main__":
    disk = LyingDisk(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
    sys.stdout.write("ok\n")
    sys.stdout.flush()
    disk.serve()
