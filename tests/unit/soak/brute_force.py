"""A checker that tries every order: too slow for real histories, and simple enough to be believed."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, permutations

from soak.chaos.history import Kind, Operation, Result, Value


def is_linearizable(history: Sequence[Operation]) -> bool:
    """Every choice of unknown calls that took effect, in every order that respects time."""
    certain = [each for each in history if each.result is Result.OK]
    unknown = [each for each in history if each.result is Result.UNKNOWN and each.kind is not Kind.READ]
    return any(
        any(explains(order) for order in permutations([*certain, *chosen]))
        for count in range(len(unknown) + 1)
        for chosen in combinations(unknown, count)
    )


def explains(order: Sequence[Operation]) -> bool:
    value: Value = None
    for number, each in enumerate(order):
        if any(later.returned < each.invoked for later in order[number + 1 :]):
            return False
        takes_effect = each.result is Result.UNKNOWN or each.swapped
        if each.kind is Kind.READ and value != each.seen:
            return False
        if each.kind is Kind.CAS and takes_effect and value != each.expected:
            return False
        if each.kind is Kind.CAS and not takes_effect and (value != each.seen or value == each.expected):
            return False
        if each.kind is Kind.WRITE or (each.kind is Kind.CAS and takes_effect):
            value = each.new
    return True
