"""What etcd said when it ended, and what that proves about its disk. Pure.

A leader tells a follower to commit up to the least of two: what is committed, and what this very follower has
acknowledged. A follower whose log ends before that index panics and names both. So the panic is raft's own proof that
the disk lacks an entry which its member acknowledged: the disk is an older copy of itself, though no record says so.

The hard part is to believe only what is about this disk and this mount. Output stays on a machine for longer than a
mount: an earlier life, another member, or a copy that a person accepted since. So the words have to be newer than the
check of this mount, name the ids in its log where they name any, and the log has to end before that index even now.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from protokube.members.raftmark import LogPosition


class Ending(Enum):
    """Why etcd ended, as far as it matters to its disk."""

    LACKS_ACKNOWLEDGED = "lacks what its member acknowledged"
    CORRUPT = "corrupt"
    REMOVED = "removed"  # its member is no longer in etcd's list


@dataclass(frozen=True, slots=True, kw_only=True)
class LastWords:
    """One sentence of etcd that says why it ended."""

    ending: Ending
    sentence: str
    at: float | None
    """Seconds since 1970; None if nothing says when."""
    cluster_id: int | None = None
    """Whose etcd it was, as its output says; None if it does not."""
    member_id: int | None = None
    acknowledged: int = 0
    """Of LACKS_ACKNOWLEDGED: the committed index that this member acknowledged."""


def about(words: LastWords, position: LogPosition, since: float) -> bool:
    """Whether it was said since then, by the member whose log this is."""
    if words.at is None or words.at < since:
        return False
    return words.cluster_id in (None, position.cluster_id) and words.member_id in (None, position.member_id)


def proof_of_a_copy(spoken: Sequence[LastWords], position: LogPosition, since: float) -> LastWords | None:
    """What proves that this disk lacks an acknowledged entry, the furthest index first; None if nothing does."""
    proofs = [
        each
        for each in spoken
        if each.ending is Ending.LACKS_ACKNOWLEDGED
        and about(each, position, since)
        and position.last_index < each.acknowledged
    ]
    return max(proofs, key=lambda each: each.acknowledged, default=None)


def corrupt_words(spoken: Sequence[LastWords], since: float) -> LastWords | None:
    """The last thing that etcd said, if it was said since then and is that its data is corrupt.

    Its log may be what is corrupt, so no position is compared. Whether etcd runs all the same, the caller asks.
    """
    last = spoken[-1] if spoken else None
    if last is None or last.ending is not Ending.CORRUPT or last.at is None or last.at < since:
        return None
    return last
