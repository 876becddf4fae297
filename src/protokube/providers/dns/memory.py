"""A zone in memory: the provider for scenarios, and the shortest reference implementation."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Sequence

from protokube.errors import TryLater
from protokube.providers.dns.batch import carried_out, check, together
from protokube.records import Change, Key, Record
from protokube.records.names import normalise


class MemoryDns:
    """Implements DnsProvider. Any number of agents may share it; `unreachable` makes it fail for all of them."""

    def __init__(self, zone: str) -> None:
        self.unreachable = False
        self.reads = self.lists = self.writes = 0
        self._zone = normalise(zone)
        self._records: dict[Key, Record] = {}
        self._lock = threading.Lock()

    @property
    def zone(self) -> str:
        return self._zone

    def read(self, names: Collection[str]) -> Sequence[Record]:
        with self._lock:
            self._reach()
            self.reads += 1
            wanted = {normalise(name) for name in names}
            return tuple(sorted(record for record in self._records.values() if record.name in wanted))

    def list_records(self) -> Sequence[Record]:
        with self._lock:
            self._reach()
            self.lists += 1
            return tuple(sorted(self._records.values()))

    def apply(self, batch: Sequence[Change]) -> None:
        with self._lock:
            self._reach()
            check(self._zone, batch)
            self._records = carried_out(self._records, batch)
            self.writes += 1

    def split(self, units: Iterable[Iterable[Change]]) -> Sequence[Sequence[Change]]:
        return together(units)

    def _reach(self) -> None:
        if self.unreachable:
            raise TryLater(f"the DNS server of {self._zone} does not answer")
