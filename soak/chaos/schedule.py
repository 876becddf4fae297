"""The schedule of faults: determined by the seed alone, so that a failure can be replayed. Pure.

Kinds are drawn without replacement: each occurs once before any occurs twice, so a short run has most of them.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from soak.chaos.fault import Fault

TOGETHER = 0.3
"""The probability that a fault is combined with a second one, where allowed."""


@dataclass(frozen=True, slots=True)
class Step:
    """One fault, or two that overlap."""

    number: int
    faults: tuple[Fault, ...]
    later: float = 0.0
    """Seconds between the first fault and the second."""
    calm: float = 1.0
    """Seconds without faults afterwards."""

    @property
    def bound(self) -> float:
        """Seconds within which the cluster must heal."""
        return max(each.heals for each in self.faults) + 30 * (len(self.faults) - 1)

    def __str__(self) -> str:
        first, *others = (each.describe() for each in self.faults)
        return f"step {self.number}: " + ", ".join([first, *(f"{self.later:g} s later {each}" for each in others)])


def steps(seed: int, kinds: Mapping[str, type[Fault]], members: Sequence[str]) -> Iterator[Step]:
    """An infinite sequence of steps; the same for the same arguments."""
    chance = random.Random(seed)
    deck: list[str] = []
    number = 0
    while True:
        number += 1
        if not deck:
            deck = sorted(kinds)
            chance.shuffle(deck)
        first = kinds[deck.pop()].draw(chance, members)
        second = company(first, kinds, members, chance)
        later = round(chance.uniform(0, max(first.lasts, 1)), 1)
        yield Step(number, (first, second) if second else (first,), later, round(chance.uniform(0.5, 3), 1))


def company(
    first: Fault, kinds: Mapping[str, type[Fault]], members: Sequence[str], chance: random.Random
) -> Fault | None:
    """A second fault of another kind on another member, or None; always draws the same count of random numbers."""
    wanted = chance.random() < TOGETHER
    others = [kind for kind in sorted(kinds) if kind != first.kind and not kinds[kind].alone]
    if not others:
        return None
    rest = [each for each in members if each != first.member] or list(members)
    second = kinds[chance.choice(others)].draw(chance, rest)
    return second if wanted and not first.alone else None
