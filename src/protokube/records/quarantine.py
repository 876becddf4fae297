"""Quarantine for units that a provider rejected: retried with back-off, and at once when they change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from protokube.records import Record
from protokube.records.batches import Unit

FIRST, LONGEST = 60.0, 3600.0

Fingerprint = tuple[tuple[Record | None, Record | None], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Aside:
    """A rejected unit, with the last reason."""

    fingerprint: Fingerprint
    why: str
    refusals: int
    until: float


@dataclass(frozen=True, slots=True)
class Quarantine:
    """The quarantined units, by name."""

    aside: Mapping[str, Aside] = field(default_factory=dict)

    def due(self, units: Iterable[Unit], now: float) -> tuple[list[Unit], list[tuple[Unit, str]]]:
        """The units to try now, and those that wait, each with the reason of its rejection."""
        ready: list[Unit] = []
        waiting: list[tuple[Unit, str]] = []
        for unit in units:
            found = self._same(unit)
            if found and now < found.until:
                waiting.append((unit, found.why))
            else:
                ready.append(unit)
        return ready, waiting

    def after(self, planned: Iterable[Unit], refused: Iterable[tuple[Unit, str]], now: float) -> Quarantine:
        """The quarantine after a round that rejected these. Drops units that are no longer planned or were accepted."""
        aside = {unit.name: found for unit in planned if (found := self._same(unit)) and now < found.until}
        for unit, why in refused:
            before = self._same(unit)
            refusals = before.refusals + 1 if before else 1
            wait = min(FIRST * 2 ** min(refusals - 1, 16), LONGEST)
            aside[unit.name] = Aside(fingerprint=_fingerprint(unit), why=why, refusals=refusals, until=now + wait)
        return Quarantine(aside)

    @property
    def look_again_at(self) -> float | None:
        return min((found.until for found in self.aside.values()), default=None)

    def _same(self, unit: Unit) -> Aside | None:
        found = self.aside.get(unit.name)
        return found if found and found.fingerprint == _fingerprint(unit) else None


def _fingerprint(unit: Unit) -> Fingerprint:
    """The changes of a unit without their reasons."""
    return tuple((change.before, change.after) for change in unit)
