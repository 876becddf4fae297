"""DNS zones: providers only read records and apply changes; `records` plans them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Protocol

from protokube.errors import Refused, TryLater
from protokube.records import Change, Record
from protokube.records.zones import Zone


class Stale(TryLater):
    """A record changed since the change was planned; nothing was written. Read and plan again."""


class BadRecord(Refused):
    """The provider rejected this batch for its content; others may pass."""


class NotAllowed(Refused):
    """We have no permission for the changes of this batch; we may have it for others, or for none."""


class DnsProvider(Protocol):
    """One zone. TryLater when it does not answer in time, Refused when it rejects us."""

    @property
    def zone(self) -> str: ...

    def read(self, names: Collection[str]) -> Sequence[Record]:
        """The authoritative records of these names, of all types we handle, sorted. Never from a cache."""

    def list_records(self) -> Sequence[Record]:
        """Every record of the zone of the types we handle, sorted: complete, or an error."""

    def apply(self, batch: Sequence[Change]) -> None:
        """Carry out all of it or nothing.

        Raises Stale if a `before` no longer holds, BadRecord or NotAllowed if it is rejected for its content.

        When it returns, `read` sees the result.
        """

    def split(self, units: Iterable[Iterable[Change]]) -> Sequence[Sequence[Change]]:
        """Batches that this provider accepts in one call each; the changes of one unit stay in one batch."""


class ZoneProvider(Protocol):
    """Every zone of one account or one server."""

    def list_zones(self) -> Sequence[Zone]:
        """Sorted: complete, or an error. Two zones may share a name; their ids tell them apart."""

    def open(self, zone: Zone) -> DnsProvider:
        """Open one of these zones. Sends no request, so the zone may be gone by now."""
