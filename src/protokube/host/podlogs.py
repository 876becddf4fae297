"""The log files of a static pod's container, and their last lines.

kubelet keeps them in /var/log/pods/NAMESPACE_POD-NODE_UID/CONTAINER/N.log, where N counts restarts; a changed manifest
has another UID. The local cloud's pod runner writes NAMESPACE_POD/CONTAINER.log, with one rotated file beside it.
Only the newest two files are read, and only their end: the reason why a container exited is in its last lines.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

FOLDER = "/var/log/pods"
MOST = 64 * 1024
"""Bytes read from one file."""
FILES = 2
UID = r"[0-9a-f-]{8,64}"


class LogFile(NamedTuple):
    """A log file, with inode, size and time to detect later writes."""

    path: Path
    inode: int
    size: int
    changed: int
    """Nanoseconds since 1970."""


def newest(folder: Path, namespace: str, pod: str, container: str, others: Collection[str] = ()) -> Sequence[LogFile]:
    """The newest files of a container, the oldest of them first; empty if there is no output yet.

    `others` are pods whose names may begin with this pod's name: kubelet appends the node's name to a pod's.
    """
    found = []
    for path in _files(folder, namespace, pod, container, others):
        try:
            status = path.stat()
        except OSError:
            continue  # removed meanwhile, or a dangling link
        found.append(LogFile(path, status.st_ino, status.st_size, status.st_mtime_ns))
    return sorted(found, key=lambda each: each.changed)[-FILES:]


def lines(file: LogFile) -> Iterator[str]:
    """The last lines of a file, without a partial first line."""
    with file.path.open("rb") as opened:
        start = max(os.fstat(opened.fileno()).st_size - MOST, 0)
        opened.seek(start)
        content = opened.read(MOST)
    if start:
        content = content.partition(b"\n")[2]
    yield from content.decode(errors="replace").split("\n")


def _files(folder: Path, namespace: str, pod: str, container: str, others: Collection[str]) -> Iterator[Path]:
    of_pod = re.compile(rf"{re.escape(namespace)}_{re.escape(pod)}(-.+)?_{UID}")
    longer = tuple(f"{namespace}_{other}" for other in others if other.startswith(pod) and other != pod)
    try:
        names = [each.name for each in os.scandir(folder)]
    except (FileNotFoundError, NotADirectoryError):
        return
    for name in names:
        if name == f"{namespace}_{pod}":
            yield from (folder / name).glob(f"{container}.log*")
        elif of_pod.fullmatch(name) and not any(name.startswith((f"{each}-", f"{each}_")) for each in longer):
            yield from (folder / name / container).glob("*.log")
