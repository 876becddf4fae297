"""When a certificate is renewed: after two thirds of its life, and never two members at once.

Nobody has to ask anybody whose turn it is: the clock is cut into slots, each slot is one member's, and the second half
of every slot is nobody's, so that clocks may differ by hours. Whoever missed its slots, or has nothing valid, does not
wait.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

HOUR = 3600.0
LONGEST_SLOT = 12 * HOUR


@dataclass(frozen=True, slots=True)
class Life:
    """From when to when a certificate is valid, in seconds since 1970."""

    start: float
    end: float

    @property
    def length(self) -> float:
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class Place:
    """Which of how many members this machine renews for; alone, every moment is its turn."""

    index: int = 0
    count: int = 1


ALONE = Place()


class Stage(Enum):
    """How much of its life is over."""

    EARLY = "not valid yet"
    FRESH = "fresh"
    DUE = "past two thirds of its life"
    OVERDUE = "past three quarters of its life"
    EXPIRED = "expired"


def stage(life: Life, now: float) -> Stage:
    if now < life.start:
        return Stage.EARLY
    if now >= life.end:
        return Stage.EXPIRED
    if now >= life.start + life.length * 3 / 4:  # two thirds and a twelfth
        return Stage.OVERDUE
    return Stage.DUE if now >= life.start + life.length * 2 / 3 else Stage.FRESH


def may_renew(life: Life, now: float, place: Place) -> bool:
    """Whether to renew now."""
    match stage(life, now):
        case Stage.FRESH:
            return False
        case Stage.DUE:
            return is_turn(life, now, place)
        case Stage.EARLY | Stage.OVERDUE | Stage.EXPIRED:
            return True


def is_turn(life: Life, now: float, place: Place) -> bool:
    """Whether the clock is in the first half of a slot of this member; each has at least two while it is due."""
    if place.count == 1:
        return True
    slot = min(LONGEST_SLOT, life.length / 12 / (2 * place.count))
    number, within = divmod(now, slot)
    return int(number) % place.count == place.index and within < slot / 2
