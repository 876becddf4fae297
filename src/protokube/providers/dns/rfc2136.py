"""A zone on any server that takes dynamic updates: BIND, Knot, PowerDNS, or the one of the local cloud.

An update names what must be there before (RFC 2136, section 2.4), and the server carries it out or not, as a whole:
that is a compare-and-swap. Reading is the harder part: a plain answer does not tell a record from a wildcard that
covers its name, so where a wildcard answers, an update that changes nothing asks for the name itself.
"""

from __future__ import annotations

import ipaddress
import secrets
import time
from collections.abc import Collection, Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from protokube.errors import Refused
from protokube.providers.dns import BadRecord, Stale
from protokube.providers.dns.batch import carried_out, check, packed
from protokube.providers.dns.keys import TsigKey
from protokube.records import Change, Key, Record
from protokube.records.batches import Cost
from protokube.records.names import TYPES, normalise

if TYPE_CHECKING:
    from protokube.providers.dns.wire import Answer, Server

READ_SECONDS = 2.0
WRITE_TIMES, LIST_TIMES = 2.5, 5.0
"""How much longer than a read the others may take."""
BYTES_PER_UPDATE, LONGEST_STRING = 32_000, 255
"""Half of what a message can hold: what is in the way of an alias is asked for in the same one."""


class Rfc2136Dns:
    """Implements DnsProvider. `server` is an address: to find it by name could need the very zone it serves."""

    def __init__(
        self, zone: str, server: str, key: TsigKey, *, port: int = 53, read_seconds: float = READ_SECONDS
    ) -> None:
        self._zone, self._key, self._port, self._seconds = normalise(zone), key, port, read_seconds
        try:
            self._address = str(ipaddress.ip_address(server))
        except ValueError as error:
            raise Refused(f"{server!r} is not the address of a DNS server", want="an IPv4 or IPv6 address") from error

    @property
    def zone(self) -> str:
        return self._zone

    def read(self, names: Collection[str]) -> Sequence[Record]:
        deadline = self._deadline()
        asked = sorted({normalise(name) for name in names})
        return tuple(sorted(record for name in asked for record in self._read_one(name, deadline)))

    def list_records(self) -> Sequence[Record]:
        return self._server.transfer(self._deadline(LIST_TIMES))

    def apply(self, batch: Sequence[Change]) -> None:
        check(self._zone, batch)
        if not batch:
            return
        try:
            self._server.update(batch, self._deadline(WRITE_TIMES))
        except Stale:
            self._look_closer(batch)
            self._server.update(batch, self._deadline(WRITE_TIMES), as_kept=True)

    def split(self, units: Iterable[Iterable[Change]]) -> Sequence[Sequence[Change]]:
        return packed(units, _cost, (BYTES_PER_UPDATE,))

    @cached_property
    def _server(self) -> Server:
        from protokube.providers.dns.wire import Server

        return Server(self._address, self._port, self._zone, self._key)

    def _deadline(self, times: float = 1.0) -> float:
        return time.monotonic() + times * self._seconds

    def _look_closer(self, batch: Sequence[Change]) -> None:
        """Say what is not as it was planned from; if all of it looks the same, it is worth another try."""
        deadline = self._deadline(LIST_TIMES)
        names = sorted({change.key[0] for change in batch})
        found = {record.key: record for name in names for record in self._read_one(name, deadline)}
        carried_out(found, batch)
        for change in batch:
            if change.after is not None and change.after.type == "CNAME" and change.before is None:
                self._check_neighbours(change.after.name, deadline)

    def _check_neighbours(self, name: str, deadline: float) -> None:
        from protokube.providers.dns.wire import NEIGHBOURS

        there = [kind for kind in NEIGHBOURS if self._answer(name, kind, deadline).of_type(kind)]
        if there and self._server.exists(name, deadline):
            raise BadRecord(f"cannot write {name}", saw=f"{' and '.join(there)} where an alias (CNAME) is to be")

    def _read_one(self, name: str, deadline: float) -> Sequence[Record]:
        found = self._answers(name, deadline)
        if any(self._is_covered(record, deadline) for record in found) and not self._server.exists(name, deadline):
            return ()
        return found

    def _answers(self, name: str, deadline: float) -> Sequence[Record]:
        """An alias is the answer to every question, so nobody has to ask for it."""
        found: dict[Key, Record] = {}
        for kind in TYPES:
            if kind != "CNAME":
                answer = self._answer(name, kind, deadline)
                found |= {record.key: record for record in answer.records}
                if answer.aliased:
                    break
        return list(found.values())

    def _is_covered(self, record: Record, deadline: float) -> bool:
        """Whether a wildcard would answer for this name: then it does for a neighbour that nobody ever made."""
        neighbour = f"{secrets.token_hex(8)}.{record.name.partition('.')[2]}"
        return record.name != self._zone and bool(self._answer(neighbour, record.type, deadline).rrsets)

    def _answer(self, name: str, kind: str, deadline: float) -> Answer:
        answer = self._server.ask(name, kind, deadline)
        if not answer.authoritative:
            raise Refused(
                f"{self._server} is not the authority for {name}",
                hint=f"give the address of the primary server of {self._zone}, not of a resolver",
            )
        return answer


def _cost(change: Change) -> Cost:
    """More bytes than the change can take: no name is counted as shortened, and each value has a head of its own."""
    values = [value for record in (change.before, change.after) if record for value in record.values]
    head = len(change.key[0]) + 12
    texts = sum(len(value.encode("utf-8", "surrogateescape")) + len(value) // LONGEST_STRING + 2 for value in values)
    asked = 24 if change.key[1] == "CNAME" else 3
    return (head * (len(values) + 1) + 12 * asked + texts,)
