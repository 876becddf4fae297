"""etcd's API: only the parts we use, as a Protocol over values we own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from protokube.members.start import Listed


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

    def survey(self, seconds: float) -> Mapping[str, Status]:
        """The status of each member that answers within this time; all are asked at once."""

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


Endpoints = Mapping[str, str]
"""Member name (`etcd-a`) to client URL."""
