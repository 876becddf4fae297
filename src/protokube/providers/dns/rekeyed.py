"""A zone whose TSIG key is stored elsewhere and may be rotated while we run.

The key is read when it is first needed, and again whenever the server refuses us: we may have the old one. The call is
repeated only if the key has changed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TypeVar

from protokube.errors import Refused, TryLater
from protokube.providers.dns import BadRecord, DnsProvider
from protokube.providers.dns.keys import TsigKey
from protokube.records import Change, Record
from protokube.records.names import normalise

T = TypeVar("T")


class RekeyedDns:
    """Implements DnsProvider. `ask` returns the current key; `connect` makes the zone that uses it."""

    def __init__(self, zone: str, ask: Callable[[], TsigKey], connect: Callable[[TsigKey], DnsProvider]) -> None:
        self._zone, self._ask, self._connect = normalise(zone), ask, connect
        self._in_use: tuple[TsigKey, DnsProvider] | None = None

    @property
    def zone(self) -> str:
        return self._zone

    def read(self, names: Collection[str]) -> Sequence[Record]:
        return self._with_key(lambda zone: zone.read(names))

    def list_records(self) -> Sequence[Record]:
        return self._with_key(lambda zone: zone.list_records())

    def apply(self, batch: Sequence[Change]) -> None:
        self._with_key(lambda zone: zone.apply(batch))

    def split(self, units: Iterable[Iterable[Change]]) -> Sequence[Sequence[Change]]:
        return self._with_key(lambda zone: zone.split(units))

    def _with_key(self, call: Callable[[DnsProvider], T]) -> T:
        key, zone = self._in_use or self._use(self._ask())
        try:
            return call(zone)
        except BadRecord:  # rejected for its content: another key would not help
            raise
        except Refused as why:
            try:
                now = self._ask()
            except (Refused, TryLater):
                raise why from None  # report the server's error, not this one
            if now == key:
                raise
        return call(self._use(now)[1])

    def _use(self, key: TsigKey) -> tuple[TsigKey, DnsProvider]:
        self._in_use = key, self._connect(key)
        return self._in_use
