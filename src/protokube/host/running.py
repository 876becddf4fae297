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
        found = list(self._running(command))
        if not found:
            return Runs.NOT
        current = (each for each in found if each.started >= written - SLACK and _has(each, command.arguments))
        return Runs.CURRENT if any(current) else Runs.OLD

    def _running(self, command: Command) -> Iterator[Process]:
        """The processes of this program, with any arguments. The command line is read first: most are others."""
        tick = os.sysconf("SC_CLK_TCK")
        booted = time.time() - float((self._proc / "uptime").read_text().split()[0])
        for name in os.listdir(self._proc):  # noqa: PTH208  there may be thousands
            if not name.isdigit():
                continue
            try:
                words = (self._proc / name / "cmdline").read_bytes().decode(errors="replace").split("\0")[:-1]
                if not words or not self._is_of(name, words, command):
                    continue
                fields = (self._proc / name / "stat").read_text(errors="replace").rpartition(") ")[2].split()
            except OSError:
                continue  # it has ended
            if fields[0] not in "ZX":
                yield Process(int(name), tuple(words), booted + int(fields[19]) / tick)

    def _is_of(self, name: str, words: Sequence[str], command: Command) -> bool:
        if command.program and os.path.basename(words[0]) != command.program:  # noqa: PTH119
            return False
        if not command.program and not set(command.arguments[:1]) <= set(words):
            return False
        return not command.environment or command.environment.items() <= self._environment(name).items()

    def _environment(self, name: str) -> Mapping[str, str]:
        text = (self._proc / name / "environ").read_bytes().decode(errors="replace")
        return dict(each.partition("=")[::2] for each in text.split("\0") if each)


def _has(process: Process, arguments: Sequence[str]) -> bool:
    return not arguments or process.words[-len(arguments) :] == tuple(arguments)
