"""The write-ahead logs of the members on this machine; each read continues where the last one ended."""

from __future__ import annotations

from pathlib import Path

from protokube.etcd.wal import LogReader, read_position
from protokube.members.raftmark import LogPosition


class MemberLogs:
    """Implements the agent's Logs."""

    def __init__(self) -> None:
        self._readers: dict[Path, LogReader] = {}

    def position(self, folder: Path) -> LogPosition:
        return read_position(folder)

    def flushed(self, folder: Path) -> LogPosition:
        return self._readers.setdefault(folder, LogReader(folder)).sync_and_read()
