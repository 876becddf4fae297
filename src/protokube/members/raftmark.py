"""Recognise an etcd disk that is an older copy of itself, by its raft position.

A restored snapshot has the right identity, so nothing on the disk distinguishes it from the current one. The mark is
kept off the disk: the term and commit index that this member had reached. Both only rise while a member keeps its log,
so a disk below its mark has lost acknowledged writes. The hard part is to compare only figures of the same log: a
member that was removed and added again, or a cluster that was created again, starts over from low numbers. So a mark is
keyed by generation, cluster id and member id.

A copy that was made after the last mark passes this check, until raft itself shows what it lacks: the index that its
member has acknowledged is then added to the mark. That is not a commit index: the current disk may have the entry
without knowing yet that it is committed. So it is compared with the last index of the log.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

VERSION, WITH_ACKNOWLEDGED = "1", "2"
MAX_UINT64 = 2**64 - 1
# Cloud tags allow few other characters; the colon is the separator, so a generation must not contain one.
GENERATION = r"[A-Za-z0-9._-]+"
HEX = r"(?:0|[1-9a-f][0-9a-f]{0,15})"
DECIMAL = r"(?:0|[1-9][0-9]{0,19})"
TEXT = re.compile(f"{VERSION}:({GENERATION}):({HEX}):({HEX}):({DECIMAL}):({DECIMAL})")
LONGER = re.compile(
    f"{WITH_ACKNOWLEDGED}:({GENERATION}):({HEX}):({HEX}):({DECIMAL}):({DECIMAL}):({DECIMAL}):({DECIMAL})"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPosition:
    """The position of the raft log on a disk."""

    cluster_id: int
    member_id: int
    term: int
    commit: int
    last_index: int
    """Compared with an acknowledged index only: raft may legally truncate an uncommitted tail."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RaftMark:
    """The recorded position of one member; never lowered under the same key."""

    generation: str
    cluster_id: int
    member_id: int
    term: int
    commit: int
    acknowledged: int = 0
    """A committed index that this member acknowledged and that a disk was found to lack; 0 if there was none."""
    copied_epoch: int = 0
    """The epoch that mounting that disk wrote; the current disk never got it."""

    @property
    def key(self) -> tuple[str, int, int]:
        return self.generation, self.cluster_id, self.member_id


def encode(mark: RaftMark) -> str:
    """One line for a cloud tag. Raises ValueError for a mark that `decode` would not return."""
    position = f"{mark.generation}:{mark.cluster_id:x}:{mark.member_id:x}:{mark.term}:{mark.commit}"
    lacking = (mark.acknowledged, mark.copied_epoch)
    # version 1 wherever it is sufficient: older agents read only that
    text = f"{WITH_ACKNOWLEDGED}:{position}:{lacking[0]}:{lacking[1]}" if any(lacking) else f"{VERSION}:{position}"
    if decode(text) != mark:
        raise ValueError(f"not a raft mark that can be written as a tag: {mark}")
    return text


def decode(text: str) -> RaftMark | None:
    """The mark, or None for every text that `encode` does not write."""
    match = TEXT.fullmatch(text) or LONGER.fullmatch(text)
    if match is None:
        return None
    term, commit, acknowledged, copied_epoch = (*map(int, match.groups()[3:]), 0, 0)[:4]
    if max(term, commit, acknowledged, copied_epoch) > MAX_UINT64:
        return None
    if text.startswith(WITH_ACKNOWLEDGED) and not acknowledged and not copied_epoch:
        return None
    return RaftMark(
        generation=match[1],
        cluster_id=int(match[2], 16),
        member_id=int(match[3], 16),
        term=term,
        commit=commit,
        acknowledged=acknowledged,
        copied_epoch=copied_epoch,
    )


def raised(old: RaftMark | None, new: RaftMark) -> RaftMark:
    """The mark to record next: under the same key no number ever decreases."""
    if old is None or old.key != new.key:
        return new
    return replace(
        new,
        term=max(old.term, new.term),
        commit=max(old.commit, new.commit),
        acknowledged=max(old.acknowledged, new.acknowledged),
        copied_epoch=max(old.copied_epoch, new.copied_epoch),
    )


def belongs_to(mark: RaftMark | None, position: LogPosition, generation: str) -> bool:
    """Whether the mark belongs to the member whose log this is."""
    return mark is not None and mark.key == (generation, position.cluster_id, position.member_id)


def lacks_acknowledged(position: LogPosition, mark: RaftMark | None, generation: str) -> bool:
    """Whether the log ends before an entry that its member acknowledged: raft never truncates such an entry."""
    return mark is not None and belongs_to(mark, position, generation) and position.last_index < mark.acknowledged


def is_behind(position: LogPosition, mark: RaftMark | None, generation: str) -> bool:
    """Whether the disk is an older copy; false if the mark is missing or has another key."""
    if mark is None or not belongs_to(mark, position, generation):
        return False
    if lacks_acknowledged(position, mark, generation):
        return True
    return position.term < mark.term or position.commit < mark.commit
