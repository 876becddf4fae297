"""What a volume says of itself: whose it is, which member lives on it, and who held it last.

Tags only nominate a volume; this decides. It lies in the root of the volume's file system, as JSON.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

FILE = "protokube.json"
"""In the root of the volume."""
VERSION = 2
"""Of the file's form. Version 1 had no such field; its other fields are the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """The home of one member of one etcd cluster of one cluster."""

    cluster: str
    etcd_cluster: str
    member: str
    volume: str
    generation: str
    epoch: int
    """Rises with every mount and never falls. Lower on the disk than at the provider: an older copy of the disk."""
    holder: str

    def taken_over_by(self, holder: str, seen: int = 0) -> Identity:
        """The same home in new hands; `seen` is the greatest epoch known elsewhere."""
        return replace(self, holder=holder, epoch=max(self.epoch, seen) + 1)


@dataclass(frozen=True, slots=True)
class Unreadable:
    """There is an identity, but it cannot be read: not ours to guess, and certainly not blank."""

    why: str
    disk_error: str = ""
    """What the disk answered instead of data; "" if it gave some."""


def encode(identity: Identity) -> bytes:
    document = {**asdict(identity), "version": VERSION}
    return (json.dumps(document, indent=2, sort_keys=True) + "\n").encode()


def said_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object that says nothing twice: of two answers neither can be believed."""
    told = dict(pairs)
    if len(told) != len(pairs):
        raise ValueError("a field is said twice")
    return told


def decode(data: bytes) -> Identity | Unreadable:
    """The identity, or why it is none; half a file, other types or missing fields are never filled in."""
    try:
        told: Any = json.loads(data, object_pairs_hook=said_once)
    except (ValueError, RecursionError) as error:
        return Unreadable(f"not JSON: {error}")
    if isinstance(told, dict) and (wrong_version := take_version(told, VERSION)):
        return Unreadable(wrong_version)
    wanted = {each.name: int if each.name == "epoch" else str for each in fields(Identity)}
    if not isinstance(told, dict) or set(told) != set(wanted):
        return Unreadable(f"has not exactly the fields {', '.join(sorted(wanted))}")
    wrong = [name for name, kind in wanted.items() if type(told[name]) is not kind]
    if wrong or told["epoch"] < 0:
        return Unreadable(f"{', '.join(wrong) or 'epoch'} cannot be")
    return Identity(**told)


def take_version(document: dict[str, Any], newest: int) -> str:
    """Take the version out of a document; say what is wrong with it, "" if nothing. The first form had none."""
    version = document.pop("version", 1)
    if type(version) is not int or version < 1:
        return f"version {version!r} cannot be"
    return f"version {version} is of a newer protokube, this one reads up to {newest}" if version > newest else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Nominated:
    """What the tags of a volume say it is."""

    cluster: str
    etcd_cluster: str
    member: str
    volume: str


def mismatch(identity: Identity, tags: Nominated) -> str | None:
    """How the disk contradicts its tags, or nothing."""
    for name in ("cluster", "etcd_cluster", "member", "volume"):
        said, tagged = getattr(identity, name), getattr(tags, name)
        if said != tagged:
            return f"the disk says {name.replace('_', ' ')} {said!r}, its tags say {tagged!r}"
    return None
