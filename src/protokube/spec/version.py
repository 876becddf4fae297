"""Kubernetes versions: the supported ones, and how versions compare."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

PATTERN = re.compile(r"v?([0-9]{1,9})\.([0-9]{1,9})(?:\.([0-9]{1,9}))?([-+][0-9A-Za-z.+-]+)?")


class Version(NamedTuple):
    """A version of Kubernetes or etcd; compares by its numbers."""

    major: int
    minor: int
    patch: int = 0
    suffix: str = ""

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}{self.suffix}"

    @property
    def series(self) -> Version:
        """Its minor version, which flags and files depend on."""
        return Version(self.major, self.minor)

    @property
    def short(self) -> str:
        return f"{self.major}.{self.minor}"


@lru_cache(maxsize=1024)  # called for the `since` of every setting of every group
def parse(text: str) -> Version | None:
    """Parse `v1.34.0`, `1.34.0` or `1.34`; None for anything else."""
    found = PATTERN.fullmatch(text.strip())
    if not found:
        return None
    major, minor, patch, suffix = found.groups()
    return Version(int(major), int(minor), int(patch or 0), suffix or "")


OLDEST = Version(1, 20)
NEWEST_PATCH: dict[str, int] = {
    "1.20": 15, "1.21": 14, "1.22": 17, "1.23": 17, "1.24": 17, "1.25": 16, "1.26": 15, "1.27": 16, "1.28": 15,
    "1.29": 15, "1.30": 14, "1.31": 14, "1.32": 13, "1.33": 13, "1.34": 10, "1.35": 7, "1.36": 4,
    "1.37": 0,
}  # fmt: skip
"""The newest patch release of each minor version when this was written."""
NEWEST = Version(1, 37)
DEFAULT = Version(1, 36, NEWEST_PATCH["1.36"])
"""The version that all end-to-end tests use."""


def normal(text: str) -> str:
    """One spelling per version: no leading `v`, and `1.34` means the newest 1.34 we know."""
    version = parse(text)
    if version is None:
        return text
    if re.fullmatch(r"v?[0-9]+\.[0-9]+", text.strip()):
        version = version._replace(patch=NEWEST_PATCH.get(version.short, 0))
    return str(version)
