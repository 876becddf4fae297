"""Decode a DNS request and answer it from the zones; no sockets and no disk.

Garbage arrives all the time. A message that is not a request gets no reply, so that two servers cannot be made to
answer each other for ever; every request gets at least a response code.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Iterator, Mapping, Sequence

import dns.edns
import dns.exception
import dns.flags
import dns.message
import dns.name
import dns.opcode
import dns.rdatatype
import dns.rdtypes.ANY.TSIG
import dns.rrset
import dns.tsig
from dns.message import Message
from dns.rcode import Rcode
from dns.rdataclass import IN
from dns.rdatatype import RdataType

from protokube.local.dns.zone import NEGATIVE_TTL, Node, Values, Zone
from protokube.providers.dns.keys import TsigKey

HEADER = 12
SAFE_UDP = 1232
"""The largest UDP payload that passes everywhere without fragmentation (DNS flag day 2020)."""
LARGEST = 65535
PART_OF_TRANSFER = 16_000
LONGEST_CHAIN = 8
"""CNAMEs to follow: hosts query this server alone, and a stub resolver follows none itself."""

Keyring = Mapping[dns.name.Name, dns.tsig.Key]


class EarlyReply(Exception):
    """The message needs no further processing: send this reply or, if None, nothing."""

    def __init__(self, wire: bytes | None) -> None:
        super().__init__()
        self.wire = wire


def make_keyring(keys: Sequence[TsigKey]) -> Keyring:
    made = [dns.tsig.Key(key.name, base64.b64decode(key.secret), dns.tsig.HMAC_SHA256) for key in keys]
    return {key.name: key for key in made}


def read_request(wire: bytes, keyring: Keyring) -> Message:
    """Decode a request, and verify its TSIG if it has one. Raises EarlyReply for everything else."""
    if len(wire) < HEADER or wire[2] & 0x80:
        raise EarlyReply(None)
    try:
        unchecked = dns.message.from_wire(wire, keyring=False, one_rr_per_rrset=True)
        if not unchecked.had_tsig:
            return unchecked
        return dns.message.from_wire(wire, keyring=dict(keyring), one_rr_per_rrset=True)
    except (dns.tsig.BadSignature, dns.tsig.PeerError):
        raise EarlyReply(_unsigned_refusal(unchecked, Rcode.BADSIG)) from None
    except (dns.tsig.BadKey, dns.tsig.BadAlgorithm, dns.message.UnknownTSIGKey):
        raise EarlyReply(_unsigned_refusal(unchecked, Rcode.BADKEY)) from None
    except dns.tsig.BadTime:
        raise EarlyReply(_wrong_time(unchecked, keyring)) from None
    except (dns.exception.DNSException, ValueError):
        raise EarlyReply(_header(wire, Rcode.FORMERR)) from None


def answer(request: Message, zones: Mapping[dns.name.Name, Zone]) -> Message:
    """The answer to a query."""
    response = respond(request)
    if request.edns > 0:
        response.set_rcode(Rcode.BADVERS)
    elif request.opcode() != dns.opcode.QUERY:
        response.set_rcode(Rcode.NOTIMP)
    elif len(request.question) != 1:
        response.set_rcode(Rcode.FORMERR)
    else:
        _answer_question(response, request.question[0], zones)
    return response


def respond(request: Message, code: Rcode = Rcode.NOERROR) -> Message:
    response = dns.message.make_response(request, our_payload=SAFE_UDP)
    response.set_rcode(code)
    return response


def to_wire(response: Message, request: Message, *, tcp: bool) -> bytes:
    """Encode a response; over UDP it is truncated to what the client accepts, with TC set."""
    size = LARGEST if tcp else min(SAFE_UDP, request.payload if request.edns >= 0 else 512)
    return response.to_wire(max_size=size, prefer_truncation=True)


def zone_of(name: dns.name.Name, zones: Mapping[dns.name.Name, Zone]) -> Zone | None:
    """The closest enclosing zone of a name."""
    while True:
        if zone := zones.get(name):
            return zone
        if not name or name == dns.name.root:
            return None
        name = name.parent()


def _answer_question(response: Message, question: dns.rrset.RRset, zones: Mapping[dns.name.Name, Zone]) -> None:
    zone = zone_of(question.name, zones)
    odd = dns.rdatatype.is_metatype(question.rdtype) and question.rdtype != RdataType.ANY
    if zone is None or question.rdclass != IN or odd:
        response.set_rcode(Rcode.REFUSED)
        return
    response.flags |= dns.flags.AA
    name, node = question.name, zone.find(question.name)
    while zone is not None and node and _is_alias_for(question.rdtype, node) and len(response.answer) < LONGEST_CHAIN:
        response.answer.append(_rrset(name, node[RdataType.CNAME]))
        name = response.answer[-1][0].target
        zone = zone_of(name, zones)
        node = zone.find(name) if zone is not None else None
    found = [_rrset(name, values) for values in _values_for(question.rdtype, node or {})]
    response.answer += found
    if zone is not None and not found:
        response.set_rcode(Rcode.NXDOMAIN if node is None else Rcode.NOERROR)
        soa = zone.nodes[zone.origin][RdataType.SOA]
        response.authority = [_rrset(zone.origin, Values(min(soa.ttl, NEGATIVE_TTL), soa.rdatas))]


def _is_alias_for(kind: RdataType, node: Node) -> bool:
    return RdataType.CNAME in node and kind not in (RdataType.CNAME, RdataType.ANY)


def _values_for(kind: RdataType, node: Node) -> list[Values]:
    kinds = sorted(node) if kind == RdataType.ANY else [kind]
    return [node[kind] for kind in kinds if kind in node]


def _rrset(name: dns.name.Name, values: Values) -> dns.rrset.RRset:
    return dns.rrset.from_rdata_list(name, values.ttl, sorted(values.rdatas))


def transfer(request: Message, zone: Zone) -> Iterator[bytes]:
    """The whole zone as signed messages: its SOA, everything else, its SOA again (RFC 5936)."""
    soa = _rrset(zone.origin, zone.nodes[zone.origin][RdataType.SOA])
    rest = [
        _rrset(name, values)
        for name, node in sorted(zone.nodes.items())
        for kind, values in sorted(node.items(), key=lambda item: item[0])
        if kind != RdataType.SOA
    ]
    context = None
    for part in _parts([soa, *rest, soa]):
        response = respond(request)
        response.flags |= dns.flags.AA
        response.answer = part
        yield response.to_wire(max_size=LARGEST, multi=True, tsig_ctx=context)
        context = response.tsig_ctx


def _parts(rrsets: Sequence[dns.rrset.RRset]) -> Iterator[list[dns.rrset.RRset]]:
    part: list[dns.rrset.RRset] = []
    size = 0
    for rrset in rrsets:
        length = sum(len(rrset.name.to_wire() or b"") + 10 + len(rdata.to_wire() or b"") for rdata in rrset)
        if part and size + length > PART_OF_TRANSFER:
            yield part
            part, size = [], 0
        part.append(rrset)
        size += length
    yield part


def _header(wire: bytes, code: Rcode) -> bytes:
    """A reply to a message of which only the header could be decoded."""
    flags = bytes([0x80 | (wire[2] & 0x79), code])
    return wire[:2] + flags + bytes(8)


def _unsigned_refusal(request: Message, error: Rcode) -> bytes:
    """Without a shared key the response cannot be signed (RFC 8945, section 5.3.2)."""
    response = respond(request, Rcode.NOTAUTH)
    assert request.keyalgorithm is not None
    assert request.keyname is not None
    tsig = dns.rdtypes.ANY.TSIG.TSIG(  # type: ignore[no-untyped-call]
        dns.rdataclass.ANY, RdataType.TSIG, request.keyalgorithm, int(time.time()), 300, b"", request.id, error, b""
    )
    response.tsig = dns.rrset.from_rdata(request.keyname, 0, tsig)
    return response.to_wire(max_size=LARGEST)


def _wrong_time(request: Message, keyring: Keyring) -> bytes:
    response = respond(request, Rcode.NOTAUTH)
    assert request.keyname is not None
    clock = int(time.time()).to_bytes(6, "big")
    response.use_tsig(keyring[request.keyname], tsig_error=Rcode.BADTIME, other_data=clock)
    response.request_mac = request.mac or b""
    return response.to_wire(max_size=LARGEST)
