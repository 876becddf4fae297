"""Convert our records to the format of Route 53, and back.

It stores a TXT value in quotes, split into strings of up to 255 bytes, and writes anything but plain ASCII as an octal
escape; in names too, so that a wildcard comes back as `\\052`. A record set with a routing policy (weight, location,
health), or an alias of an AWS resource, is never ours: it has no values, or only some of them.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from protokube.records import Key, Record
from protokube.records.names import TYPES

LONGEST_STRING = 255
ESCAPED = re.compile(r"\\([0-7]{3})")
STRINGS = re.compile(r'"((?:[^"\\]|\\.)*)"|([^\s"]+)', re.DOTALL)
ESCAPE = re.compile(rb"\\([0-7]{3}|.)", re.DOTALL)
PLAIN_TEXT = re.compile(r"[ !#-\[\]-~]*")
"""What is written as it is: printable ASCII without quotes and backslashes."""
PLAIN_IN_NAMES = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_*")

RecordSet = Mapping[str, Any]
"""A ResourceRecordSet, as the API has it."""


def key_of(found: RecordSet) -> Key:
    return read_name(found["Name"]), found["Type"]


def why_foreign(found: RecordSet) -> str:
    """Why a record set cannot be one of ours; empty if it can."""
    if "AliasTarget" in found:
        return f"an alias of {found['AliasTarget'].get('DNSName', 'something of Amazon')}"
    if "SetIdentifier" in found:
        return f"a record set with a routing policy, {found['SetIdentifier']!r}"
    if "TrafficPolicyInstanceId" in found:
        return "made by a traffic policy"
    return "" if "TTL" in found and found.get("ResourceRecords") else "without values"


def record_of(found: RecordSet) -> Record | None:
    """None for a type that we do not handle, and for a record set that is not a simple one."""
    name, kind = key_of(found)
    if kind not in TYPES or why_foreign(found):
        return None
    values = {_read_value(kind, each["Value"]) for each in found["ResourceRecords"]}
    return Record(name=name, type=kind, values=tuple(sorted(values)), ttl=int(found["TTL"]))


def set_of(record: Record) -> RecordSet:
    return {
        "Name": f"{record.name}.",
        "Type": record.type,
        "TTL": record.ttl,
        "ResourceRecords": [{"Value": write_value(record.type, value)} for value in record.values],
    }


def read_name(text: str) -> str:
    """Unescape only characters that are plain in a name: an escaped dot belongs to its label."""

    def plain(found: re.Match[str]) -> str:
        character = chr(int(found[1], 8))
        return character if character in PLAIN_IN_NAMES else found[0]

    return ESCAPED.sub(plain, text).removesuffix(".").lower()


def write_value(kind: str, value: str) -> str:
    match kind:
        case "TXT":
            return " ".join(f'"{part}"' for part in _strings(value))
        case "CNAME":
            return f"{value}."
        case _:
            return value


def _read_value(kind: str, text: str) -> str:
    match kind:
        case "TXT":
            return _read_text(text)
        case "CNAME":
            return read_name(text)
        case _:
            try:
                return str(ipaddress.ip_address(text.strip()))
            except ValueError:  # not an address: not a value that we would write
                return text


def _strings(text: str) -> Iterator[str]:
    if PLAIN_TEXT.fullmatch(text):  # our own marks: byte by byte, a thousand of them would take longer than their write
        yield from (text[start : start + LONGEST_STRING] for start in range(0, max(1, len(text)), LONGEST_STRING))
        return
    data = text.encode("utf-8", "surrogateescape")
    for start in range(0, max(1, len(data)), LONGEST_STRING):
        yield "".join(map(_escaped, data[start : start + LONGEST_STRING]))


def _escaped(byte: int) -> str:
    if byte in b'"\\':
        return f"\\{chr(byte)}"
    return chr(byte) if 32 <= byte < 127 else f"\\{byte:03o}"


def _read_text(text: str) -> str:
    parts = [quoted or bare for quoted, bare in STRINGS.findall(text)]
    data = ESCAPE.sub(_unescaped, "".join(parts).encode("utf-8", "surrogateescape"))
    return data.decode("utf-8", "surrogateescape")


def _unescaped(found: re.Match[bytes]) -> bytes:
    return bytes([int(found[1], 8) & 0xFF]) if len(found[1]) == 3 else found[1]


def size(found: RecordSet) -> tuple[int, int]:
    """The number of values and of their characters: Route 53 limits both in a batch."""
    values: Sequence[Mapping[str, str]] = found["ResourceRecords"]
    return len(values), sum(len(each["Value"]) for each in values)
