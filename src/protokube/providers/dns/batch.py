"""What every provider asks of a batch before it carries it out.

One check for all, so that a record which one provider would keep and another turn away is turned away everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from protokube.errors import Refused
from protokube.providers.dns import BadRecord, Stale
from protokube.records import Change, Key, Record
from protokube.records.names import TYPES, address_type, inside, make_record

LONGEST_TTL = 2**31 - 1
LONGEST_TEXT = 4096


def check(zone: str, batch: Sequence[Change]) -> None:
    """Raises BadRecord for what no zone of this name could hold."""
    keys: set[Key] = set()
    for change in batch:
        if change.before is None and change.after is None:
            raise BadRecord("a change from nothing to nothing", saw=change.why)
        if change.before and change.after and change.before.key != change.after.key:
            raise BadRecord("a change from one name or type to another", saw=str(change))
        if change.key in keys:
            raise BadRecord(f"{' '.join(change.key)} is changed twice in one batch", saw=str(change))
        keys.add(change.key)
        for told in (change.before, change.after):
            if told is not None:
                _check_record(zone, told)


def _check_record(zone: str, record: Record) -> None:
    try:
        same = make_record(record.name, record.type, record.values, record.ttl)
    except Refused as error:
        raise BadRecord(f"cannot write {record.name} {record.type}", saw=error.message) from error
    wrong = ""
    if same != record or not record.values:
        wrong = f"not in its one form: {same.name} {', '.join(same.values) or 'without values'}"
    elif not inside(record.name, zone):
        wrong = f"outside of the zone {zone}"
    elif record.type not in TYPES:
        wrong = f"none of the types {', '.join(TYPES)}"
    elif record.type != "TXT" and any(address_type(value) != record.type for value in record.values):
        wrong = f"an address of the other family: {', '.join(record.values)}"
    elif record.type == "TXT" and (odd := [value for value in record.values if not _is_text(value)]):
        wrong = f"a text that is not UTF-8, or longer than {LONGEST_TEXT} bytes: {odd[0][:40]!r}"
    elif not 0 <= record.ttl <= LONGEST_TTL:
        wrong = f"a TTL of {record.ttl}"
    if wrong:
        raise BadRecord(f"cannot write {record.name} {record.type}", saw=wrong)


def _is_text(value: str) -> bool:
    """Whether it comes back as it was: bytes that are no text are carried as lone surrogates."""
    try:
        data = value.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return False
    return len(data) <= LONGEST_TEXT and data.decode("utf-8", "surrogateescape") == value


def carried_out(current: Mapping[Key, Record], batch: Sequence[Change]) -> dict[Key, Record]:
    """The records after the batch. Raises Stale, and changes nothing, if one `before` no longer holds."""
    result = dict(current)
    for change in batch:
        check_fresh(change, current.get(change.key))
        if change.after is None:
            del result[change.key]
        else:
            result[change.key] = change.after
    return result


def check_fresh(change: Change, now: Record | None) -> None:
    """Raises Stale unless the record is what the change was planned from. The TTL is not compared: DNS cannot."""
    was = change.before.values if change.before else ()
    seen = now.values if now else ()
    if was != seen:
        raise Stale(
            f"{' '.join(change.key)} is not what the change was planned from",
            saw=", ".join(map(repr, seen)) or "nothing",
            want=", ".join(map(repr, was)) or "nothing",
        )
