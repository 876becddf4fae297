"""The record of one remedy of a full etcd cluster: its start, its progress, and the member being defragmented.

It is kept in the state store, since a full etcd takes no writes, and written with compare-and-swap only. So it is also
the lock: only the master that wrote a member's turn defragments it, and there is one turn at a time.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedy:
    """Progress of the remedy."""

    began: float
    """Seconds since 1970, by the clock of the master that began it."""
    revision: int = 0
    """Compacted up to this revision; 0 before the compaction."""
    compacted: float = 0.0
    """Time of the compaction; 0 before it."""
    turn: int = 0
    """The id of the member that is being defragmented; 0 for none."""
    done: tuple[int, ...] = ()
    """Ids of the members that were defragmented since the last compaction."""
    cleared: float = 0.0
    """Time at which the alarm was cleared, which ends the remedy; 0 before."""

    def with_compaction(self, revision: int, now: float) -> Remedy:
        return replace(self, revision=revision, compacted=now, done=())

    def with_turn(self, member: int) -> Remedy:
        return replace(self, turn=member)

    def with_done(self, member: int) -> Remedy:
        return replace(self, turn=0, done=tuple(sorted({*self.done, member})))

    def with_end(self, now: float) -> Remedy:
        return replace(self, cleared=now)


def encode(remedy: Remedy) -> bytes:
    return (json.dumps(asdict(remedy), indent=2, sort_keys=True) + "\n").encode()


def decode(content: bytes) -> Remedy | None:
    """The record; None if it is incomplete."""
    try:
        tree = json.loads(content)
        return Remedy(
            began=float(tree["began"]),
            revision=int(tree["revision"]),
            compacted=float(tree["compacted"]),
            turn=int(tree["turn"]),
            done=tuple(sorted(int(each) for each in tree["done"])),
            cleared=float(tree["cleared"]),
        )
    except (ValueError, KeyError, TypeError):
        return None
