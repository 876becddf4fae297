"""The zones we look after, and what stands in them as far as we know.

Listing a zone costs calls that a whole account shares, so it is done every few minutes; in between we know what we
wrote ourselves. That may be out of date at any time, and does no harm: every change says what it was planned from, and
a provider turns it away if that no longer holds. Then, and whenever an outcome is not known, the zone is read anew.
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
"""Seconds: an idle hour costs a dozen lists, those of the zones included."""
MISSED = 300.0
"""Seconds after which zones are listed again while a name has none: somebody may have made it."""


class ZoneView:
    """One zone: what is in it, from the last list and from what we wrote since."""

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
        """When it is to be listed again: others may have written there."""
        return float("-inf") if self._read_at is None else self._read_at + RECORDS_EVERY

    def applied(self, changes: Iterable[Change]) -> None:
        for change in changes:
            if change.after is None:
                self._records.pop(change.key, None)
            else:
                self._records[change.key] = change.after

    def forget(self) -> None:
        """What we know may be wrong: read it before the next plan."""
        self._read_at = None


class Zones:
    """Which zones there are, asked for now and then: a list that fails changes nothing."""

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
        """A name has no zone. When they are listed again."""
        self._due = min(self._due, self._asked_at + MISSED)
        return self._due

    def open(self, zone: Zone) -> ZoneView:
        return ZoneView(self._provider.open(zone))
