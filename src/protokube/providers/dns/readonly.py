"""A read-only zone: for a dry run, and for trying a new version beside the old one."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from protokube.errors import Refused
from protokube.providers.dns import DnsProvider
from protokube.providers.dns.batch import check
from protokube.records import Change, Key, Record


class DryRun(Refused):
    """The change was not applied: this is a dry run."""


class ReadOnlyDns:
    """Implements DnsProvider: reads pass through, writes are not applied but recorded."""

    def __init__(self, inner: DnsProvider) -> None:
        self._inner = inner
        self._held_back: dict[Key, Change] = {}

    @property
    def zone(self) -> str:
        return self._inner.zone

    @property
    def held_back(self) -> Sequence[Change]:
        """The last change of each record that was not applied, sorted."""
        return [self._held_back[key] for key in sorted(self._held_back)]

    def read(self, names: Collection[str]) -> Sequence[Record]:
        return self._inner.read(names)

    def list_records(self) -> Sequence[Record]:
        return self._inner.list_records()

    def apply(self, batch: Sequence[Change]) -> None:
        check(self.zone, batch)
        if not batch:
            return
        self._held_back |= {change.key: change for change in batch}
        raise DryRun(f"{len(batch)} changes of {self.zone} are not carried out", saw="a dry run")

    def split(self, units: Iterable[Iterable[Change]]) -> Sequence[Sequence[Change]]:
        return self._inner.split(units)
