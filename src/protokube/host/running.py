"""Whether a program runs as its manifest says: with these arguments, started after the manifest was last changed.

A static pod restarts some time after its manifest has changed; until then the old process still answers. Only the
process itself shows which of the two it is.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Protocol

PROC = Path("/proc")
SLACK = 0.2
"""Seconds: process start times are counted in hundredths of a second, file times by a coarser clock."""


class Runs(Enum):
    CURRENT = "it runs as its manifest says"
    OLD = "it has not restarted yet"
    NOT = "it does not run"


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A program to look for."""

    program: str
    """The base name of its executable; "" for any, where an interpreter runs it."""
    arguments: tuple[str, ...]
    """Its last arguments, all of them unless an interpreter has more before them."""
    environment: Mapping[str, str]
    manifest: Path


class Processes(Protocol):
    """The processes of this machine."""

    def runs(self, command: Command) -> Runs: ...


@dataclass(frozen=True, slots=True)
class Process:
    pid: int
    words: tuple[str, ...]
    started: float
    """Seconds since 1970."""


class HostProcesses:
    """Implements Processes over /proc."""

    def __init__(self, proc: Path = PROC) -> None:
        self._proc = proc

    def runs(self, command: Command) -> Runs:
        try:
            written = command.manifest.stat().st_mtime
        except OSError:
            return Runs.NOT
        if written > time.time():  # the clock was set back since: this time says nothing
            written = 0.0
        found = [each for each in self._all() if self._is_of(each, command)]
        if not found:
            return Runs.NOT
        current = (each for each in found if each.started >= written - SLACK and _has(each, command.arguments))
        return Runs.CURRENT if any(current) else Runs.OLD

    def _is_of(self, process: Process, command: Command) -> bool:
        """Whether this is the program, with any arguments."""
        if command.program and os.path.basename(process.words[0]) != command.program:  # noqa: PTH119
            return False
        if not command.program and not set(command.arguments[:1]) <= set(process.words):
            return False
        return all(self._environment(process.pid).get(key) == value for key, value in command.environment.items())

    def _environment(self, pid: int) -> Mapping[str, str]:
        try:
            text = (self._proc / str(pid) / "environ").read_bytes().decode(errors="replace")
        except OSError:
            return {}
        return dict(each.partition("=")[::2] for each in text.split("\0") if each)

    def _all(self) -> Iterator[Process]:
        tick = os.sysconf("SC_CLK_TCK")
        booted = time.time() - float((self._proc / "uptime").read_text().split()[0])
        for folder in self._proc.iterdir():
            if not folder.name.isdigit():
                continue
            try:
                words = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")[:-1]
                fields = (folder / "stat").read_text(errors="replace").rpartition(") ")[2].split()
            except OSError:
                continue  # it has ended
            if words and fields[0] not in "ZX":
                yield Process(int(folder.name), tuple(words), booted + int(fields[19]) / tick)


def _has(process: Process, arguments: Sequence[str]) -> bool:
    return not arguments or process.words[-len(arguments) :] == tuple(arguments)
