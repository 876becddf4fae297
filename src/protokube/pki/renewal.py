"""When a certificate is renewed: after two thirds of its lifetime, and never two members at once.

Members do not coordinate: time is divided into slots, each slot belongs to one member, and the second half of every
slot is unused, so that clocks may differ by hours. A member that missed its slots, or has no valid certificate, does
not wait.

Decisions use the remaining part of the requested lifetime, never `notBefore`: that is a day before the certificate was
issued, for clocks that are behind, and a day is longer than a lifetime of a minute.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

HOUR = 3600.0
DAY = 24 * HOUR
LIFETIME = 365 * DAY
"""The default."""
LONGEST_SLOT = 12 * HOUR
SHORT = 7 * DAY
"""A shorter lifetime is due from its half on: a twelfth of it would be too little for the slots of all members."""
SELDOM = 600.0
CLOCKS_DIFFER = 2 * HOUR


@dataclass(frozen=True, slots=True)
class Life:
    """From when to when a certificate is valid, in seconds since 1970."""

    start: float
    end: float
    length: float
    """The requested lifetime, from the moment of issue."""

    def left(self, now: float) -> float:
        """The fraction of `length` that remains; more than 1 if it was issued for longer."""
        return (self.end - now) / self.length


@dataclass(frozen=True, slots=True)
class Place:
    """This member's position among all members; a single member may renew at any time."""

    index: int = 0
    count: int = 1


ALONE = Place()


class Stage(Enum):
    """How far a certificate is in its lifetime."""

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
    """Whether now is in the first half of a slot of this member; each member has a whole slot while it is due."""
    if place.count == 1:
        return True
    return in_slot(now, slot_of(life.length, place.count), place)


def in_slot(now: float, slot: float, place: Place) -> bool:
    """Whether now is in the first half of a slot of this member; `slot` is the length of a slot in seconds."""
    number, within = divmod(now, slot)
    return int(number) % place.count == place.index and within < slot / 2


def slot_of(length: float, count: int) -> float:
    """Slot length in seconds. One slot more than there are members fits between due and overdue, so none is cut off."""
    return min(LONGEST_SLOT, length * (due_left(length) - 1 / 4) / (count + 1))


def look_every(length: float) -> float:
    """Seconds between two checks of a certificate: at least one falls into half a slot, for up to nine members."""
    return min(SELDOM, length / 80)


def due_left(length: float) -> float:
    """The fraction of the lifetime that remains when a certificate becomes due."""
    return 1 / 3 if length >= SHORT else 1 / 2
