"""What is known of a mounted volume before its etcd may start, and the decisions that follow (`members.start`)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from protokube.members.generation import Generation
from protokube.members.identity import Identity, Nominated, Unreadable
from protokube.members.older_copy import Majority, Older
from protokube.members.raftmark import LogPosition
from protokube.members.removal import Lacking


class Data(Enum):
    """What lies where etcd keeps its data."""

    PRESENT = "present"
    MISSING = "missing"
    CORRUPT = "corrupt"  # reported by etcd itself
    ORIGINAL = "original"  # the layout of the original, without an identity of ours


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A member as the running etcd lists it."""

    id: int
    name: str
    """A founder has a name from the beginning; an added member has none until it has started."""
    peer_urls: tuple[str, ...]
    client_urls: tuple[str, ...]
    learner: bool = False

    @property
    def started(self) -> bool:
        return bool(self.client_urls)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """Everything the decision rests on, as it was just observed."""

    tags: Nominated
    name: str
    """What etcd calls this member: `etcd-a` for member `a` of `main`."""
    peer_url: str
    identity: Identity | Unreadable | None
    proven_blank: bool
    """Head, middle and tail were read and are zero, and the device is the volume's; see the volume proof."""
    data: Data
    generation: Generation | None
    mark: str | None
    """The provider's mark on this volume; None if it did not answer."""
    siblings: tuple[str, ...] | None
    """Other volumes tagged for this member; None unless the list was complete."""
    members: tuple[Listed, ...] | None
    """The others' member list, read from a quorum; None without one."""
    lost: tuple[str, ...] = ()
    """Members whose volumes are gone, as the provider has confirmed."""
    verified: bool = False
    """The checks below passed earlier for this mount, and its epoch was raised: etcd keeps running on it."""
    position: LogPosition | None = None
    """Where etcd's log on the disk ends; None if it could not be read."""
    unreadable_log: str = ""
    """Why it could not."""
    older: Older | None = None
    """How the disk is behind what was recorded about it."""
    majority: Majority | None = None
    """What the other voters have committed, if more than half of all voters follow one leader without this member."""
    agreed: bool = True
    """Whether no comparison of the other members' data found a difference."""
    answers_elsewhere: bool = False
    """An etcd elsewhere runs with this disk's member id, so this disk is a copy."""
    rejoined: bool = False
    """An older copy of this member was set aside before; the second time a person decides."""
    accepted: bool = False
    """A person accepted an older copy with exactly the figures of this disk."""
    configured: bool = True
    """The configuration in force lists this member."""
    lacking: Lacking | None = None
    """The record's entry on how long a quorum's list has lacked this disk's member."""
    unrecorded: str = ""
    """Why `lacking` could not be recorded."""
    now: float = 0.0
    """Wall clock."""
    rejoin_removed_after: float | None = None
    """Seconds after which a member that was removed by hand rejoins; None for never."""
    corrupt: str = ""
    """The message with which etcd refused to start on CORRUPT data."""


@dataclass(frozen=True, slots=True)
class Start:
    """Start etcd; `fresh` founds the cluster (`new` on an empty directory), else it goes on with its data."""

    fresh: bool
    write_identity: bool = False
    accepted: bool = False
    """On an older copy that a person has accepted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Join:
    """Take the place of a member whose data is gone: remove its old id, add the name as a learner, start, promote."""

    remove: int | None
    write_identity: bool = False
    move_aside: bool = False
    older: Older | None = None
    """The data that is set aside is an older copy."""
    removed: int | None = None
    """The data that is set aside belongs to this id, which a person removed from etcd's list."""


class Kind(Enum):
    """What a refused volume is, where that is known."""

    OTHER = "refused"
    OLDER = "older copy"
    CLONE = "clone"
    SUPERSEDED = "superseded"
    REMOVED = "removed"
    BROKEN = "broken"


@dataclass(frozen=True, slots=True)
class Wait:
    """The next round asks again."""

    why: str
    kind: Kind = Kind.OTHER


@dataclass(frozen=True, slots=True)
class Refuse:
    """Change nothing; a person has to act."""

    why: str
    hint: str = ""
    kind: Kind = Kind.OTHER


Decision = Start | Join | Wait | Refuse
