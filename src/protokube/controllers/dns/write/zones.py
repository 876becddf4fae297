"""The zones we manage, and a cache of their records.

Listing a zone uses a request quota that the whole account shares, so we list every few minutes and apply our own writes
to the cache in between. The cache may be stale at any time, which is safe: every change carries the records that it was
planned from, and the provider rejects it if they no longer match (compare-and-swap). After such a rejection, and
whenever an outcome is unknown, the zone is listed again.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence

from protokube.controllers.dns.decide.zonerules import Managed, Rule, choose
from protokube.errors import Refused, TryLater
from protokube.providers.dns import DnsProvider, ZoneProvider
from protokube.records import Change, Key, Record
from protokube.records.zones import Zone

log = logging.getLogger(__name__)

ZONES_EVERY, RECORDS_EVERY = 3600.0, 330.0
"""Seconds between lists: an idle hour costs a dozen of them, including those of the zones."""
MISSED = 300.0
"""Seconds between lists of the zones while a name lies in none: a user may have created its zone."""


class ZoneView:
    """The cached records of one zone: the last list, plus our own writes since."""

    def __init__(self, dns: DnsProvider) -> None:
        self.dns = dns
        self._records: dict[Key, Record] = {}
        self._read_at: float | None = None

    def current(self, now: float) -> Sequence[Record]:
        if now >= self.due_at:
            self._records = {record.key: record for record in self.dns.list_records()}
            self._read_at = now
        return tuple(self._records.values())

    @property
    def due_at(self) -> float:
        """When the zone is listed again: others may have written to it."""
        return float("-inf") if self._read_at is None else self._read_at + RECORDS_EVERY

    def applied(self, changes: Iterable[Change]) -> None:
        for change in changes:
            if change.after is None:
                self._records.pop(change.key, None)
            else:
                self._records[change.key] = change.after

    def forget(self) -> None:
        """Invalidate the cache: list the zone before the next plan."""
        self._read_at = None


class Zones:
    """The provider's zones, listed now and then; a list that fails changes nothing."""

    def __init__(self, provider: ZoneProvider, rules: Sequence[Rule]) -> None:
        self._provider, self._rules = provider, tuple(rules)
        self._managed: Managed | None = None
        self._asked_at = 0.0
        self._due = 0.0

    def managed(self, now: float) -> Managed:
        if self._managed is None or now >= self._due:
            try:
                self._managed = choose(self._provider.list_zones(), self._rules)
            except (TryLater, Refused) as why:
                if self._managed is None:
                    raise
                log.warning("the zones cannot be listed, so the known ones are kept: %s", why.message)
            self._asked_at, self._due = now, now + ZONES_EVERY
        return self._managed

    def miss(self) -> float:
        """Note that a name lies in no zone; return when the zones are listed again."""
        self._due = min(self._due, self._asked_at + MISSED)
        return self._due

    def open(self, zone: Zone) -> ZoneView:
        return ZoneView(self._provider.open(zone))
