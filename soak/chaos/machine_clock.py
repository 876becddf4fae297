"""Set the clock of this machine wrong for a while, under an observed cluster: `make soak SOAK=clock`.

It affects everything on the machine, so it is a section of its own and never part of another. The hard part is to
restore the clock however we end: a child process tracks the true time by the monotonic clock, which cannot be set, and
restores the clock when its standard input is closed; the kernel closes it even if we are killed.
"""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

from soak.chaos.fault import Fault
from soak.chaos.field import Field

HOUR = 3600.0
JUMPS = (60.0, -60.0, HOUR, -HOUR, 24 * HOUR)
"""Seconds. If the clock is before the cluster's creation, its certificates are not valid yet; it heals afterwards."""
GUARD = """
import signal, sys, time
for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(each, signal.SIG_IGN)
ahead = time.time() - time.monotonic()
print("ready", flush=True)
sys.stdin.read()
time.clock_settime(time.CLOCK_REALTIME, time.monotonic() + ahead)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineClock(Fault):
    """The machine's clock jumps, and jumps back."""

    jump: float = HOUR
    kind: ClassVar[str] = "machine-clock"
    aimed: ClassVar[bool] = False
    alone: ClassVar[bool] = True
    shortest: ClassVar[float] = 5.0
    longest: ClassVar[float] = 30.0

    @classmethod
    def draw(cls, chance: random.Random, members: Sequence[str]) -> Self:  # noqa: ARG003 (aimed at none)
        return cls(jump=chance.choice(JUMPS), lasts=cls.lasting(chance))

    def apply(self, field: Field) -> None:
        field.saved[self] = guard()
        time.clock_settime(time.CLOCK_REALTIME, time.time() + self.jump)

    def undo(self, field: Field) -> None:
        if watching := field.saved.pop(self, None):
            put_back(watching)

    def describe(self) -> str:
        return f"{self.kind} {self.jump:+g} s for {self.lasts:g} s"


def guard() -> subprocess.Popen[str]:
    """Start a process that tracks the true time, and restores the clock at the end of its input."""
    started = subprocess.Popen(
        [sys.executable, "-c", GUARD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert started.stdout is not None
    assert started.stdout.readline() == "ready\n"
    return started


def put_back(watching: subprocess.Popen[str]) -> None:
    watching.communicate()
    assert watching.returncode == 0, "the clock of this machine could not be set right again"
