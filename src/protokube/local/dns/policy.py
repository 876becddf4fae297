"""Which queries of hosts are forwarded to the resolvers of the user's machine: never those about the cluster itself."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from ipaddress import IPv4Network

import dns.flags
import dns.name
import dns.opcode
import dns.rdatatype
from dns.message import Message
from dns.rdataclass import IN
from dns.rdatatype import RdataType

REVERSE = dns.name.from_text("in-addr.arpa")
LOCALHOST = dns.name.from_text("localhost")
"""Never forwarded (RFC 6761, section 6.3)."""


@dataclass(frozen=True, slots=True)
class Policy:
    """The domains and address ranges of the cluster."""

    domains: tuple[dns.name.Name, ...] = ()
    networks: tuple[IPv4Network, ...] = ()

    @staticmethod
    def of(domains: Iterable[str], networks: Iterable[IPv4Network]) -> Policy:
        return Policy(tuple(dns.name.from_text(each) for each in domains), tuple(networks))

    def lets_out(self, request: Message, zones: Collection[dns.name.Name]) -> bool:
        """Whether to forward the request; `zones` are those served here.

        Only a plain recursive query is: no update, no transfer, nothing that is signed for us.
        """
        if request.opcode() != dns.opcode.QUERY or len(request.question) != 1 or request.had_tsig or request.edns > 0:
            return False
        (question,) = request.question
        odd = dns.rdatatype.is_metatype(question.rdtype) and question.rdtype != RdataType.ANY
        if odd or question.rdclass != IN or not request.flags & dns.flags.RD:
            return False
        return not self._is_own(question.name, zones)

    def _is_own(self, name: dns.name.Name, zones: Collection[dns.name.Name]) -> bool:
        if any(name.is_subdomain(own) for own in (LOCALHOST, *self.domains, *zones)):
            return True
        addresses = reverse_range(name)
        return addresses is not None and any(addresses.subnet_of(own) for own in self.networks)


def reverse_range(name: dns.name.Name) -> IPv4Network | None:
    """The address range of a name in in-addr.arpa; None for any other name."""
    if name == REVERSE or not name.is_subdomain(REVERSE):
        return None
    octets = [label.decode(errors="replace") for label in reversed(name.relativize(REVERSE).labels)][:4]
    if not all(octet.isascii() and octet.isdigit() and int(octet) < 256 for octet in octets):
        return None
    padded = [*(str(int(octet)) for octet in octets), *["0"] * (4 - len(octets))]
    return IPv4Network(f"{'.'.join(padded)}/{8 * len(octets)}")
