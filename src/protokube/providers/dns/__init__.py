"""Names in a zone: providers only read and apply; what should be there is planned in `records`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Protocol

from protokube.errors import Refused, TryLater
from protokube.records import Change, Record
from protokube.records.zones import Zone


class Stale(TryLater):
    """A record no longer is what the change was planned from; nothing was written. Read and plan again."""


class BadRecord(Refused):
    """The provider turned this very batch away for what is in it; others may pass."""


class NotAllowed(Refused):
    """The provider does not let us make the changes of this batch; it may let us make others, or none at all."""


class DnsProvider(Protocol):
    """One zone. TryLater when it does not answer in time, Refused when it turns us away."""

    @property
    def zone(self) -> str: ...

    def read(self, names: Collection[str]) -> Sequence[Record]:
        """What the authoritative side answers now for these names, all types we handle, sorted. Never from a cache."""

    def list_records(self) -> Sequence[Record]:
        """Every record of the zone of the types we handle, sorted: complete, or an error."""

    def apply(self, batch: Sequence[Change]) -> None:
        """Carry out all of it or nothing.

        Raises Stale if a `before` no longer holds, BadRecord or NotAllowed if it is turned away for what is in it.

        When it returns, `read` sees the result.
        """

    def split(self, units: Iterable[Iterable[Change]]) -> Sequence[Sequence[Change]]:
        """Batches that this provider takes in one call each; a unit, changes that hold together, is never torn."""


class ZoneProvider(Protocol):
    """Every zone that one account or one server offers."""

    def list_zones(self) -> Sequence[Zone]:
        """Sorted: complete, or an error. Two zones may share a name; their ids tell them apart."""

    def open(self, zone: Zone) -> DnsProvider:
        """One of these zones. Asks nobody, so that it may be one that is gone by now."""
