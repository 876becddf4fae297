"""The record of one remedy of a full etcd cluster: when it began, how far it is, and which member has its turn.

It lies in the state store, since a full etcd takes no writes, and is only ever written over exactly what was read. So
it is also the lock: a member is defragmented only by the master that wrote its turn, and there is one turn at a time.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedy:
    """How far the remedy is."""

    began: float
    """Seconds since 1970, as the master that began it counts."""
    revision: int = 0
    """Compacted up to here; 0 before."""
    compacted: float = 0.0
    """When that was; 0 before."""
    turn: int = 0
    """The id of the member that is being defragmented; 0 for none."""
    done: tuple[int, ...] = ()
    """Ids of the members that were defragmented since the last compaction."""
    cleared: float = 0.0
    """When the alarm was cleared after it, which ends it; 0 before."""

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
    """None if it is not a record in full."""
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
