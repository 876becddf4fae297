"""The known API servers, which of them are usable, and in which order to try them. Pure.

The hard part is what to do when all of them look bad. Then the fault may be on this machine, or all may be overloaded,
so nothing is cut: connections are cut only while another API server is healthy. A name that cannot be resolved, or
resolves to no address, changes nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

ENOUGH = 3
"""Consecutive failed checks after which an API server is bad."""
EVERY, SOON = 2.0, 0.25
"""Seconds between two checks: normally, and while an API server is in doubt."""


class Health(Enum):
    """The result of the last checks."""

    GOOD = "good"
    NEW = "not checked yet"
    DOUBTFUL = "in doubt"
    BAD = "bad"


@dataclass(frozen=True, slots=True, kw_only=True)
class Backend:
    """One address that the name resolves to."""

    address: str
    due: float
    """When it is to be checked next."""
    listed: bool = True
    """Whether the name still resolves to it; otherwise it is drained and gets no new connections."""
    checked: bool = False
    failures: int = 0
    """Consecutive failed checks."""
    why: str = ""
    tried: int = 0
    """When it was last tried, as a counter: bad ones are tried in turn."""

    @property
    def health(self) -> Health:
        if self.failures >= ENOUGH:
            return Health.BAD
        if self.failures:
            return Health.DOUBTFUL
        return Health.GOOD if self.checked else Health.NEW


@dataclass(frozen=True, slots=True, kw_only=True)
class Backends:
    """All known API servers; every change returns a new value."""

    identity: str
    """Of this machine: it decides which API server is preferred, so that machines spread over all of them."""
    known: Mapping[str, Backend] = field(default_factory=dict)
    current: str = ""
    """The last address that was connected to while it was not bad; preferred while it is good."""
    tries: int = 0

    def resolved(self, addresses: Collection[str], now: float, busy: Collection[str] = ()) -> Backends:
        """The name resolves to these addresses now; `busy` are the addresses with open connections.

        No addresses at all change nothing. A removed address stays while it is busy, or while only removed ones work.
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
        """A check ended; `why` is the reason if it failed."""
        if address not in self.known:  # removed meanwhile
            return self
        before = self.known[address]
        after = replace(before, checked=True, failures=before.failures + 1 if why else 0, why=why)
        pause = SOON if after.health is Health.DOUBTFUL else EVERY
        return self._with(replace(after, due=now + pause))

    def suspected(self, address: str, now: float) -> Backends:
        """A connection failed: check it at once, and let the check decide."""
        return self._with(replace(self.known[address], due=now)) if address in self.known else self

    def trying(self, address: str) -> Backends:
        """A connection to it is about to be made."""
        if address not in self.known:
            return self
        return replace(self._with(replace(self.known[address], tried=self.tries + 1)), tries=self.tries + 1)

    def connected(self, address: str) -> Backends:
        """A connection to it was made; it becomes the current one unless it is bad."""
        known = self.known.get(address)
        return self if known is None or known.health is Health.BAD else replace(self, current=address)

    def order(self) -> Sequence[str]:
        """Addresses to connect to, the best first; bad ones too, since a client may succeed where a check fails."""
        return sorted(self.known, key=lambda address: self._rank(self.known[address]))

    def offered(self) -> frozenset[str]:
        """Addresses to which it makes sense to connect: those that no check has found bad or in doubt."""
        return frozenset(each.address for each in self.known.values() if each.health in (Health.GOOD, Health.NEW))

    def cut(self) -> Collection[str]:
        """Addresses whose connections are to be cut now: they are bad, and another one is good."""
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
        # otherwise one that accepts and never answers would get every connection while all are bad
        turn = backend.tried if backend.health is Health.BAD else 0
        return rank, turn, backend.address != self.current, self._preference(backend.address)

    def _preference(self, address: str) -> str:
        return hashlib.sha256(f"{self.identity} {address}".encode()).hexdigest()
