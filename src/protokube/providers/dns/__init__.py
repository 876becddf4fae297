"""Names in a zone: providers only read and apply; what should be there is planned in `records`."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from protokube.errors import Refused, TryLater
from protokube.records import Change, Record


class Stale(TryLater):
    """A record no longer is what the change was planned from; nothing was written. Read and plan again."""


class BadRecord(Refused):
    """The provider turned this very batch away for what is in it; others may pass."""


class DnsProvider(Protocol):
    """One zone. TryLater when it does not answer in time, Refused when it turns us away."""

    @property
    def zone(self) -> str: ...

    def read(self, names: Collection[str]) -> Sequence[Record]:
        """What the authoritative side answers now for these names, all types we handle, sorted. Never from a cache."""

    def list_records(self) -> Sequence[Record]:
        """Every A, AAAA and TXT record of the zone, sorted: complete, or an error."""

    def apply(self, batch: Sequence[Change]) -> None:
        """Carry out all of it or nothing. Raises Stale if a `before` no longer holds, BadRecord if it is turned away.

        When it returns, `read` sees the result.
        """
