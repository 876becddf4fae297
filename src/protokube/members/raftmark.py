"""Recognise an etcd disk that is an older copy of itself, by its raft position.

A restored snapshot carries the right identity, so nothing on the disk tells it from the original. The mark is kept off
the disk: the term and commit index that this member had reached. Both only rise while a member keeps its log, so a
disk below its mark has lost acknowledged writes. The hard part is to compare only what belongs together: a member that
was removed and added again, or a cluster created again, starts over from low numbers. Hence the key of a mark:
generation, cluster id and member id.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

VERSION = "1"
MAX_UINT64 = 2**64 - 1
# Cloud tags allow little more than this; a colon separates, so it cannot be part of a generation.
GENERATION = r"[A-Za-z0-9._-]+"
HEX = r"(?:0|[1-9a-f][0-9a-f]{0,15})"
DECIMAL = r"(?:0|[1-9][0-9]{0,19})"
TEXT = re.compile(f"{VERSION}:({GENERATION}):({HEX}):({HEX}):({DECIMAL}):({DECIMAL})")


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPosition:
    """How far the raft log on a disk has come."""

    cluster_id: int
    member_id: int
    term: int
    commit: int
    last_index: int
    """Shown to people, never judged: raft may legally cut an uncommitted tail."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RaftMark:
    """The recorded position of one member; never lowered under the same key."""

    generation: str
    cluster_id: int
    member_id: int
    term: int
    commit: int

    @property
    def key(self) -> tuple[str, int, int]:
        return self.generation, self.cluster_id, self.member_id


def encode(mark: RaftMark) -> str:
    """One line for a cloud tag. Raises ValueError for a mark that `decode` would not return."""
    ids = f"{mark.cluster_id:x}:{mark.member_id:x}"
    text = f"{VERSION}:{mark.generation}:{ids}:{mark.term}:{mark.commit}"
    if decode(text) != mark:
        raise ValueError(f"not a raft mark that can be written as a tag: {mark}")
    return text


def decode(text: str) -> RaftMark | None:
    """The mark, or None for every text that `encode` does not write."""
    match = TEXT.fullmatch(text)
    if match is None:
        return None
    term, commit = int(match[4]), int(match[5])
    if max(term, commit) > MAX_UINT64:
        return None
    return RaftMark(
        generation=match[1], cluster_id=int(match[2], 16), member_id=int(match[3], 16), term=term, commit=commit
    )


def raised(old: RaftMark | None, new: RaftMark) -> RaftMark:
    """The mark to record next: under the same key neither term nor commit ever falls."""
    if old is None or old.key != new.key:
        return new
    return replace(new, term=max(old.term, new.term), commit=max(old.commit, new.commit))


def is_behind(position: LogPosition, mark: RaftMark | None, generation: str) -> bool:
    """Whether the disk is an older copy; never by a mark that is missing or of another key."""
    if mark is None or mark.key != (generation, position.cluster_id, position.member_id):
        return False
    return position.term < mark.term or position.commit < mark.commit
