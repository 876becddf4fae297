"""What etcd logged when it exited, and what that proves about its disk. Pure.

A leader tells a follower to commit up to the minimum of the commit index and the index that this follower has
acknowledged. A follower whose log ends before that index panics and logs both. So the panic is raft's own proof that
the disk lacks an entry which its member acknowledged: the disk is an older copy of itself, even if no record shows it.

The hard part is to accept only messages about this disk and this mount. Log output outlives a mount: it may be from an
earlier run, from another member, or about a copy that a person has accepted since. So the message has to be newer than
the check of this mount, any ids in it have to be those of the log on the disk, and that log must still end before the
index.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from protokube.members.raftmark import LogPosition


class Ending(Enum):
    """Why etcd exited, where that concerns its disk."""

    LACKS_ACKNOWLEDGED = "lacks what its member acknowledged"
    CORRUPT = "corrupt"
    REMOVED = "removed"  # its member is no longer in etcd's list
    TOO_NEW = "too new"  # its members agreed on a newer version than that of this program


@dataclass(frozen=True, slots=True, kw_only=True)
class FatalMessage:
    """The log message that says why etcd exited."""

    ending: Ending
    sentence: str
    at: float | None
    """Seconds since 1970; None if the message has no time."""
    cluster_id: int | None = None
    """The cluster id in the output; None if it has none."""
    member_id: int | None = None
    acknowledged: int = 0
    """For LACKS_ACKNOWLEDGED: the committed index that this member acknowledged."""


def about(message: FatalMessage, position: LogPosition, since: float) -> bool:
    """Whether the message was logged after `since`, by the member whose log this is."""
    if message.at is None or message.at < since:
        return False
    return message.cluster_id in (None, position.cluster_id) and message.member_id in (None, position.member_id)


def proof_of_a_copy(messages: Sequence[FatalMessage], position: LogPosition, since: float) -> FatalMessage | None:
    """The message with the highest index that proves that this disk lacks an acknowledged entry; None without one."""
    proofs = [
        each
        for each in messages
        if each.ending is Ending.LACKS_ACKNOWLEDGED
        and about(each, position, since)
        and position.last_index < each.acknowledged
    ]
    return max(proofs, key=lambda each: each.acknowledged, default=None)


def too_new_message(messages: Sequence[FatalMessage], since: float) -> FatalMessage | None:
    """The last message, if it was logged after `since` and says that a newer program wrote the data; else None.

    etcd looks at the version before it changes anything, so that to have started it did no harm.
    """
    return _last(messages, Ending.TOO_NEW, since)


def corrupt_message(messages: Sequence[FatalMessage], since: float) -> FatalMessage | None:
    """The last message, if it was logged after `since` and says that the data is corrupt; else None.

    The raft log itself may be corrupt, so no position is compared. The caller checks whether etcd runs nevertheless.
    """
    return _last(messages, Ending.CORRUPT, since)


def _last(messages: Sequence[FatalMessage], ending: Ending, since: float) -> FatalMessage | None:
    last = messages[-1] if messages else None
    if last is None or last.ending is not ending or last.at is None or last.at < since:
        return None
    return last
