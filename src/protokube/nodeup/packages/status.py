"""Read dpkg's database: which packages are installed, in which version and state. Pure.

After a killed dpkg the database is two things: the file `status`, and a journal of later entries in `updates`. An entry
there replaces the one of its package, so both are read, in that order. Running dpkg-query says the same, but takes ten
times as long as reading the file, on each run that changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

INSTALLED = "installed"
ABSENT = frozenset({"not-installed", "config-files"})
TRIGGERS = frozenset({"triggers-awaited", "triggers-pending"})
"""Unpacked and configured; what is left to do belongs to other packages."""
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "armv7l": "armhf", "ppc64le": "ppc64el", "s390x": "s390x"}
"""As dpkg calls them, by the names of uname."""
PACKAGE = re.compile(r"^Package: *(\S+)", re.MULTILINE)
FIELD = re.compile(r"^(Status|Version|Architecture): *(.*?) *$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """What dpkg knows of one package."""

    name: str
    version: str = ""
    state: str = "not-installed"
    """`installed`, `unpacked`, `half-configured`, `half-installed`, …"""
    held: bool = False
    damaged: bool = False
    """It has to be installed again: dpkg was killed while it unpacked it."""

    @property
    def interrupted(self) -> bool:
        """Whether dpkg was killed, or failed, in the middle of it."""
        return self.damaged or self.state not in ABSENT | TRIGGERS | {INSTALLED}


def read(texts: Iterable[str], processor: str) -> dict[str, Package]:
    """Every package, by name; a later text replaces entries of an earlier one. Other architectures are left out."""
    ours = ("", "all", ARCHITECTURES.get(processor, processor))
    found: dict[str, Package] = {}
    for text in texts:
        for name, fields in stanzas(text):
            if fields.get("Architecture", "") in ours:
                found[name] = package(name, fields)
    return found


def stanzas(text: str) -> Iterator[tuple[str, dict[str, str]]]:
    for stanza in text.split("\n\n"):
        if named := PACKAGE.search(stanza):
            yield named[1], dict(FIELD.findall(stanza))


def package(name: str, fields: dict[str, str]) -> Package:
    selection, damage, state = (*fields.get("Status", "").split(), "", "", "")[:3]
    return Package(
        name=name,
        version=fields.get("Version", ""),
        state=state or "not-installed",
        held=selection == "hold",
        damaged=damage == "reinstreq",
    )


def interrupted(packages: Collection[Package]) -> tuple[str, ...]:
    """Names of packages that were left in the middle."""
    return tuple(sorted(each.name for each in packages if each.interrupted))


def damaged(packages: Collection[Package]) -> tuple[str, ...]:
    """Names of packages that have to be installed again."""
    return tuple(sorted(each.name for each in packages if each.damaged))
