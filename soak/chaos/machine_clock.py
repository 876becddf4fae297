"""The clock of this very machine is wrong for a while, under a cluster that is watched: `make soak SOAK=clock`.

Everything on the machine sees it, so it is a section of its own and never part of another. What is hard is to set the
clock right again whatever ends us: a child measures the true time by the monotonic clock, which cannot be set, and
puts it back when its standard input is closed, which the kernel does if nothing else does.
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
"""Seconds. Further back than the cluster is old, its certificates are not valid yet; it heals afterwards."""
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
    """A process that knows the time from now on, and sets the clock to it at the end of its input."""
    started = subprocess.Popen(
        [sys.executable, "-c", GUARD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert started.stdout is not None
    assert started.stdout.readline() == "ready\n"
    return started


def put_back(watching: subprocess.Popen[str]) -> None:
    watching.communicate()
    assert watching.returncode == 0, "the clock of this machine could not be set right again"
