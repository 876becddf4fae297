"""An immutable zone: a change creates a new one, so queries in progress go on with the old.

Names without records may exist, too: `internal` exists because `a.internal` does (an empty non-terminal), and is
answered with NODATA, not NXDOMAIN. After NXDOMAIN a resolver would not even query the names below (RFC 8020).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import dns.name
import dns.rdata
import dns.rdtypes.ANY.SOA
from dns.rdatatype import RdataType

from protokube.records import Change, Record

TYPES = (
    RdataType.A,
    RdataType.AAAA,
    RdataType.CNAME,
    RdataType.NS,
    RdataType.SOA,
    RdataType.SRV,
    RdataType.TXT,
)
NEGATIVE_TTL = 5
"""Seconds a resolver may cache a negative answer; short, so that a new member is found soon."""


class Persist(Protocol):
    """Storage of zones across restarts of the server. Values of records are in zone file format."""

    def load(self) -> Sequence[Record]:
        """All stored records, of all zones."""

    def save(self, changes: Sequence[Change]) -> None:
        """Save all changes or none, durably, before it returns; called in any thread, one call at a time."""


@dataclass(frozen=True, slots=True)
class Values:
    """All values of one type at one name."""

    ttl: int
    rdatas: frozenset[dns.rdata.Rdata]


Node = Mapping[RdataType, Values]


@dataclass(frozen=True)
class Zone:
    """All names of a zone that have records, including the apex."""

    origin: dns.name.Name
    nodes: Mapping[dns.name.Name, Node]

    @cached_property
    def inner(self) -> frozenset[dns.name.Name]:
        """Empty non-terminals: names without records that exist because of names below them."""
        return frozenset(name for longer in self.nodes for name in self._above(longer)) - self.nodes.keys()

    @property
    def soa(self) -> dns.rdtypes.ANY.SOA.SOA:
        (rdata,) = self.nodes[self.origin][RdataType.SOA].rdatas
        assert isinstance(rdata, dns.rdtypes.ANY.SOA.SOA)
        return rdata

    def find(self, name: dns.name.Name) -> Node | None:
        """The records at a name or, if the name does not exist, of the wildcard that covers it (RFC 4592)."""
        if (node := self.nodes.get(name)) is not None:
            return node
        if name in self.inner:
            return {}
        for above in self._above(name):
            if above in self.nodes or above in self.inner:
                return self.nodes.get(dns.name.Name((b"*", *above.labels)))
        return None

    def with_serial(self, serial: int) -> Zone:
        apex = dict(self.nodes[self.origin])
        apex[RdataType.SOA] = Values(apex[RdataType.SOA].ttl, frozenset({self.soa.replace(serial=serial)}))
        return Zone(self.origin, {**self.nodes, self.origin: apex})

    def changes_to(self, after: Zone) -> tuple[Change, ...]:
        """The changes to save, sorted."""
        names = {
            name for name in self.nodes.keys() | after.nodes.keys() if self.nodes.get(name) != after.nodes.get(name)
        }
        old, new = ({record.key: record for record in zone.records(names)} for zone in (self, after))
        differs = sorted(key for key in old.keys() | new.keys() if old.get(key) != new.get(key))
        return tuple(Change(before=old.get(key), after=new.get(key), why="updated") for key in differs)

    def records(self, names: Iterable[dns.name.Name]) -> Iterator[Record]:
        for name in names:
            for kind, kept in self.nodes.get(name, {}).items():
                values = tuple(sorted(rdata.to_text() for rdata in kept.rdatas))
                yield Record(name=name.to_text(omit_final_dot=True), type=kind.name, values=values, ttl=kept.ttl)

    def _above(self, name: dns.name.Name) -> Iterator[dns.name.Name]:
        while name != self.origin and len(name) > len(self.origin):
            name = name.parent()
            yield name


def load_zones(
    names: Iterable[str], kept: Sequence[Record], address: str | None
) -> tuple[dict[dns.name.Name, Zone], tuple[Change, ...]]:
    """The zones by name, and records added to complete them; a record belongs to its closest enclosing zone."""
    origins = sorted({dns.name.from_text(name).canonicalize() for name in names}, key=len)
    around: dict[dns.name.Name, list[Record]] = {origin: [] for origin in origins}
    for record in kept:
        owner = dns.name.from_text(record.name)
        if own := [origin for origin in origins if owner.is_subdomain(origin)]:
            around[own[-1]].append(record)
    zones: dict[dns.name.Name, Zone] = {}
    made: list[Change] = []
    for origin, records in around.items():
        before = Zone(origin, _nodes(records))
        zones[origin] = _complete(before, address)
        made += before.changes_to(zones[origin])
    return zones, tuple(made)


def _nodes(records: Iterable[Record]) -> dict[dns.name.Name, dict[RdataType, Values]]:
    nodes: dict[dns.name.Name, dict[RdataType, Values]] = {}
    for record in records:
        node = nodes.setdefault(dns.name.from_text(record.name).canonicalize(), {})
        node[RdataType[record.type]] = _values(record.type, record.ttl, record.values)
    return nodes


def _complete(zone: Zone, address: str | None) -> Zone:
    """Add what every zone needs: an SOA, and an NS that points at this server."""
    nodes = {name: dict(node) for name, node in zone.nodes.items()}
    apex = nodes.setdefault(zone.origin, {})
    server = dns.name.from_text("ns", zone.origin)
    timers = f"3600 600 86400 {NEGATIVE_TTL}"
    apex.setdefault(RdataType.SOA, _values("SOA", 5, [f"{server} hostmaster.{zone.origin} 1 {timers}"]))
    apex.setdefault(RdataType.NS, _values("NS", 60, [str(server)]))
    if address is not None:
        kind = "AAAA" if ":" in address else "A"
        nodes.setdefault(server, {})[RdataType[kind]] = _values(kind, 60, [address])
    return Zone(zone.origin, nodes)


def _values(kind: str, ttl: int, texts: Iterable[str]) -> Values:
    parsed = (dns.rdata.from_text("IN", kind, text, dns.name.root, relativize=False) for text in texts)
    return Values(ttl, frozenset(parsed))
