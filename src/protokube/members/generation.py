"""The generation record: whether an etcd cluster is still being created, and which volumes may found it.

It is written to the store before any machine boots, and closed once after the first quorum, in the store and in every
volume's mark. Only a founder may start with `initial-cluster-state: new`, and only while both the store and the
provider confirm that the creation is open.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from protokube.members.identity import take_version, without_duplicates
from protokube.members.removal import Lacking, Readded

FORMING, FORMED, FORMATTING = "forming", "formed", "formatting"
FIELDS = {"id", "etcdCluster", "token", "founders", "replacements", "open"}
VERSION = 3
SINCE_2 = {"superseded", "rejoined", "accepted"}
"""Fields added in version 2."""
SINCE_3 = {"lacking", "readded"}
"""Fields added in version 3. A record in which they are empty is written as version 2, which older agents read."""
FORMS = {1: FIELDS, 2: FIELDS | SINCE_2, 3: FIELDS | SINCE_2 | SINCE_3}
"""By version, exactly the fields that a record has."""
ACCEPTED: Mapping[str, type] = {"epoch": int, "term": int, "commit": int}
LACKING: Mapping[str, type] = {"member_id": int, "since": float, "observed": float, "meant": bool}
READDED: Mapping[str, type] = {"member_id": int, "at": float}


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """A person's consent to start an older copy of a disk: once, and only with exactly these figures on the disk."""

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
    """Volume by member: disks that the agents created later in place of lost ones. They join and never found."""
    open: bool
    superseded: dict[str, str] = field(default_factory=dict)
    """Member by volume: disks whose member id is no longer in etcd's member list. Kept, but not claimed or served."""
    rejoined: dict[str, str] = field(default_factory=dict)
    """By member, the older copy that was set aside for it to rejoin. Done once; after that a person decides."""
    accepted: dict[str, Accepted] = field(default_factory=dict)
    """By volume."""
    lacking: dict[str, Lacking] = field(default_factory=dict)
    """By member: removed by hand, with the time for which a quorum's member list was seen without it."""
    readded: dict[str, Readded] = field(default_factory=dict)
    """By member: the last automatic rejoin after a removal by hand. At most once a day."""

    def is_founder(self, member: str, volume: str) -> bool:
        return self.founders.get(member) == volume

    def made_by_us(self, member: str, volume: str) -> bool:
        """Whether the agents created exactly this disk, empty, for this member: a precondition for formatting it."""
        return self.is_founder(member, volume) or self.replacements.get(member) == volume

    def volume_of(self, member: str) -> str:
        """The volume last recorded for a member; "" if there is none."""
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
    document = {
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
        document["version"] = VERSION
        document["lacking"] = {member: asdict(each) for member, each in generation.lacking.items()}
        document["readded"] = {member: asdict(each) for member, each in generation.readded.items()}
    return (json.dumps(document, indent=2, sort_keys=True) + "\n").encode()


def decode(data: bytes) -> Generation | None:
    """The record; None if it cannot be read in full, which callers treat as closed."""
    try:
        document: Any = json.loads(data, object_pairs_hook=without_duplicates)
    except (ValueError, RecursionError):
        return None
    if not isinstance(document, dict):
        return None
    version = document.get("version", 1)
    if take_version(document, VERSION) or set(document) != FORMS[version]:
        return None
    document = {name: {} for name in SINCE_2 | SINCE_3} | document
    if not _well_formed(document):
        return None
    return Generation(
        id=document["id"],
        etcd_cluster=document["etcdCluster"],
        token=document["token"],
        founders=document["founders"],
        replacements=document["replacements"],
        open=document["open"],
        superseded=document["superseded"],
        rejoined=document["rejoined"],
        accepted={volume: Accepted(**figures) for volume, figures in document["accepted"].items()},
        lacking={member: Lacking(**each) for member, each in document["lacking"].items()},
        readded={member: Readded(**each) for member, each in document["readded"].items()},
    )


def _well_formed(document: dict[str, Any]) -> bool:
    texts = all(isinstance(document.get(name), str) and document[name] for name in ("id", "etcdCluster", "token"))
    maps = all(_names(document.get(name)) for name in ("founders", "replacements", "superseded", "rejoined"))
    removals = _each_has(document["lacking"], LACKING) and _each_has(document["readded"], READDED)
    return (
        texts and maps and type(document.get("open")) is bool and _each_has(document["accepted"], ACCEPTED) and removals
    )


def _each_has(value: Any, kinds: Mapping[str, type]) -> bool:
    """Whether every value is an object with exactly these fields, and its numbers are finite and not negative."""
    return isinstance(value, dict) and all(
        key
        and isinstance(each, dict)
        and set(each) == set(kinds)
        and all(type(each[name]) is kind and 0 <= each[name] < math.inf for name, kind in kinds.items())
        for key, each in value.items()
    )


def _names(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(name, str) and name for pair in value.items() for name in pair)


def is_open(generation: Generation | None, mark: str | None) -> bool:
    """Whether both confirm it: the store by its record, the provider by a mark that is not yet `formed`.

    `mark` is the provider's answer about this volume: "" for an unused disk, None if it did not answer. No answer
    counts as closed.
    """
    return generation is not None and generation.open and is_unformed(mark)


def is_unformed(mark: str | None) -> bool:
    """Whether the provider confirms that this volume was never part of a formed cluster."""
    return mark == FORMING or is_untouched(mark)


def is_untouched(mark: str | None) -> bool:
    """Whether the provider confirms that this volume never held data of ours; an unknown mark confirms nothing."""
    return mark is not None and (mark == "" or mark.startswith(f"{FORMATTING}:"))
