"""Pack changes into batches, and bisect a batch that the provider rejects.

The value at a name and the mark of its owner are one unit: apart they would be a value without an owner, or an owner
without a value. So a unit is never split, neither by packing nor by bisection.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from protokube.errors import ProtokubeError
from protokube.records import Change

Cost = tuple[int, ...]
"""What a change counts towards each limit of a provider, such as values or characters."""


@dataclass(frozen=True, slots=True)
class Unit:
    """All changes of one name: applied together, or not at all."""

    name: str
    changes: tuple[Change, ...]

    def __iter__(self) -> Iterator[Change]:
        return iter(self.changes)

    def __str__(self) -> str:
        return "; ".join(map(str, self.changes))


ManyChanges = TypeVar("ManyChanges", bound=Iterable[Change])
Item = TypeVar("Item")


def batches(units: Iterable[ManyChanges], cost: Callable[[Change], Cost], limit: Cost) -> list[list[ManyChanges]]:
    """Fill batches in order, as many units in each as the limit allows.

    A unit above the limit becomes a batch of its own: the provider then reports what is wrong with it.
    """
    packed: list[list[ManyChanges]] = []
    spent = limit
    for unit in units:
        needed = tuple(map(sum, zip(*map(cost, unit), strict=True))) or tuple(0 for _ in limit)
        total = tuple(map(sum, zip(spent, needed, strict=True)))
        if packed and all(have <= most for have, most in zip(total, limit, strict=True)):
            packed[-1].append(unit)
            spent = total
        else:
            packed.append([unit])
            spent = needed
    return packed


def changes_of(units: Iterable[Iterable[Change]]) -> list[Change]:
    return [change for unit in units for change in unit]


def units_in(batch: Iterable[Change], units: Iterable[Unit]) -> list[Unit]:
    """The units that the changes belong to, in the order of the batch."""
    unit_of = {change.key: unit for unit in units for change in unit}
    return list({unit_of[change.key].name: unit_of[change.key] for change in batch}.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Bisected(Generic[Item]):
    """The outcome of a batch: what was applied, and what was rejected, with the reason."""

    applied: tuple[Item, ...]
    quarantined: tuple[tuple[Item, str], ...]


def bisect(
    batch: Sequence[Item],
    apply: Callable[[Sequence[Item]], None],
    refusal: type[ProtokubeError] | tuple[type[ProtokubeError], ...],
) -> Bisected[Item]:
    """Apply a batch; if it is rejected, bisect it until only the bad items are left out.

    `refusal` is the error by which a provider rejects a batch for its content. Every other error stops the work and
    propagates; only `apply` knows what was applied before it.
    """
    applied: list[Item] = []
    quarantined: list[tuple[Item, str]] = []

    def attempt(part: Sequence[Item]) -> None:
        try:
            apply(part)
        except refusal as why:
            if len(part) == 1:
                quarantined.append((part[0], str(why)))
            else:
                attempt(part[: len(part) // 2])
                attempt(part[len(part) // 2 :])
        else:
            applied.extend(part)

    if batch:
        attempt(batch)
    return Bisected(applied=tuple(applied), quarantined=tuple(quarantined))
