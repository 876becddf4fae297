"""The identity file of a volume: its cluster, its member, and the machine that held it last.

Tags only nominate a volume; the identity file is authoritative. It is a JSON file in the root of the volume's file
system.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

FILE = "protokube.json"
"""In the root of the volume."""
VERSION = 2
"""Version of the file format. Version 1 had no `version` field; its other fields are the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Which member's data a volume holds: one member of one etcd cluster of one Kubernetes cluster."""

    cluster: str
    etcd_cluster: str
    member: str
    volume: str
    generation: str
    epoch: int
    """Raised with every mount. If it is lower on the disk than at the provider, the disk is an older copy of itself."""
    holder: str

    def taken_over_by(self, holder: str, seen: int = 0) -> Identity:
        """The identity to write when `holder` mounts the volume; `seen` is the highest epoch recorded elsewhere."""
        return replace(self, holder=holder, epoch=max(self.epoch, seen) + 1)


@dataclass(frozen=True, slots=True)
class Unreadable:
    """An identity file exists but cannot be read: its content is not guessed, and the volume is not blank."""

    why: str
    disk_error: str = ""
    """The I/O error of the disk; "" if the file could be read but not decoded."""


def encode(identity: Identity) -> bytes:
    document = {**asdict(identity), "version": VERSION}
    return (json.dumps(document, indent=2, sort_keys=True) + "\n").encode()


def without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """`object_pairs_hook` that refuses a JSON object with a duplicate key: neither of the two values can be trusted."""
    document = dict(pairs)
    if len(document) != len(pairs):
        raise ValueError("duplicate field")
    return document


def decode(data: bytes) -> Identity | Unreadable:
    """The identity, or why it cannot be read. Truncated files, wrong types and missing fields are never completed."""
    try:
        document: Any = json.loads(data, object_pairs_hook=without_duplicates)
    except (ValueError, RecursionError) as error:
        return Unreadable(f"not JSON: {error}")
    if isinstance(document, dict) and (wrong_version := take_version(document, VERSION)):
        return Unreadable(wrong_version)
    wanted = {each.name: int if each.name == "epoch" else str for each in fields(Identity)}
    if not isinstance(document, dict) or set(document) != set(wanted):
        return Unreadable(f"does not have exactly the fields {', '.join(sorted(wanted))}")
    wrong = [name for name, kind in wanted.items() if type(document[name]) is not kind]
    if wrong or document["epoch"] < 0:
        return Unreadable(f"invalid value of {', '.join(wrong) or 'epoch'}")
    return Identity(**document)


def take_version(document: dict[str, Any], newest: int) -> str:
    """Remove the version from a document and return what is wrong with it, "" if nothing. Version 1 had no field."""
    version = document.pop("version", 1)
    if type(version) is not int or version < 1:
        return f"invalid version {version!r}"
    return f"version {version} is of a newer protokube, this one reads up to {newest}" if version > newest else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Nominated:
    """The member that a volume's tags name."""

    cluster: str
    etcd_cluster: str
    member: str
    volume: str


def mismatch(identity: Identity, tags: Nominated) -> str | None:
    """How the identity on the disk contradicts the volume's tags; None if it does not."""
    for name in ("cluster", "etcd_cluster", "member", "volume"):
        on_disk, tagged = getattr(identity, name), getattr(tags, name)
        if on_disk != tagged:
            return f"the disk says {name.replace('_', ' ')} {on_disk!r}, its tags say {tagged!r}"
    return None
