"""A fixed set of zones, for providers that cannot list theirs: a server, a file, memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from protokube.errors import Refused
from protokube.providers.dns import DnsProvider
from protokube.records.zones import Zone


class GivenZones:
    """Implements ZoneProvider."""

    def __init__(self, zones: Mapping[Zone, DnsProvider]) -> None:
        self._zones = dict(zones)

    def list_zones(self) -> Sequence[Zone]:
        return sorted(self._zones)

    def open(self, zone: Zone) -> DnsProvider:
        try:
            return self._zones[zone]
        except KeyError:
            raise Refused(f"no zone {zone} was given", saw=", ".join(map(str, self.list_zones()))) from None


def given(*providers: DnsProvider) -> GivenZones:
    """Zones of these providers; each name occurs once, so the name serves as the id."""
    return GivenZones({Zone(name=provider.zone, id=provider.zone): provider for provider in providers})
