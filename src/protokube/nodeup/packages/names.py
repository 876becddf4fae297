"""Packages as a user names them, `containerd` or `containerd=1.6.20*`. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

from protokube.errors import Refused

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9+._-]*")
VERSION = re.compile(r"[A-Za-z0-9.+:~*-]+")


@dataclass(frozen=True, slots=True)
class Asked:
    """One package, and its version if that was named."""

    name: str
    version: str = ""
    """Exact, or a pattern with `*`; empty: any."""

    def __str__(self) -> str:
        return f"{self.name}={self.version}" if self.version else self.name

    def accepts(self, version: str) -> bool:
        return not self.version or version == self.version or fnmatchcase(version, self.version.replace("[", "[[]"))


def asked(names: Iterable[str]) -> tuple[Asked, ...]:
    """Sorted, each package once. Refused if a package manager would take a word for something else."""
    found: dict[str, Asked] = {}
    for word in names:
        name, separator, version = word.partition("=")
        # apt-get takes `name-` as an order to remove it, and a leading dash as an option.
        if not NAME.fullmatch(name) or name.endswith("-") or (separator and not VERSION.fullmatch(version)):
            raise Refused(f"{word!r} is no name of a package", want="a name, or name=version")
        if found.setdefault(name, Asked(name, version)).version != version:
            raise Refused(f"{name} is asked for in two versions", saw=f"{found[name]} and {word}", want="one of them")
    return tuple(found[name] for name in sorted(found))
