"""Checks that every provider makes before it applies a batch.

They are the same for all providers, so that a record that one would accept and another reject is rejected everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from protokube.errors import Refused
from protokube.providers.dns import BadRecord, Stale
from protokube.records import Change, Key, Record
from protokube.records.batches import Cost, batches, changes_of
from protokube.records.names import TYPES, address_type, inside, make_record

LONGEST_TTL = 2**31 - 1
LONGEST_TEXT = 4096


def check(zone: str, batch: Sequence[Change]) -> None:
    """Raises BadRecord for records that no zone of this name could hold."""
    keys: set[Key] = set()
    after: set[Key] = set()
    for change in batch:
        if change.before is None and change.after is None:
            raise BadRecord("a change from nothing to nothing", saw=change.why)
        if change.before and change.after and change.before.key != change.after.key:
            raise BadRecord("a change from one name or type to another", saw=str(change))
        if change.key in keys:
            raise BadRecord(f"{' '.join(change.key)} is changed twice in one batch", saw=str(change))
        keys.add(change.key)
        for record in (change.before, change.after):
            if record is not None:
                _check_record(zone, record)
        if change.after is not None:
            after.add(change.key)
    _check_aliases(after, after)


def _check_record(zone: str, record: Record) -> None:
    try:
        same = make_record(record.name, record.type, record.values, record.ttl)
    except Refused as error:
        raise BadRecord(f"cannot write {record.name} {record.type}", saw=error.message) from error
    wrong = ""
    if same != record or not record.values:
        wrong = f"not in canonical form: {same.name} {', '.join(same.values) or 'without values'}"
    elif not inside(record.name, zone):
        wrong = f"outside of the zone {zone}"
    elif record.type not in TYPES:
        wrong = f"none of the types {', '.join(TYPES)}"
    elif record.type == "CNAME":
        wrong = _wrong_alias(zone, record)
    elif record.type != "TXT" and any(address_type(value) != record.type for value in record.values):
        wrong = f"an address of the other family: {', '.join(record.values)}"
    elif record.type == "TXT" and (odd := [value for value in record.values if not _is_text(value)]):
        wrong = f"a text that is not UTF-8, or longer than {LONGEST_TEXT} bytes: {odd[0][:40]!r}"
    if not wrong and not 0 <= record.ttl <= LONGEST_TTL:
        wrong = f"a TTL of {record.ttl}"
    if wrong:
        raise BadRecord(f"cannot write {record.name} {record.type}", saw=wrong)


def _wrong_alias(zone: str, record: Record) -> str:
    if len(record.values) > 1:
        return f"a name is an alias of one other only: {', '.join(record.values)}"
    if record.name in record.values:
        return "an alias of itself"
    return "the top of a zone cannot be an alias" if record.name == zone else ""


def _check_aliases(touched: Iterable[Key], after: Collection[Key]) -> None:
    """Raises BadRecord if a name would have another record beside a CNAME (RFC 1034, section 3.6.2)."""
    for name in sorted({name for name, _ in touched}):
        kinds = [kind for kind in TYPES if (name, kind) in after]
        if "CNAME" in kinds and len(kinds) > 1:
            others = " and ".join(kind for kind in kinds if kind != "CNAME")
            raise BadRecord(f"cannot write {name}", saw=f"{others} beside an alias (CNAME)")


def _is_text(value: str) -> bool:
    """Whether it survives encoding and decoding: bytes that are not UTF-8 are kept as lone surrogates."""
    try:
        data = value.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return False
    return len(data) <= LONGEST_TEXT and data.decode("utf-8", "surrogateescape") == value


def carried_out(current: Mapping[Key, Record], batch: Sequence[Change]) -> dict[Key, Record]:
    """The records after the batch.

    Raises Stale if one `before` no longer holds, BadRecord if a name would have another record beside a CNAME.
    """
    result = dict(current)
    for change in batch:
        check_fresh(change, current.get(change.key))
        if change.after is None:
            del result[change.key]
        else:
            result[change.key] = change.after
    _check_aliases((change.key for change in batch), result.keys())
    return result


def check_fresh(change: Change, now: Record | None) -> None:
    """Raises Stale unless the record still equals `before`. The TTL is not compared: DNS prerequisites have none."""
    was = change.before.values if change.before else ()
    seen = now.values if now else ()
    if was != seen:
        raise Stale(
            f"{' '.join(change.key)} is not what the change was planned from",
            saw=", ".join(map(repr, seen)) or "nothing",
            want=", ".join(map(repr, was)) or "nothing",
        )


def together(units: Iterable[Iterable[Change]]) -> Sequence[Sequence[Change]]:
    """One batch, or none: for providers without limits."""
    return [changes] if (changes := changes_of(units)) else []


def packed(
    units: Iterable[Iterable[Change]], cost: Callable[[Change], Cost], limit: Cost
) -> Sequence[Sequence[Change]]:
    """As few batches as the limit allows; a unit above it gets its own batch, to be rejected with a reason."""
    return [changes_of(group) for group in batches(filter(None, map(tuple, units)), cost, limit)]
