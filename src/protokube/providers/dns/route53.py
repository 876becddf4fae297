"""Zones of Amazon's Route 53, public and private ones.

It has no prerequisites, but its batches are atomic, a DELETE must match the existing record exactly and a CREATE fails
if there is one. So a change is a DELETE of what was seen and a CREATE of what is wanted. That is a compare-and-swap, at
the price of an UPSERT, which counts twice. Its errors do not tell reliably whether a record changed meanwhile or is
invalid, so after an error the names are read again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from protokube.errors import Refused
from protokube.providers.dns import BadRecord
from protokube.providers.dns.batch import carried_out, check, packed
from protokube.providers.dns.budget import Budget, TokenBucket
from protokube.providers.dns.route53_values import RecordSet, key_of, record_of, set_of, size, why_foreign
from protokube.records import Change, Key, Record
from protokube.records.batches import Cost
from protokube.records.names import TYPES, normalise
from protokube.records.zones import Zone

if TYPE_CHECKING:
    from protokube.providers.dns.route53_calls import Route53Calls

CALLS_PER_SECOND, CALLS_AT_ONCE = 4.0, 1
"""Route 53 accepts five requests a second from a whole account: these two together are never more."""
VALUES_PER_BATCH, CHARACTERS_PER_BATCH = 1_000, 32_000
VALUES_PER_RECORD, LONGEST_VALUE = 400, 4_000
FEW_NAMES = 10
"""More names than these are read by listing the whole zone, 300 records at a time."""


class Route53Zones:
    """Implements ZoneProvider: the zones of one account, which share its budget."""

    def __init__(
        self, *, endpoint: str | None = None, budget: Budget | None = None, read_seconds: float | None = None
    ) -> None:
        if find_spec("botocore") is None:  # only searched, not imported: see `_calls`
            raise Refused("Route 53 needs botocore, which is not installed", hint="pip install 'protokube[route53]'")
        self.budget = budget or Budget(TokenBucket(CALLS_PER_SECOND, CALLS_AT_ONCE))
        self._endpoint, self._seconds = endpoint, read_seconds

    @cached_property
    def _calls(self) -> Route53Calls:
        """Made when first needed: botocore takes a quarter of a second and 30 MB."""
        from protokube.providers.dns.route53_calls import READ_SECONDS, Route53Calls

        return Route53Calls(self.budget, endpoint=self._endpoint, read_seconds=self._seconds or READ_SECONDS)

    def list_zones(self) -> Sequence[Zone]:
        return sorted(self._calls.zones())

    def open(self, zone: Zone) -> Route53Dns:
        return Route53Dns(zone, self._calls)


class Route53Dns:
    """Implements DnsProvider: one hosted zone."""

    def __init__(self, zone: Zone, calls: Route53Calls) -> None:
        self._hosted, self._calls = zone, calls
        self._zone = normalise(zone.name)
        self._foreign: dict[Key, str] = {}
        """Names and types that we cannot write, as of the last read, with the reason."""

    @property
    def zone(self) -> str:
        return self._zone

    def list_records(self) -> Sequence[Record]:
        found = [each for page in self._calls.record_sets(self._hosted, "list") for each in page]
        self._foreign = _foreign(found)
        return _records(found)

    def read(self, names: Collection[str]) -> Sequence[Record]:
        return _records(self._read({normalise(name) for name in names}))

    def apply(self, batch: Sequence[Change]) -> None:
        check(self._zone, batch)
        if not batch:
            return
        self._check_limits(batch)
        changes = _changes(batch, {})
        refusal = self._calls.change(self._hosted, changes)
        if refusal and (exact := _changes(batch, self._look_closer(batch))) != changes:
            refusal = self._calls.change(self._hosted, exact)
            if refusal:
                self._look_closer(batch)
        if refusal:
            raise BadRecord(f"Route 53 rejects the change of {self._hosted}", saw=refusal)

    def split(self, units: Iterable[Iterable[Change]]) -> Sequence[Sequence[Change]]:
        return packed(units, _cost, (VALUES_PER_BATCH, CHARACTERS_PER_BATCH))

    def _read(self, names: Collection[str]) -> Sequence[RecordSet]:
        if len(names) > FEW_NAMES:
            pages = self._calls.record_sets(self._hosted, "read")
            found = [each for page in pages for each in page if key_of(each)[0] in names]
        else:
            found = self._read_few(names)
        self._foreign = {key: why for key, why in self._foreign.items() if key[0] not in names} | _foreign(found)
        return found

    def _read_few(self, names: Collection[str]) -> list[RecordSet]:
        """A page often holds the next names too: the records of a name and their ownership records take one request."""
        found: dict[str, list[RecordSet]] = {}
        for name in sorted(names, key=lambda name: name.split(".")[::-1]):
            if name not in found:
                found[name] = []
                found |= self._read_from(name, names)
        return [each for name in names for each in found[name]]

    def _read_from(self, first: str, names: Collection[str]) -> Mapping[str, list[RecordSet]]:
        """The record sets of one name, and of other requested names that are complete on the same pages."""
        found: dict[str, list[RecordSet]] = {first: []}
        last = first
        for page in self._calls.record_sets(self._hosted, "read", first=f"{first}."):
            for each in page:
                last = key_of(each)[0]
                found.setdefault(last, []).append(each)
            if last != first:
                break
        else:
            last = ""
        return {name: sets for name, sets in found.items() if name in names and name != last}

    def _look_closer(self, batch: Sequence[Change]) -> Mapping[Key, RecordSet]:
        """The existing record sets, exactly as stored. Raises Stale or BadRecord if they explain the failure."""
        found = self._read({change.key[0] for change in batch})
        self._check_foreign(batch)
        carried_out({record.key: record for record in _records(found)}, batch)
        return {key_of(each): each for each in found if record_of(each)}

    def _check_limits(self, batch: Sequence[Change]) -> None:
        """Raises BadRecord, without a request, for batches that Route 53 would reject."""
        self._check_foreign(batch)
        costs = [_cost(change) for change in batch]
        values, characters = sum(cost[0] for cost in costs), sum(cost[1] for cost in costs)
        if values > VALUES_PER_BATCH or characters > CHARACTERS_PER_BATCH:
            raise BadRecord(
                "the changes do not fit into one request to Route 53",
                saw=f"{values} values of {characters} characters",
                want=f"at most {VALUES_PER_BATCH} of {CHARACTERS_PER_BATCH}, before and after",
            )
        for change in batch:
            wide = set_of(change.after)["ResourceRecords"] if change.after else ()
            if len(wide) > VALUES_PER_RECORD or any(len(each["Value"]) > LONGEST_VALUE for each in wide):
                raise BadRecord(
                    f"cannot write {' '.join(change.key)}",
                    saw=f"{len(wide)} values",
                    want=f"at most {VALUES_PER_RECORD} of at most {LONGEST_VALUE} characters each",
                )

    def _check_foreign(self, batch: Sequence[Change]) -> None:
        for change in batch:
            name, kind = change.key
            clash = TYPES if kind == "CNAME" else (kind, "CNAME")
            for key in ((name, other) for other in clash):
                if change.after is not None and (why := self._foreign.get(key)):
                    raise BadRecord(f"cannot write {name} {kind}", saw=f"{key[1]} there is {why}")


def _records(found: Sequence[RecordSet]) -> Sequence[Record]:
    return tuple(sorted(record for each in found if (record := record_of(each))))


def _foreign(found: Sequence[RecordSet]) -> dict[Key, str]:
    return {key_of(each): why for each in found if key_of(each)[1] in TYPES and (why := why_foreign(each))}


def _changes(batch: Sequence[Change], kept: Mapping[Key, RecordSet]) -> Sequence[Mapping[str, Any]]:
    """Deletions first; `kept` are record sets as Route 53 stores them, where they differ from our form."""

    def each() -> Iterator[Mapping[str, Any]]:
        for change in batch:
            if change.before is not None:
                yield {"Action": "DELETE", "ResourceRecordSet": kept.get(change.key) or set_of(change.before)}
        for change in batch:
            if change.after is not None:
                yield {"Action": "CREATE", "ResourceRecordSet": set_of(change.after)}

    return list(each())


def _cost(change: Change) -> Cost:
    sizes = [size(set_of(record)) for record in (change.before, change.after) if record]
    return sum(values for values, _ in sizes), sum(characters for _, characters in sizes)
