"""Notes about volumes in /run: like mounts, they survive a restart of the agent, and not a reboot.

One file for each volume. Written atomically, without fsync: /run is in memory.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from protokube.agent.edges import Edges
from protokube.host.files import read_or_none, remove, write_atomic

PARENT = "/run/protokube"


@dataclass(frozen=True, slots=True)
class RunNotes:
    """The notes of one kind."""

    kind: str

    @property
    def folder(self) -> str:
        return f"{PARENT}/{self.kind}"

    def file(self, edges: Edges, volume: str) -> Path:
        return edges.inside(f"{PARENT}/{self.kind}/{volume}")

    def read(self, edges: Edges, volume: str) -> bytes | None:
        return read_or_none(self.file(edges, volume))

    def read_document(self, edges: Edges, volume: str) -> dict[str, Any] | None:
        """A note that is not a JSON object is ignored."""
        data = self.read(edges, volume)
        try:
            document = json.loads(data) if data is not None else None
        except ValueError:
            return None
        return document if isinstance(document, dict) else None

    def write(self, edges: Edges, volume: str, data: bytes) -> None:
        file = self.file(edges, volume)
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_atomic(file, data, 0o600, durable=False)

    def write_document(self, edges: Edges, volume: str, document: Mapping[str, Any]) -> None:
        self.write(edges, volume, (json.dumps(document, sort_keys=True) + "\n").encode())

    def volumes(self, edges: Edges) -> list[str]:
        """Volumes that have a note; temporary files of an interrupted write are ignored."""
        try:
            names = os.listdir(edges.inside(self.folder))  # noqa: PTH208
        except (FileNotFoundError, NotADirectoryError):
            return []
        return sorted(name for name in names if not name.startswith("."))

    def forget(self, edges: Edges, volume: str) -> None:
        remove(self.file(edges, volume))

    def keep_only(self, edges: Edges, kept: Collection[str]) -> None:
        for volume in self.volumes(edges):
            if volume not in kept:
                self.forget(edges, volume)
