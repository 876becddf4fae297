"""The generation record: is the creation of this etcd cluster still open, and who may found it?

Written to the store before any machine boots, closed once after the first quorum, in the store and on every volume's
mark. Only a founder may start `new`, and only while store and provider both positively say open.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from protokube.members.identity import said_once, take_version
from protokube.members.removal import Lacking, Readded

FORMING, FORMED, FORMATTING = "forming", "formed", "formatting"
FIELDS = {"id", "etcdCluster", "token", "founders", "replacements", "open"}
VERSION = 3
SINCE_2 = {"superseded", "rejoined", "accepted"}
"""What version 1 did not have."""
SINCE_3 = {"lacking", "readded"}
"""What version 2 did not have. A record without any of it is written as version 2: former agents read it."""
FORMS = {1: FIELDS, 2: FIELDS | SINCE_2, 3: FIELDS | SINCE_2 | SINCE_3}
"""Exactly these fields has a record of each version."""
ACCEPTED: Mapping[str, type] = {"epoch": int, "term": int, "commit": int}
LACKING: Mapping[str, type] = {"member_id": int, "since": float, "observed": float, "meant": bool}
READDED: Mapping[str, type] = {"member_id": int, "at": float}


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """A person's word that an older copy may be started: with exactly these figures on the disk, once."""

    epoch: int
    term: int
    commit: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """One creation of one etcd cluster."""

    id: str
    etcd_cluster: str
    token: str
    founders: dict[str, str]
    """Volume by member: the disks this creation began with."""
    replacements: dict[str, str]
    """Volume by member: disks that we made later for lost ones; they join, they never found."""
    open: bool
    superseded: dict[str, str] = field(default_factory=dict)
    """Member by volume: disks whose member id is no longer in etcd's list. Kept, and neither claimed nor served."""
    rejoined: dict[str, str] = field(default_factory=dict)
    """By member, the older copy that was set aside for it to join anew. It happens once; then a person decides."""
    accepted: dict[str, Accepted] = field(default_factory=dict)
    """By volume."""
    lacking: dict[str, Lacking] = field(default_factory=dict)
    """By member: removed by hand, and for how long a quorum's list was seen without it."""
    readded: dict[str, Readded] = field(default_factory=dict)
    """By member: the last time it was made to rejoin after it had been removed by hand. Once a day."""

    def is_founder(self, member: str, volume: str) -> bool:
        return self.founders.get(member) == volume

    def made_by_us(self, member: str, volume: str) -> bool:
        """Whether this very disk was made, empty, for this member: a condition of ever formatting it."""
        return self.is_founder(member, volume) or self.replacements.get(member) == volume

    def volume_of(self, member: str) -> str:
        """The volume that was last recorded for a member; "" if there is none."""
        return self.replacements.get(member) or self.founders.get(member, "")

    def closed(self) -> Generation:
        return replace(self, open=False)

    def with_superseded(self, volume: str, member: str) -> Generation:
        return replace(self, superseded={**self.superseded, volume: member})

    def with_rejoined(self, member: str, evidence: str) -> Generation:
        return replace(self, rejoined={**self.rejoined, member: evidence})

    def with_accepted(self, volume: str, figures: Accepted) -> Generation:
        return replace(self, accepted={**self.accepted, volume: figures})

    def without_accepted(self, volume: str) -> Generation:
        return replace(self, accepted={each: figures for each, figures in self.accepted.items() if each != volume})

    def with_lacking(self, member: str, how: Lacking) -> Generation:
        return replace(self, lacking={**self.lacking, member: how})

    def without_lacking(self, member: str) -> Generation:
        return replace(self, lacking={each: how for each, how in self.lacking.items() if each != member})

    def with_readded(self, member: str, how: Readded) -> Generation:
        return replace(self, readded={**self.readded, member: how})

    def with_replacement(self, member: str, volume: str) -> Generation:
        return replace(self, replacements={**self.replacements, member: volume})


def encode(generation: Generation) -> bytes:
    told = {
        "id": generation.id,
        "etcdCluster": generation.etcd_cluster,
        "token": generation.token,
        "founders": generation.founders,
        "replacements": generation.replacements,
        "open": generation.open,
        "superseded": generation.superseded,
        "rejoined": generation.rejoined,
        "accepted": {volume: asdict(each) for volume, each in generation.accepted.items()},
        "version": 2,
    }
    if generation.lacking or generation.readded:
        told["version"] = VERSION
        told["lacking"] = {member: asdict(each) for member, each in generation.lacking.items()}
        told["readded"] = {member: asdict(each) for member, each in generation.readded.items()}
    return (json.dumps(told, indent=2, sort_keys=True) + "\n").encode()


def decode(data: bytes) -> Generation | None:
    """The record, or nothing if it cannot be read in full; nothing means closed."""
    try:
        told: Any = json.loads(data, object_pairs_hook=said_once)
    except (ValueError, RecursionError):
        return None
    if not isinstance(told, dict):
        return None
    version = told.get("version", 1)
    if take_version(told, VERSION) or set(told) != FORMS[version]:
        return None
    told = {name: {} for name in SINCE_2 | SINCE_3} | told
    if not _well_formed(told):
        return None
    return Generation(
        id=told["id"],
        etcd_cluster=told["etcdCluster"],
        token=told["token"],
        founders=told["founders"],
        replacements=told["replacements"],
        open=told["open"],
        superseded=told["superseded"],
        rejoined=told["rejoined"],
        accepted={volume: Accepted(**figures) for volume, figures in told["accepted"].items()},
        lacking={member: Lacking(**each) for member, each in told["lacking"].items()},
        readded={member: Readded(**each) for member, each in told["readded"].items()},
    )


def _well_formed(told: dict[str, Any]) -> bool:
    texts = all(isinstance(told.get(name), str) and told[name] for name in ("id", "etcdCluster", "token"))
    maps = all(_names(told.get(name)) for name in ("founders", "replacements", "superseded", "rejoined"))
    removals = _each_has(told["lacking"], LACKING) and _each_has(told["readded"], READDED)
    return texts and maps and type(told.get("open")) is bool and _each_has(told["accepted"], ACCEPTED) and removals


def _each_has(told: Any, kinds: Mapping[str, type]) -> bool:
    """Whether every value is an object with exactly these fields, and no number in it is negative or none at all."""
    return isinstance(told, dict) and all(
        key
        and isinstance(each, dict)
        and set(each) == set(kinds)
        and all(type(each[name]) is kind and 0 <= each[name] < math.inf for name, kind in kinds.items())
        for key, each in told.items()
    )


def _names(told: Any) -> bool:
    return isinstance(told, dict) and all(isinstance(name, str) and name for pair in told.items() for name in pair)


def is_open(generation: Generation | None, mark: str | None) -> bool:
    """Both must say so: the store by its record, the provider by a mark that is not yet `formed`.

    `mark` is what the provider positively answered about this volume: "" for an untouched disk; None means that it
    did not answer, and that is not a yes.
    """
    return generation is not None and generation.open and is_unformed(mark)


def is_unformed(mark: str | None) -> bool:
    """Whether the provider positively said that this volume was never part of a formed cluster."""
    return mark == FORMING or is_untouched(mark)


def is_untouched(mark: str | None) -> bool:
    """Whether it positively said that nothing of ours was on this volume yet; a word we do not know says nothing."""
    return mark is not None and (mark == "" or mark.startswith(f"{FORMATTING}:"))
