"""Dynamic updates (RFC 2136): a pure function from a zone and a message to the new zone.

All prerequisites are checked first, then the form of every change; then the changes are applied in order. Any failure
leaves the zone unchanged. Some deletions are ignored, as the RFC requires: a zone keeps its SOA and its last NS.
"""

from __future__ import annotations

from collections.abc import Iterable

import dns.name
import dns.rdata
import dns.rdataclass
import dns.rdatatype
import dns.rrset
import dns.update
from dns.rcode import Rcode
from dns.rdatatype import RdataType
from dns.rdtypes.ANY.SOA import SOA

from protokube.local.dns.zone import TYPES, Values, Zone

KEPT_AT_APEX = (RdataType.SOA, RdataType.NS)
HALF = 2**31  # serial number arithmetic (RFC 1982)

Draft = dict[dns.name.Name, dict[RdataType, Values]]


class UpdateRefused(Exception):
    """The whole update is rejected with this response code."""

    def __init__(self, code: Rcode) -> None:
        super().__init__(code.name)
        self.code = code


def carry_out(zone: Zone, message: dns.update.UpdateMessage) -> Zone:
    """Return the zone after the update: the same if unchanged, else with a higher serial. Raises UpdateRefused."""
    _check_prerequisites(zone, message.prerequisite)
    for rrset in message.update:
        _check_form(zone, rrset)
    draft: Draft = {name: dict(node) for name, node in zone.nodes.items()}
    for rrset in message.update:
        node = draft.setdefault(rrset.name.canonicalize(), {})
        if rrset.deleting is None:
            _add(node, rrset)
        else:
            _delete(node, rrset, at_apex=rrset.name == zone.origin)
    after = Zone(zone.origin, {name: node for name, node in draft.items() if node})
    if after.nodes == zone.nodes:
        return zone
    return after if after.soa.serial != zone.soa.serial else after.with_serial((zone.soa.serial + 1) % 2**32)


def _check_prerequisites(zone: Zone, prerequisites: Iterable[dns.rrset.RRset]) -> None:
    exactly: dict[tuple[dns.name.Name, RdataType], set[dns.rdata.Rdata]] = {}
    for rrset in prerequisites:
        if not rrset.name.is_subdomain(zone.origin):
            raise UpdateRefused(Rcode.NOTZONE)
        node = zone.nodes.get(rrset.name, {})
        any_type = rrset.rdtype == RdataType.ANY
        there = bool(node) if any_type else rrset.rdtype in node
        if rrset.deleting is None:
            if rrset.ttl or rrset.rdclass != dns.rdataclass.IN:
                raise UpdateRefused(Rcode.FORMERR)
            exactly.setdefault((rrset.name, rrset.rdtype), set()).update(rrset)
        elif rrset.deleting == dns.rdataclass.ANY and not there:
            raise UpdateRefused(Rcode.NXDOMAIN if any_type else Rcode.NXRRSET)
        elif rrset.deleting == dns.rdataclass.NONE and there:
            raise UpdateRefused(Rcode.YXDOMAIN if any_type else Rcode.YXRRSET)
    for (name, kind), rdatas in exactly.items():
        values = zone.nodes.get(name, {}).get(kind)
        if values is None or values.rdatas != rdatas:
            raise UpdateRefused(Rcode.NXRRSET)


def _check_form(zone: Zone, rrset: dns.rrset.RRset) -> None:
    kind = rrset.rdtype
    if not rrset.name.is_subdomain(zone.origin):
        raise UpdateRefused(Rcode.NOTZONE)
    if rrset.rdclass != dns.rdataclass.IN:
        raise UpdateRefused(Rcode.FORMERR)
    if dns.rdatatype.is_metatype(kind) and not (rrset.deleting == dns.rdataclass.ANY and kind == RdataType.ANY):
        raise UpdateRefused(Rcode.FORMERR)
    if rrset.deleting is None and (kind not in TYPES or (kind in KEPT_AT_APEX and rrset.name != zone.origin)):
        raise UpdateRefused(Rcode.REFUSED)  # an NS below the apex would be a delegation: not supported here


def _add(node: dict[RdataType, Values], rrset: dns.rrset.RRset) -> None:
    """All values of one type share one TTL (RFC 2181, section 5.2): that of the last update.

    A record beside a CNAME is ignored; a CNAME replaces another one (RFC 2136, section 3.4.2.2).
    """
    values = node.get(rrset.rdtype)
    if rrset.rdtype == RdataType.CNAME:
        if not node.keys() - {RdataType.CNAME}:
            node[rrset.rdtype] = Values(rrset.ttl, frozenset(rrset))
    elif RdataType.CNAME in node:
        return
    elif rrset.rdtype != RdataType.SOA:
        node[rrset.rdtype] = Values(rrset.ttl, frozenset(rrset) | (values.rdatas if values else frozenset()))
    elif values is not None and _is_newer(rrset[0], *values.rdatas):
        node[rrset.rdtype] = Values(rrset.ttl, frozenset(rrset))


def _is_newer(new: dns.rdata.Rdata, old: dns.rdata.Rdata) -> bool:
    assert isinstance(new, SOA)
    assert isinstance(old, SOA)
    return 0 < (new.serial - old.serial) % 2**32 < HALF


def _delete(node: dict[RdataType, Values], rrset: dns.rrset.RRset, *, at_apex: bool) -> None:
    kinds = list(node) if rrset.rdtype == RdataType.ANY else [rrset.rdtype]
    for kind in kinds:
        values = node.get(kind)
        if values is None:
            continue
        rest = values.rdatas - frozenset(rrset) if rrset.deleting == dns.rdataclass.NONE else frozenset()
        if rest:
            if kind != RdataType.SOA:
                node[kind] = Values(values.ttl, rest)
        elif not (at_apex and kind in KEPT_AT_APEX):
            del node[kind]
