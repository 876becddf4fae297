"""Which API servers there are, which of them can be used, and in which order. Pure.

The hard part is what to do when everything looks bad. Then the fault may be ours, or all of them may be overloaded, so
nothing is cut: a connection is cut only where there is somewhere better to go. Names that cannot be resolved, or that
resolve to nothing, are no news either.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

ENOUGH = 3
"""Failed checks running after which an API server is bad."""
EVERY, SOON = 2.0, 0.25
"""Seconds between two checks; while one that just failed is in doubt."""


class Health(Enum):
    """What the last checks said."""

    GOOD = "good"
    NEW = "not checked yet"
    DOUBTFUL = "in doubt"
    BAD = "bad"


@dataclass(frozen=True, slots=True, kw_only=True)
class Backend:
    """One address behind the name."""

    address: str
    due: float
    """When it is to be checked next."""
    listed: bool = True
    """Whether the name still leads there; one that left is drained: nothing new goes there."""
    checked: bool = False
    failures: int = 0
    """Checks that failed, running."""
    why: str = ""
    tried: int = 0
    """Its place in the order in which those that are bad were tried."""

    @property
    def health(self) -> Health:
        if self.failures >= ENOUGH:
            return Health.BAD
        if self.failures:
            return Health.DOUBTFUL
        return Health.GOOD if self.checked else Health.NEW


@dataclass(frozen=True, slots=True, kw_only=True)
class Backends:
    """All of them; every change makes a new value."""

    identity: str
    """Of this machine: each prefers another API server, so that not all run to one."""
    known: Mapping[str, Backend] = field(default_factory=dict)
    current: str = ""
    """The last one that a connection was made to while it was not bad; kept while it is good."""
    tries: int = 0

    def resolved(self, addresses: Collection[str], now: float, busy: Collection[str] = ()) -> Backends:
        """What the name leads to now; `busy` are those that connections go through.

        Nothing at all keeps what is known. One that left stays while it is busy, or while it is all that works.
        """
        if not addresses:
            return self
        listed = {
            address: replace(self.known[address], listed=True)
            if address in self.known
            else Backend(address=address, due=now)
            for address in addresses
        }
        served = any(each.health is Health.GOOD for each in listed.values())
        drained = {
            address: replace(each, listed=False)
            for address, each in self.known.items()
            if address not in listed and (address in busy or (each.health is Health.GOOD and not served))
        }
        return replace(self, known={**listed, **drained})

    def checked(self, address: str, why: str, now: float) -> Backends:
        """A check came back: with a reason why it failed, or without."""
        if address not in self.known:  # it left meanwhile
            return self
        before = self.known[address]
        after = replace(before, checked=True, failures=before.failures + 1 if why else 0, why=why)
        pause = SOON if after.health is Health.DOUBTFUL else EVERY
        return self._with(replace(after, due=now + pause))

    def suspected(self, address: str, now: float) -> Backends:
        """A connection could not be made: have it checked at once, and let the check decide."""
        return self._with(replace(self.known[address], due=now)) if address in self.known else self

    def trying(self, address: str) -> Backends:
        """A connection is about to be made there."""
        if address not in self.known:
            return self
        return replace(self._with(replace(self.known[address], tried=self.tries + 1)), tries=self.tries + 1)

    def connected(self, address: str) -> Backends:
        """A connection goes there now; to stay with one that is bad would be no choice."""
        known = self.known.get(address)
        return self if known is None or known.health is Health.BAD else replace(self, current=address)

    def order(self) -> Sequence[str]:
        """Where to connect, the best first; all of them, since a check may be wrong where a client is not."""
        return sorted(self.known, key=lambda address: self._rank(self.known[address]))

    def cut(self) -> Collection[str]:
        """Those whose connections are to end now: they are bad, and others are not."""
        if not any(each.health is Health.GOOD for each in self.known.values()):
            return frozenset()
        return frozenset(each.address for each in self.known.values() if each.health is Health.BAD)

    def due(self, now: float) -> Sequence[str]:
        return sorted(each.address for each in self.known.values() if each.due <= now)

    def _with(self, backend: Backend) -> Backends:
        return replace(self, known={**self.known, backend.address: backend})

    def _rank(self, backend: Backend) -> tuple[int, int, bool, str]:
        ranks = {Health.GOOD: 0, Health.NEW: 1, Health.DOUBTFUL: 2, Health.BAD: 7}
        rank = ranks[backend.health] + (0 if backend.listed else 3)
        # one that accepts and never answers would else take every connection while all are bad
        turn = backend.tried if backend.health is Health.BAD else 0
        return rank, turn, backend.address != self.current, self._preference(backend.address)

    def _preference(self, address: str) -> str:
        return hashlib.sha256(f"{self.identity} {address}".encode()).hexdigest()
