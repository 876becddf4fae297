"""etcd's API: only the parts we use, as a Protocol over values we own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from protokube.errors import TryLater
from protokube.members.alarms import Alarm, AlarmKind
from protokube.members.start import Listed

__all__ = ["Alarm", "AlarmKind", "Endpoints", "Etcd", "Hash", "KeyValue", "MaintainedEtcd", "NoSpace", "Status"]


class NoSpace(TryLater):
    """etcd refused a put or a new lease: the NOSPACE alarm is raised, or this write would raise it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """What one member says of itself."""

    cluster_id: int
    member_id: int
    leader: int
    """0: it knows none."""
    revision: int
    raft_term: int
    raft_index: int
    applied_index: int
    db_size: int
    version: str
    learner: bool
    errors: tuple[str, ...] = ()
    """Free text: an entry for each alarm of any member, and one if there is no leader. `alarms` has them as values."""
    db_size_in_use: int = 0
    """Bytes of the database file that hold data; the rest is free pages, which only defragmenting gives back."""
    quota: int = 0
    """As etcd reports it, since 3.6; 0 if it does not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hash:
    """The hash of all keys at one revision; two can be compared only if revision and compaction are equal."""

    cluster_id: int
    member_id: int
    hash: int
    revision: int
    compacted: int


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyValue:
    key: str
    value: str
    lease: int
    mod_revision: int


class Etcd(Protocol):
    """One etcd cluster. Calls are bounded (about 2 s) and raise TryLater without an answer.

    Calls without an `endpoint` go to whichever member answers; with one, to that member alone.
    """

    def members(self) -> Sequence[Listed]:
        """The member list behind a linearizable read, sorted by id: whoever answers has a quorum."""

    def listed_by(self, endpoint: str) -> Sequence[Listed]:
        """The member list as that member alone has it, sorted by id; it may be old, or wrong."""

    def status(self, endpoint: str) -> Status: ...

    def reachable(self, endpoint: str) -> bool:
        """Whether that member takes connections: asks it nothing, and costs nothing while a connection is kept."""

    def survey(self, seconds: float, unlikely: str = "") -> Mapping[str, Status]:
        """The status of each member that answers within this time; all are asked at once.

        Once all others have answered, the one that is `unlikely` to run is not waited for much longer than they took.
        """

    def hash(self, endpoint: str, revision: int) -> Hash: ...

    def add_learner(self, peer_url: str) -> Listed:
        """TryLater if there are too many learners already."""

    def promote(self, member: int) -> None:
        """TryLater if it has not caught up."""

    def remove(self, member: int) -> None:
        """Removing one that is gone is nothing."""

    def grant(self, ttl: int) -> int:
        """A new lease."""

    def keep(self, lease: int) -> bool:
        """Renew it; False if it is gone."""

    def revoke(self, lease: int) -> None: ...

    def read(self, prefix: str) -> Sequence[KeyValue]:
        """Linearizable, sorted by key."""

    def put(self, key: str, value: str, lease: int = 0) -> int:
        """The revision it was written at."""

    def create(self, key: str, value: str, lease: int = 0) -> bool:
        """Write only if the key is not there; False if it is."""


class MaintainedEtcd(Etcd, Protocol):
    """What keeping one etcd cluster within its quota needs. All of it works while the NOSPACE alarm is raised."""

    def alarms(self) -> Sequence[Alarm]:
        """Of all members, sorted, behind a quorum."""

    def disarm(self, alarm: Alarm) -> None:
        """Clear one alarm; clearing one that is not raised is nothing."""

    def compact(self, revision: int, *, physical: bool = True) -> None:
        """Delete what is older than a revision and not current; nothing if that was done before.

        `physical`: come back only when the member that answers has deleted it from its database.
        """

    def defragment(self, endpoint: str) -> None:
        """Rewrite the database file of one member without free pages. The member answers nothing meanwhile.

        Minutes for a large database. TryLater without an answer: it may still be going on.
        """

    def move_leader(self, endpoint: str, target: int) -> None:
        """Make the member `target` lead; `endpoint` is the present leader. TryLater if it does not lead."""

    def page(self, endpoint: str, start: str, limit: int, *, values: bool = False) -> Sequence[KeyValue]:
        """Some keys from `start` on, sorted, as that member alone has them; without `values`, values are empty."""


Endpoints = Mapping[str, str]
"""Member name (`etcd-a`) to client URL."""
