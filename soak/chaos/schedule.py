"""Which faults come when: decided by the seed alone, so that a failure can be played again. Pure.

Kinds are dealt like cards: each comes up once before any comes up twice, so a short run meets most of them.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from soak.chaos.fault import Fault

TOGETHER = 0.3
"""How often a fault that may have company gets some."""


@dataclass(frozen=True, slots=True)
class Step:
    """One fault, or two that overlap."""

    number: int
    faults: tuple[Fault, ...]
    later: float = 0.0
    """Seconds after the first at which the second one comes."""
    calm: float = 1.0
    """Seconds of nothing afterwards."""

    @property
    def bound(self) -> float:
        """Seconds to heal within."""
        return max(each.heals for each in self.faults) + 30 * (len(self.faults) - 1)

    def __str__(self) -> str:
        first, *others = (each.describe() for each in self.faults)
        return f"step {self.number}: " + ", ".join([first, *(f"{self.later:g} s later {each}" for each in others)])


def steps(seed: int, kinds: Mapping[str, type[Fault]], members: Sequence[str]) -> Iterator[Step]:
    """Without end; the same for the same arguments."""
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
    """A second fault of another kind, aimed at another member; the numbers drawn do not depend on the outcome."""
    wanted = chance.random() < TOGETHER
    others = [kind for kind in sorted(kinds) if kind != first.kind and not kinds[kind].alone]
    if not others:
        return None
    rest = [each for each in members if each != first.member] or list(members)
    second = kinds[chance.choice(others)].draw(chance, rest)
    return second if wanted and not first.alone else None
