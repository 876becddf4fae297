"""Zones as commands and controllers open them: calls are counted against a budget, and writes can be forbidden."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from protokube.providers.dns import DnsProvider, ZoneProvider
from protokube.providers.dns.budget import Budget, BudgetedDns
from protokube.providers.dns.readonly import ReadOnlyDns
from protokube.records.zones import Zone


class OpenZones:
    """Implements ZoneProvider: counts each call, and refuses writes if it was opened for reading only."""

    def __init__(
        self, inner: ZoneProvider, budget: Budget, *, counts_itself: bool = False, read_only: bool = False
    ) -> None:
        self._inner, self._budget, self._counts_itself, self._read_only = inner, budget, counts_itself, read_only

    @property
    def calls(self) -> Mapping[str, int]:
        """How often the provider was asked, by kind."""
        return self._budget.calls

    def list_zones(self) -> Sequence[Zone]:
        return self._inner.list_zones()

    def open(self, zone: Zone) -> DnsProvider:
        found = self._inner.open(zone)
        counted = found if self._counts_itself else BudgetedDns(found, self._budget)
        return ReadOnlyDns(counted) if self._read_only else counted
