"""What differs between a machine and one task, and how the task ended."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

HIDDEN = "(secret)"
"""Stands for the content of a secret file, whatever it is."""


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that is not as it should be, in words that may be shown: never the content of a secret file."""

    what: str
    """`content`, `mode`, `installed`."""
    saw: str
    want: str

    def __str__(self) -> str:
        return f"{self.what}: {self.saw} -> {self.want}"


class Result(StrEnum):
    UNCHANGED = "unchanged"
    CHANGED = "changed"
    FAILED = "failed"
    BLOCKED = "blocked"
    """Not tried, since something that it needs failed."""
    STOPPED = "stopped"
    """Not tried or not finished, since the run was interrupted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How one task ended."""

    key: str
    result: Result
    changes: tuple[Change, ...] = ()
    why: str = ""
    """Of a failure, or the key of what blocks it."""
    again: bool = False
    """Whether a failure may pass by itself."""
    began: float = 0.0
    """Seconds since the run began."""
    seconds: float = 0.0
    cpu: float = 0.0
