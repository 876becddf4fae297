"""This machine's mount table as values."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from protokube.host import Mount
from protokube.host.child import mountinfo
from protokube.host.child.mountinfo import PROC, shown_anywhere

__all__ = ["mounts", "parse", "shown_anywhere"]


def mounts(proc: Path = PROC) -> tuple[Mount, ...]:
    """Every mount that this process sees now. Of two at one point, the later one is the one to be seen."""
    return parse(mountinfo.read(proc))


@lru_cache(maxsize=2)
def parse(text: str) -> tuple[Mount, ...]:
    """Kept by the text: the table is read many times in a round, always anew, and mostly says the same."""
    return tuple(translated(line) for line in mountinfo.parse(text))


def translated(line: mountinfo.Line) -> Mount:
    return Mount(number=line.number, point=Path(line.point), type=line.type, options=line.options, id=line.id)
