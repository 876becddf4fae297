"""Our records in a hosts file: one block between two marker lines; not a byte outside of it changes.

A hosts file has neither TTL nor TXT; comments hold both, so that a record can be read back completely. The block of the
original (kops) is read and replaced as if it were ours. A begin marker without its end is tolerated: after it, only
lines in our own format count as ours, so that a truncated file loses no line of the user.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator

from protokube.errors import Refused
from protokube.records import Key, Record
from protokube.records.names import address_type, make_record

BEGIN = "# Begin host entries managed by protokube - do not edit"
END = "# End host entries managed by protokube"
BEGINS = frozenset({BEGIN, "# Begin host entries managed by kops - do not edit"})
ENDS = frozenset({END, "# End host entries managed by kops"})

OUR_ADDRESS = re.compile(r"(\S+)\t(\S+)\t# ttl ([0-9]{1,10})")
OUR_TEXT = re.compile(r'# TXT (\S+) ttl ([0-9]{1,10}) (".*")')
TTL_OF_THE_ORIGINAL = 60


def parse_hosts(text: str) -> tuple[Record, ...]:
    """The records in our blocks, sorted; lines that cannot be parsed are ignored."""
    values: dict[Key, set[str]] = {}
    ttls: dict[Key, int] = {}
    for line, ours in _lines(text):
        for record in _records_of(line.strip()) if ours else ():
            values.setdefault(record.key, set()).update(record.values)
            ttls[record.key] = min(record.ttl, ttls.get(record.key, record.ttl))
    return tuple(sorted(make_record(*key, found, ttls[key]) for key, found in values.items()))


def render_hosts(text: str, records: Collection[Record]) -> str:
    """The text with exactly these records in one block, at the place of the first block or else at the end."""
    block = [BEGIN, *sorted(_entries(records)), END] if records else []
    kept: list[str] = []
    place: int | None = None
    for line, ours in _lines(text):
        if not ours:
            kept.append(line)
        elif place is None:
            place = len(kept)
    if place is None:
        place = len(kept)
    if block and place == len(kept) and kept and not kept[-1].endswith("\n"):
        kept[-1] += "\n"
    kept[place:place] = [f"{line}\n" for line in block]
    return "".join(kept)


def _lines(text: str) -> Iterator[tuple[str, bool]]:
    """Every line with its line ending, and whether it is ours."""
    lines = re.findall(r"[^\n]*\n|[^\n]+", text)
    begun: list[str] = []
    for line in lines:
        bare = line.strip()
        if bare in BEGINS:
            yield from _torn(begun)
            begun = [line]
        elif bare in ENDS:
            yield from ((inside, True) for inside in (*begun, line))
            begun = []
        elif begun:
            begun.append(line)
        else:
            yield line, False
    yield from _torn(begun)


def _torn(begun: list[str]) -> Iterator[tuple[str, bool]]:
    """A block whose end marker is missing: only lines in our own format are ours."""
    for line in begun:
        bare = line.strip()
        yield line, bare in BEGINS or bool(OUR_ADDRESS.fullmatch(bare) or OUR_TEXT.fullmatch(bare))


def _entries(records: Collection[Record]) -> Iterator[str]:
    for record in records:
        for value in record.values:
            if record.type == "TXT":
                yield f"# TXT {record.name} ttl {record.ttl} {json.dumps(value)}"
            else:
                yield f"{value}\t{record.name}\t# ttl {record.ttl}"


def _records_of(line: str) -> Iterator[Record]:
    """The records in one line of a block."""
    if found := OUR_TEXT.fullmatch(line):
        try:
            yield make_record(found[1], "TXT", [json.loads(found[3])], int(found[2]))
        except (ValueError, Refused):
            return
    entry, _, comment = line.partition("#")
    address, *names = entry.split() or [""]
    ttl = found[1] if (found := re.fullmatch(r"\s*ttl ([0-9]{1,10})", comment)) else TTL_OF_THE_ORIGINAL
    for name in names:
        try:
            yield make_record(name, address_type(address), [address], int(ttl))
        except Refused:
            continue
