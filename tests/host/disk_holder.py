"""A program that holds a disk in a mount namespace of its own, and does to it what it is told, line by line.

Each order is a JSON list; the answer is "ok", what was read, or the name of the error.
"""

from __future__ import annotations

import errno
import json
import mmap
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any


class Holder:
    def __init__(self) -> None:
        self.files: dict[str, int] = {}
        self.maps: dict[str, mmap.mmap] = {}

    def mount(self, device: str, point: str) -> None:
        subprocess.run(["mount", device, point], check=True, capture_output=True)

    def unmount(self, point: str) -> None:
        subprocess.run(["umount", point], check=True, capture_output=True)

    def open(self, name: str, path: str) -> None:
        self.files[name] = os.open(path, os.O_RDWR | os.O_CREAT)

    def open_device(self, name: str, path: str) -> None:
        self.files[name] = os.open(path, os.O_RDWR)

    def write(self, name: str, text: str) -> int:
        return os.write(self.files[name], text.encode())

    def write_at(self, name: str, text: str, place: int) -> int:
        return os.pwrite(self.files[name], text.encode(), place)

    def write_direct(self, path: str, place: int) -> int:
        """Past every cache, aligned as the kernel wants it."""
        page = mmap.mmap(-1, 4096)
        page.write(b"ZOMBIE" * 682)
        file = os.open(path, os.O_RDWR | os.O_DIRECT)
        try:
            return os.pwritev(file, [page], place)
        finally:
            os.close(file)

    def map(self, name: str, text: str) -> None:
        """Change the file through memory, which the kernel writes out whenever it likes."""
        os.ftruncate(self.files[name], 4096)
        self.maps[name] = mmap.mmap(self.files[name], 4096)
        self.maps[name][: len(text)] = text.encode()

    def flush_map(self, name: str) -> None:
        self.maps[name].flush()

    def fsync(self, name: str) -> None:
        os.fsync(self.files[name])

    def count(self, path: str) -> str:
        """Write one number after the other, each acknowledged on stdout once it is safe, until that fails."""
        file = os.open(path, os.O_RDWR | os.O_CREAT)
        for number in range(1_000_000):
            try:
                os.pwrite(file, b"%08d" % number, 8 * number)
                os.fsync(file)
            except OSError as error:
                return errno.errorcode[error.errno or 0]
            sys.stdout.write(f"{number}\n")
            sys.stdout.flush()
        return "it never ended"

    def read_at(self, name: str, place: int) -> str:
        return os.pread(self.files[name], 16, place).decode()

    def read_numbers(self, name: str) -> str:
        """What `count` wrote, as far as it goes."""
        content = os.pread(self.files[name], 8_000_000, 0).decode()
        return " ".join(content[at : at + 8] for at in range(0, len(content), 8))

    def make(self, folder: str) -> None:
        Path(folder).mkdir()

    def list(self, folder: str) -> list[str]:
        return sorted(path.name for path in Path(folder).iterdir())


def answer(function: Callable[..., Any], arguments: list[Any]) -> str:
    try:
        result = function(*arguments)
    except OSError as error:
        return errno.errorcode.get(error.errno or 0, str(error))
    except subprocess.CalledProcessError as error:
        return str(error.stderr)
    return "ok" if result is None else str(result)


if __name__ == "__main__":
    holder = Holder()
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    for line in sys.stdin:
        name, *arguments = json.loads(line)
        sys.stdout.write(f"{answer(getattr(holder, name), arguments)}\n")
        sys.stdout.flush()
