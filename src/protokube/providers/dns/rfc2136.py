"""A zone on any server with dynamic updates: BIND, Knot, PowerDNS, or that of the local cloud.

An update has prerequisites (RFC 2136, section 2.4), and the server carries out all of it or nothing: that is a
compare-and-swap. Reading is the harder part: a reply does not tell a record from a wildcard that covers its name. So
where a wildcard answers, an update without changes checks by its prerequisite whether the name itself exists.
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
    from protokube.providers.dns.wire import Answer, ZoneServer

READ_SECONDS = 2.0
WRITE_TIMES, LIST_TIMES = 2.5, 5.0
"""How many times longer than a read a write or a list may take."""
BYTES_PER_UPDATE, LONGEST_STRING = 32_000, 255
"""Half of what a message can hold: the prerequisites for a CNAME need room in the same message."""


class Rfc2136Dns:
    """Implements DnsProvider. `server` is an address: resolving a name could need the zone that it serves."""

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
        wanted = sorted({normalise(name) for name in names})
        return tuple(sorted(record for name in wanted for record in self._read_one(name, deadline)))

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
    def _server(self) -> ZoneServer:
        from protokube.providers.dns.wire import ZoneServer

        return ZoneServer(self._address, self._port, self._zone, self._key)

    def _deadline(self, times: float = 1.0) -> float:
        return time.monotonic() + times * self._seconds

    def _look_closer(self, batch: Sequence[Change]) -> None:
        """Raise Stale or BadRecord for what differs from the plan; return if nothing does: then a retry makes sense."""
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
        """A server answers every query for an alias with its CNAME, so CNAME is not queried itself."""
        found: dict[Key, Record] = {}
        for kind in TYPES:
            if kind != "CNAME":
                answer = self._answer(name, kind, deadline)
                found |= {record.key: record for record in answer.records}
                if answer.aliased:
                    break
        return list(found.values())

    def _is_covered(self, record: Record, deadline: float) -> bool:
        """Whether a wildcard covers this name: then it also answers for a random sibling."""
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
    """An upper bound of the bytes of a change: without name compression, and with a header for each value."""
    values = [value for record in (change.before, change.after) if record for value in record.values]
    head = len(change.key[0]) + 12
    texts = sum(len(value.encode("utf-8", "surrogateescape")) + len(value) // LONGEST_STRING + 2 for value in values)
    prerequisites = 24 if change.key[1] == "CNAME" else 3
    return (head * (len(values) + 1) + 12 * prerequisites + texts,)
