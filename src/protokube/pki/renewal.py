"""When a certificate is renewed: after two thirds of its life, and never two members at once.

Nobody has to ask anybody whose turn it is: the clock is cut into slots, each slot is one member's, and the second half
of every slot is nobody's, so that clocks may differ by hours. Whoever missed its slots, or has nothing valid, does not
wait.

What counts is how much is left of the life that was asked for, never when a certificate begins: it begins a day before
it is issued, for clocks that are behind, and of a life of a minute that would be all.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

HOUR = 3600.0
DAY = 24 * HOUR
LIFETIME = 365 * DAY
"""Where nothing else is asked for."""
LONGEST_SLOT = 12 * HOUR
SHORT = 7 * DAY
"""A life below this is due from its half on: a twelfth of it would be too little for everybody's turn."""
SELDOM = 600.0
CLOCKS_DIFFER = 2 * HOUR


@dataclass(frozen=True, slots=True)
class Life:
    """From when to when a certificate is valid, in seconds since 1970."""

    start: float
    end: float
    length: float
    """How long it is asked to live from the moment it is issued."""

    def left(self, now: float) -> float:
        """The part of its length that is still to come; more than 1 if it was issued for longer."""
        return (self.end - now) / self.length


@dataclass(frozen=True, slots=True)
class Place:
    """Which of how many members this machine renews for; alone, every moment is its turn."""

    index: int = 0
    count: int = 1


ALONE = Place()


class Stage(Enum):
    """How much of its life is over."""

    EARLY = "not valid yet"
    LONG = "valid for longer than is asked for"
    FRESH = "fresh"
    DUE = "due to be renewed"
    OVERDUE = "overdue"
    EXPIRED = "expired"


def stage(life: Life, now: float) -> Stage:
    if now < life.start:
        return Stage.EARLY
    if now >= life.end:
        return Stage.EXPIRED
    if life.end - now > life.length + CLOCKS_DIFFER:
        return Stage.LONG
    if life.left(now) > due_left(life.length):
        return Stage.FRESH
    return Stage.DUE if life.left(now) > 1 / 4 else Stage.OVERDUE


def may_renew(life: Life, now: float, place: Place) -> bool:
    """Whether to renew now."""
    match stage(life, now):
        case Stage.FRESH:
            return False
        case Stage.DUE | Stage.LONG:
            return is_turn(life, now, place)
        case Stage.EARLY | Stage.OVERDUE | Stage.EXPIRED:
            return True


def is_turn(life: Life, now: float, place: Place) -> bool:
    """Whether the clock is in the first half of a slot of this member; each has a whole one while it is due."""
    if place.count == 1:
        return True
    return in_slot(now, slot_of(life.length, place.count), place)


def in_slot(now: float, slot: float, place: Place) -> bool:
    """Whether the clock, cut into slots of so many seconds, is in the first half of one of this member."""
    number, within = divmod(now, slot)
    return int(number) % place.count == place.index and within < slot / 2


def slot_of(length: float, count: int) -> float:
    """Seconds. One slot more than there are members fits between due and overdue: wherever that begins, none is cut."""
    return min(LONGEST_SLOT, length * (due_left(length) - 1 / 4) / (count + 1))


def look_every(length: float) -> float:
    """Seconds between two looks at a certificate: at least one look falls into half a slot, of up to nine members."""
    return min(SELDOM, length / 80)


def due_left(length: float) -> float:
    """What is left of a life when it becomes due."""
    return 1 / 3 if length >= SHORT else 1 / 2
