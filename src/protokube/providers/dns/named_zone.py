"""One zone of an account, found by its name when it is first needed: an agent starts without waiting for its provider.

A zone that was deleted and created again has another id. So after a refusal it is found again, before the next call.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TypeVar

from protokube.errors import Refused
from protokube.providers.dns import BadRecord, DnsProvider, ZoneProvider
from protokube.records import Change, Record
from protokube.records.names import normalise
from protokube.records.zones import Zone

T = TypeVar("T")


class NamedZone:
    """Implements DnsProvider. `zone_id` and `private` choose between zones of the same name."""

    def __init__(self, account: ZoneProvider, name: str, *, zone_id: str = "", private: bool | None = None) -> None:
        self._account, self._name, self._id, self._private = account, normalise(name), zone_id, private
        self._opened: DnsProvider | None = None

    @property
    def zone(self) -> str:
        return self._name

    def read(self, names: Collection[str]) -> Sequence[Record]:
        return self._with_zone(lambda zone: zone.read(names))

    def list_records(self) -> Sequence[Record]:
        return self._with_zone(lambda zone: zone.list_records())

    def apply(self, batch: Sequence[Change]) -> None:
        self._with_zone(lambda zone: zone.apply(batch))

    def split(self, units: Iterable[Iterable[Change]]) -> Sequence[Sequence[Change]]:
        return self._with_zone(lambda zone: zone.split(units))

    def _with_zone(self, call: Callable[[DnsProvider], T]) -> T:
        zone = self._opened = self._opened or self._account.open(self._find())
        try:
            return call(zone)
        except BadRecord:  # rejected for its content
            raise
        except Refused:
            self._opened = None
            raise

    def _find(self) -> Zone:
        """Exactly one zone, or Refused: in the wrong one, records would be seen by others than they are for."""
        listed = self._account.list_zones()
        found = [each for each in listed if self._is_chosen(each)]
        if len(found) > 1:
            raise Refused(
                f"there are several zones {self._name}", saw=", ".join(map(str, found)),
                hint="name the `id` of one of them, or whether it is `private`",
            )  # fmt: skip
        if not found:
            raise Refused(
                f"there is no such zone {self._name}",
                saw=", ".join(map(str, listed)) or "no zone at all",
                want=self._wanted(),
                hint="create it, or correct its name; the machine's role may list zones",
            )
        return found[0]

    def _is_chosen(self, zone: Zone) -> bool:
        return (
            normalise(zone.name) == self._name and self._id in ("", zone.id) and self._private in (None, zone.private)
        )

    def _wanted(self) -> str:
        kind = "" if self._private is None else "private, " if self._private else "public, "
        return f"{self._name} ({kind}{self._id or 'any id'})"
