"""DNS messages for our records, and their exchange with one server, by dnspython.

Importing dnspython takes a tenth of a second, so this module is imported only when the first message is sent.
"""

from __future__ import annotations

import ipaddress
import socket
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import dns.exception
import dns.flags
import dns.message
import dns.name
import dns.query
import dns.rdataclass
import dns.rdatatype
import dns.rdtypes.ANY.TXT
import dns.rrset
import dns.tsig
import dns.update
import dns.xfr
import dns.zone

from protokube.providers.dns import Stale
from protokube.providers.dns.faults import explained, query_fault, update_fault
from protokube.providers.dns.keys import TsigKey
from protokube.records import Change, Key, Record
from protokube.records.names import TYPES

IN, TXT, CNAME = dns.rdataclass.IN, dns.rdatatype.TXT, dns.rdatatype.CNAME
NEIGHBOURS = ("MX", "SRV", "NS", "CAA", "PTR", "DNAME", "HTTPS", "SVCB", "NAPTR", "SSHFP", "TLSA", "LOC", "HINFO")
"""Types that we do not handle, and that cannot exist beside a CNAME."""
UDP_SECONDS, UDP_PAYLOAD = 0.7, 1232
WITHOUT_UDP_SECONDS = 30.0
LONGEST_STRING = 255


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The reply of the server for one name and type."""

    authoritative: bool
    rrsets: tuple[dns.rrset.RRset, ...]
    """Those of this name only; for an alias, its CNAME."""

    @property
    def records(self) -> tuple[Record, ...]:
        return records_of(self.rrsets)

    def of_type(self, kind: str) -> bool:
        return any(rrset.rdtype == dns.rdatatype.from_text(kind) for rrset in self.rrsets)

    @property
    def aliased(self) -> bool:
        return any(rrset.rdtype == CNAME for rrset in self.rrsets)


class ZoneServer:
    """The primary server of one zone, by its address. Every call ends by its deadline."""

    def __init__(self, address: str, port: int, zone: str, key: TsigKey) -> None:
        self._address, self._port = address, port
        self._origin = dns.name.from_text(zone)
        self._key = dns.tsig.Key(key.name, key.secret, dns.tsig.HMAC_SHA256)
        self._without_udp_until = 0.0
        self._what = f"the DNS server {address} port {port}"

    def __str__(self) -> str:
        return self._what

    def ask(self, name: str, kind: str, deadline: float) -> Answer:
        """Query by UDP; by TCP if the reply is truncated or does not come."""
        owner = dns.name.from_text(name)
        query = dns.message.make_query(owner, kind, use_edns=0, payload=UDP_PAYLOAD, flags=0)
        with explained(f"ask for {name}", self._what):
            reply = self._exchange(query, deadline)
        if wrong := query_fault(reply.rcode().name, name, self._what):
            raise wrong
        rrsets = tuple(rrset for rrset in reply.answer if rrset.name == owner)
        return Answer(authoritative=bool(reply.flags & dns.flags.AA), rrsets=rrsets)

    def _exchange(self, query: dns.message.Message, deadline: float) -> dns.message.Message:
        where, port = self._address, self._port
        if time.monotonic() >= self._without_udp_until:
            patience = min(UDP_SECONDS, _left(deadline))
            try:
                return dns.query.udp(query, where, patience, port, ignore_errors=True, raise_on_truncation=True)
            except dns.message.Truncated:
                pass
            except (dns.exception.Timeout, OSError):  # a firewall may let only TCP pass: skip UDP for a while
                self._without_udp_until = time.monotonic() + WITHOUT_UDP_SECONDS
        return dns.query.tcp(query, where, _left(deadline), port)

    def update(self, batch: Sequence[Change], deadline: float, *, as_kept: bool = False) -> None:
        """Send the batch as one signed update. Raises Stale if a `before` does not hold.

        A TXT value may be stored in other strings than we would split it into, and the server compares the strings:
        `as_kept` reads the stored ones first.
        """
        kept = self._kept_texts(batch, deadline) if as_kept else {}
        most = max((len(change.after.values) for change in batch if change.after), default=0)
        self._send(update_message(self._origin, batch, kept), deadline, most)

    def exists(self, name: str, deadline: float) -> bool:
        """Whether the name itself exists: send an update without changes, with that as its prerequisite."""
        message = dns.update.UpdateMessage(self._origin)
        message.present(dns.name.from_text(name))
        try:
            self._send(message, deadline)
        except Stale:
            return False
        return True

    def transfer(self, deadline: float) -> Sequence[Record]:
        """Every record of the zone of the types we handle, by a signed AXFR."""
        zone = dns.zone.Zone(self._origin, relativize=False)
        query, _ = dns.xfr.make_query(zone, serial=None, keyring=self._key)
        with explained(f"list {_text_of(self._origin)}", self._what):
            left = _left(deadline)
            dns.query.inbound_xfr(self._address, zone, query, port=self._port, timeout=left, lifetime=left)
        return records_of(
            dns.rrset.from_rdata_list(name, kept.ttl, list(kept)) for name, kept in zone.iterate_rdatasets()
        )

    def _kept_texts(self, batch: Sequence[Change], deadline: float) -> Mapping[Key, dns.rrset.RRset]:
        texts = [change.before for change in batch if change.before and change.before.type == "TXT"]
        answers = [(before, self.ask(before.name, "TXT", deadline)) for before in texts]
        return {
            before.key: dns.rrset.from_rdata_list(answer.rrsets[0].name, 0, list(answer.rrsets[0]))
            for before, answer in answers
            if [record.values for record in answer.records] == [before.values]
        }

    def _send(self, message: dns.update.UpdateMessage, deadline: float, most: int = 0) -> None:
        """By TCP: an update that UDP delivered twice would fail because of its own first copy."""
        message.use_tsig(self._key)
        with explained(f"change {_text_of(self._origin)}", self._what):
            sent = message.to_wire(prepend_length=True)
            with socket.create_connection((self._address, self._port), _left(deadline)) as connection:
                connection.sendall(sent)
                wire = _receive(connection, int.from_bytes(_receive(connection, 2, deadline), "big"), deadline)
            reply = dns.message.from_wire(wire, keyring=False)
            if not message.is_response(reply):
                raise dns.query.BadResponse
            if reply.had_tsig or not reply.rcode():  # a server that does not know our key cannot sign its refusal
                reply = dns.message.from_wire(wire, keyring=self._key, request_mac=message.mac or b"")
        if wrong := update_fault(reply.rcode().name, _text_of(self._origin), self._what, most):
            raise wrong


def records_of(rrsets: Iterable[dns.rrset.RRset]) -> tuple[Record, ...]:
    """Those of our types, sorted."""
    return tuple(sorted(record for rrset in rrsets if (record := _record_of(rrset))))


def _record_of(rrset: dns.rrset.RRset) -> Record | None:
    kind = dns.rdatatype.to_text(rrset.rdtype)
    if kind not in TYPES:
        return None
    if rrset.rdtype == TXT:
        values = {b"".join(rdata.strings).decode("utf-8", "surrogateescape") for rdata in rrset}
    elif rrset.rdtype == CNAME:
        values = {_text_of(rdata.target) for rdata in rrset}
    else:
        values = {str(ipaddress.ip_address(rdata.address)) for rdata in rrset}
    return Record(name=_text_of(rrset.name), type=kind, values=tuple(sorted(values)), ttl=rrset.ttl)


def _text_of(name: dns.name.Name) -> str:
    return name.canonicalize().to_text(omit_final_dot=True)


def update_message(
    zone: dns.name.Name, batch: Sequence[Change], kept: Mapping[Key, dns.rrset.RRset]
) -> dns.update.UpdateMessage:
    """The batch as one update: nothing of it happens unless every `before` holds.

    Deletions come first, so that a CNAME can replace addresses, and addresses a CNAME.
    """
    message = dns.update.UpdateMessage(zone)
    for name, kind in sorted(_in_the_way(batch)):
        message.absent(dns.name.from_text(name), kind)
    for change in batch:
        owner, kind = dns.name.from_text(change.key[0]), change.key[1]
        if change.before is None:
            message.absent(owner, kind)
        else:
            message.present(owner, kept.get(change.key) or _rrset_of(change.before, ttl=0))
        if change.after is None:
            message.delete(owner, kind)
    for change in batch:
        if change.after is not None and change.before != change.after:
            put = message.replace if change.before else message.add
            put(dns.name.from_text(change.after.name), _rrset_of(change.after, ttl=change.after.ttl))
    return message


def _in_the_way(batch: Sequence[Change]) -> set[Key]:
    """Records that must not exist: a server silently drops records that are added beside a CNAME.

    No prerequisite says "nothing but these", so where a CNAME replaces other records, the types are listed one by one.
    """
    keys = {change.key for change in batch}
    changed = Counter(name for name, _ in keys)
    wanted: set[Key] = set()
    for change in batch:
        if change.after is not None and change.after.type != "CNAME":
            wanted.add((change.after.name, "CNAME"))
        elif change.after is not None and change.before is None:
            kinds = ("ANY",) if changed[change.after.name] == 1 else (*TYPES, *NEIGHBOURS)
            wanted |= {(change.after.name, kind) for kind in kinds}
    return wanted - keys


def _rrset_of(record: Record, *, ttl: int) -> dns.rrset.RRset:
    name = dns.name.from_text(record.name)
    if record.type == "TXT":
        return dns.rrset.from_rdata(name, ttl, *map(_text_rdata, record.values))
    values = [f"{value}." for value in record.values] if record.type == "CNAME" else record.values
    return dns.rrset.from_text(name, ttl, IN, record.type, *values)


def _text_rdata(text: str) -> dns.rdtypes.ANY.TXT.TXT:
    """A text of any length: DNS stores it as strings of up to 255 bytes."""
    data = text.encode("utf-8", "surrogateescape")
    strings = [data[start : start + LONGEST_STRING] for start in range(0, len(data), LONGEST_STRING)]
    return dns.rdtypes.ANY.TXT.TXT(IN, TXT, strings or [b""])


def _receive(connection: socket.socket, count: int, deadline: float) -> bytes:
    data = b""
    while len(data) < count:
        connection.settimeout(_left(deadline))
        if not (more := connection.recv(count - len(data))):
            raise EOFError("it closed the connection")
        data += more
    return data


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError("no time is left")
    return left
