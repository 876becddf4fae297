"""The time budget of a soak, and the outcome of a section."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field


class Budget:
    """The remaining time; unlimited without a limit."""

    def __init__(self, minutes: float | None) -> None:
        self._end = None if minutes is None else time.monotonic() + minutes * 60

    @property
    def left(self) -> float | None:
        """Seconds; None without a limit."""
        return None if self._end is None else max(self._end - time.monotonic(), 0.0)

    @property
    def over(self) -> bool:
        return self.left == 0.0


@dataclass
class Outcome:
    """The result of one section."""

    wanted: int
    """Requested rounds."""
    done: int = 0
    found: list[str] = field(default_factory=list)
    """Broken promises."""
    measured: list[str] = field(default_factory=list)

    @property
    def cut_short(self) -> bool:
        return self.done < self.wanted and not self.found

    def __str__(self) -> str:
        verdict = f"{len(self.found)} BROKEN" if self.found else "cut short, nothing found" if self.cut_short else "ok"
        return f"{self.done} of {self.wanted} rounds, {verdict}"


@dataclass(frozen=True)
class Section:
    name: str
    description: str
    """What it runs, for the output."""
    run: Callable[[Budget], Outcome]


def say(text: str) -> None:
    sys.stdout.write(f"{time.strftime('%X')}  {text}\n")
    sys.stdout.flush()
