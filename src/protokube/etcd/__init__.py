"""etcd's API: only the parts we use, as a Protocol over values we own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from protokube.errors import TryLater
from protokube.members.alarms import Alarm, AlarmKind
from protokube.members.start_values import Listed

__all__ = ["Alarm", "AlarmKind", "Endpoints", "Etcd", "Hash", "KeyValue", "MaintainedEtcd", "NoSpace", "Status"]


class NoSpace(TryLater):
    """etcd refused a put or a new lease: the NOSPACE alarm is raised, or this write would raise it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """The status of one member, as it reports it."""

    cluster_id: int
    member_id: int
    leader: int
    """Member id; 0 if it knows no leader."""
    revision: int
    raft_term: int
    raft_index: int
    applied_index: int
    db_size: int
    version: str
    learner: bool
    errors: tuple[str, ...] = ()
    """Free text: an entry for each alarm of any member, and one if there is no leader. `alarms` returns them typed."""
    db_size_in_use: int = 0
    """Bytes of the database file that hold data; the rest is free pages, which only defragmentation releases."""
    quota: int = 0
    """Bytes, as etcd reports it since 3.6; 0 if it does not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hash:
    """The hash of all keys at one revision; comparable only at equal revision and compact revision."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """Some keys at one revision: of two ranges of one etcd cluster, the one with the greater revision is the newer."""

    cluster_id: int
    revision: int
    keys: Sequence[KeyValue]


class Etcd(Protocol):
    """One etcd cluster. Calls have a timeout (about 2 s) and raise TryLater if none answers.

    Calls without an `endpoint` go to any member that answers; with one, to that member alone.
    """

    def members(self) -> Sequence[Listed]:
        """The member list, sorted by id. Linearizable: the member that answers has a quorum."""

    def listed_by(self, endpoint: str) -> Sequence[Listed]:
        """The member list of that member alone, sorted by id; it may be stale or wrong."""

    def status(self, endpoint: str) -> Status: ...

    def cluster_version(self) -> str:
        """The version that the members have agreed on, `3.5.0`: that of the oldest program; empty until they have.

        It never goes back, and no older program serves its data.
        """

    def reachable(self, endpoint: str) -> bool:
        """Whether that member accepts connections: sends no request, and costs nothing while a connection is kept."""

    def survey(self, seconds: float, unlikely: str = "") -> Mapping[str, Status]:
        """The status of each member that answers within this time; all are asked concurrently.

        Once all others have answered, a member that is `unlikely` to run gets little more time than they took.
        """

    def hash(self, endpoint: str, revision: int) -> Hash: ...

    def add_learner(self, peer_url: str) -> Listed:
        """TryLater if there are too many learners already."""

    def promote(self, member: int) -> None:
        """Promote a learner to a voter. TryLater if it has not caught up."""

    def remove(self, member: int) -> None:
        """Remove a member; no effect if it is gone."""

    def grant(self, ttl: int) -> int:
        """Grant a new lease; returns its id."""

    def keep(self, lease: int) -> bool:
        """Renew a lease; False if it expired."""

    def revoke(self, lease: int) -> None: ...

    def read(self, prefix: str) -> Sequence[KeyValue]:
        """Linearizable, sorted by key."""

    def read_at(self, prefix: str) -> Range:
        """The same, with the revision at which it was read."""

    def put(self, key: str, value: str, lease: int = 0) -> int:
        """Write a key; returns the revision of the write."""

    def create(self, key: str, value: str, lease: int = 0) -> bool:
        """Write only if the key does not exist; False if it does."""


class MaintainedEtcd(Etcd, Protocol):
    """Calls that keep an etcd cluster within its quota. All of them work while the NOSPACE alarm is raised."""

    def alarms(self) -> Sequence[Alarm]:
        """Alarms of all members, sorted; linearizable."""

    def disarm(self, alarm: Alarm) -> None:
        """Clear one alarm; no effect if it is not raised."""

    def compact(self, revision: int, *, physical: bool = True) -> None:
        """Compact the history up to a revision; no effect if that was done before.

        `physical`: return only when the member that answers has deleted it from its database.
        """

    def defragment(self, endpoint: str) -> None:
        """Rewrite the database file of one member without free pages. The member does not answer meanwhile.

        Takes minutes for a large database. TryLater on a timeout: it may still be running.
        """

    def move_leader(self, endpoint: str, target: int) -> None:
        """Transfer leadership to the member `target`; `endpoint` is the current leader. TryLater if it is not."""

    def page(self, endpoint: str, start: str, limit: int, *, values: bool = False) -> Sequence[KeyValue]:
        """Up to `limit` keys from `start` on, sorted, by a serializable read; without `values`, values are empty."""


Endpoints = Mapping[str, str]
"""Member name (`etcd-a`) to client URL."""
