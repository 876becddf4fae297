"""The binaries of etcd, and which versions must not be used."""

from __future__ import annotations

import re

from protokube.binaries.product import NUMBERS, Product

LOSES_DATA = re.compile(r"v?3\.5\.[012]\b(?!\.)")
OLDEST_TO_GET = (3, 5)
"""Older versions are not published as Go modules and have no etcdutl; Debian 12 packages 3.4."""


def why_not(version: str) -> str:
    """Why this version must not be used; empty if it may be."""
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
