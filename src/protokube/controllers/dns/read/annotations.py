"""Parse names from annotations and addresses from objects, and normalise them.

This is untrusted text: an entry that cannot be used is left out and reported, and the rest counts. Reports are short,
whatever the text.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from sys import intern

from protokube.controllers.dns import View
from protokube.controllers.dns.read.objects import Annotations
from protokube.errors import Refused
from protokube.records.names import LONGEST_NAME, normalise, normalise_address, problem
from protokube.records.owners import LABEL, mark_name

MOST_NAMES = 1000
"""Names of one object; an annotation has room for ten times as many, and each one becomes records."""
MOST_WRONGS, LONGEST_SHOWN = 10, 80
RECENT, LONGEST_ADDRESS = 1024, 64
"""Cache size and longest cached address: pods with the same name follow one another, so parsing is cached."""
VIEWS: tuple[View, ...] = ("internal", "external")


@dataclass(slots=True)
class Wrongs:
    """Collects what is wrong with an object, without duplicates; `all` cuts the list to a readable length."""

    found: dict[str, None] = field(default_factory=dict)

    def add(self, why: str) -> None:
        self.found.setdefault(why)

    def all(self) -> tuple[str, ...]:
        found, more = list(self.found)[:MOST_WRONGS], len(self.found) - MOST_WRONGS
        return (*found, f"and {more} more like these") if more > 0 else tuple(found)


def names_by_view(annotations: Annotations | None, wrongs: Wrongs) -> dict[View, tuple[str, ...]]:
    """The names that the annotations ask for, by view; a view without names is left out."""
    if annotations is None:
        return {}
    texts = {view: getattr(annotations, view) or "" for view in VIEWS}
    found = {view: names_of(text.split(","), wrongs) for view, text in texts.items() if text}
    return {view: names for view, names in found.items() if names}


def names_of(texts: Iterable[str], wrongs: Wrongs) -> tuple[str, ...]:
    """The names that can be used, each once, in the order in which they were written."""
    names = list(dict.fromkeys(_usable(texts, wrongs)))
    if len(names) > MOST_NAMES:
        wrongs.add(f"{len(names)} names, only the first {MOST_NAMES} count")
    return tuple(names[:MOST_NAMES])


def _usable(texts: Iterable[str], wrongs: Wrongs) -> Iterator[str]:
    for text in texts:
        if not (bare := text.strip()):
            continue
        name, why = _name(bare) if len(bare) <= LONGEST_NAME + 1 else ("", problem(bare))
        if why:
            wrongs.add(f"{shown(bare)} is not a name we can publish: {shorten(why)}")
        else:
            yield name


@lru_cache(RECENT)
def _name(text: str) -> tuple[str, str]:
    """The normalised name, or why it cannot be published."""
    if why := problem(text):
        return "", why
    name = normalise(text)
    if any(label.startswith(LABEL) for label in name.split(".")):
        return "", f"labels that begin with {LABEL} are kept for our own marks"
    if why := problem(mark_name(name)):
        return "", f"its mark would not fit: {why}"
    return intern(name), ""


def addresses_of(texts: Iterable[str | None], wrongs: Wrongs) -> tuple[str, ...]:
    """The addresses that others can reach, each once, sorted."""
    found: set[str] = set()
    for text in dict.fromkeys(texts):
        if not text:
            continue
        address, why = _address(text[:LONGEST_ADDRESS])
        if why:
            wrongs.add(f"the address {shown(text)} is left out: {why}")
        else:
            found.add(address)
    return tuple(sorted(found))


def is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


@lru_cache(RECENT)
def _address(text: str) -> tuple[str, str]:
    """The normalised address, or why other machines cannot reach it."""
    try:
        normal = normalise_address(text)
    except Refused as refused:
        return "", f"it is no address; {refused.want} is wanted"
    if ":" not in normal and not normal.startswith(("127.", "169.254.", "255.")):
        return intern(normal), ""
    address = ipaddress.ip_address(normal)
    if address.is_loopback:
        return "", "it is a loopback address"
    if address.is_link_local:
        return "", "it is a link-local address"
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped:
        return "", "it is an IPv4 address written as IPv6"
    return intern(normal), "it is the broadcast address" if normal == "255.255.255.255" else ""


def shown(text: str) -> str:
    """Untrusted text, shortened and without control characters."""
    return ascii(shorten(text))


def shorten(text: str) -> str:
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}..."
