"""etcd's own programs, and which of its versions may be used."""

from __future__ import annotations

import re

from protokube.binaries.product import NUMBERS, Product

LOSES_DATA = re.compile(r"v?3\.5\.[012]\b(?!\.)")
OLDEST_TO_GET = (3, 5)
"""Nobody publishes older ones as modules, or with etcdutl; Debian 12 has 3.4 as a package."""


def why_not(version: str) -> str:
    """Why this version is not to be used, if so."""
    return "which loses data when it is killed" if LOSES_DATA.match(version) else ""


ETCD = Product(
    name="etcd",
    key="etcd",
    programs=("etcd", "etcdctl", "etcdutl"),
    needed=("etcd", "etcdctl"),
    chosen="PROTOKUBE_ETCD_BIN",
    example="3.6.8",
    ask_version={"etcdctl": ("version",), "etcdutl": ("version",)},
    answer=re.compile(rf"version: v?{NUMBERS}", re.IGNORECASE),
    why_not=why_not,
)
