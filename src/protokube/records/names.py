"""Normalise names and addresses, so that what we wrote and what we read back compare equal.

DNS ignores case and a final dot, and one IPv6 address can be written in many ways; our records use one form.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable

from protokube.errors import Refused
from protokube.records import Record

LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?")
LONGEST_LABEL, LONGEST_NAME = 63, 253
TYPES = ("A", "AAAA", "CNAME", "TXT")
OCTET = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
MACHINE = re.compile(rf"(?:[1-9][0-9]?|1[0-9]{{2}}|2[01][0-9]|22[0-3])(?:\.{OCTET}){{3}}")
"""An IPv4 address of one machine in its normal form: a list of nodes has thousands, and a full parse is slow."""


def normalise(name: str) -> str:
    """The name in lower case and without its final dot. Raises Refused if it is not a valid DNS name."""
    if wrong := problem(name):
        raise Refused(
            f"{name!r} is not a DNS name",
            saw=wrong,
            want="labels of letters, digits, - and _, each at most 63 long, joined by dots",
        )
    return _folded(name)


def problem(name: str) -> str:
    """What is wrong with a name; empty if nothing. A star is allowed as the first label: it is a wildcard."""
    if not name.isascii():
        return "letters beyond ASCII; write the name in its xn-- form"
    folded = _folded(name)
    if len(folded) > LONGEST_NAME:
        return f"{len(folded)} characters; a name has at most {LONGEST_NAME}"
    labels = folded.split(".")
    if labels[0] == "*" and len(labels) > 1:
        labels = labels[1:]
    for label in labels:
        if not label:
            return "an empty label"
        if len(label) > LONGEST_LABEL:
            return f"a label of {len(label)} characters; a label has at most {LONGEST_LABEL}"
        if not LABEL.fullmatch(label):
            return f"the label {label!r}"
    return ""


def inside(name: str, zone: str) -> bool:
    """Whether a name belongs to a zone; both normalised."""
    return name == zone or name.endswith("." + zone)


def normalise_address(text: str) -> str:
    """The normalised address. Raises Refused for one that no single machine can have."""
    if MACHINE.fullmatch(text):
        return text
    try:
        address = ipaddress.ip_address(text)
    except ValueError as error:
        raise Refused(f"{text!r} is not an address", want="an IPv4 or IPv6 address") from error
    if address.is_unspecified or address.is_multicast or getattr(address, "scope_id", None):
        raise Refused(f"{text!r} is not an address of one machine", want="an address that others can reach")
    return str(address)


def address_type(address: str) -> str:
    """A for an IPv4 address, AAAA for an IPv6 one."""
    return "AAAA" if ":" in address else "A"


def make_record(name: str, type: str, values: Iterable[str], ttl: int) -> Record:  # noqa: A002
    """A normalised record: values sorted, without duplicates."""
    match type:
        case "TXT":
            normalised = set(values)
        case "CNAME":
            normalised = {normalise(value) for value in values}
        case _:
            normalised = {normalise_address(value) for value in values}
    return Record(name=normalise(name), type=type, values=tuple(sorted(normalised)), ttl=ttl)


def _folded(name: str) -> str:
    return name.removesuffix(".").lower()
