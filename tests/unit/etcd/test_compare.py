"""Requests are made in the right order, and a member that does not answer is absent, not different."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import cast

from protokube.errors import TryLater
from protokube.etcd import Etcd, Hash, Status
from protokube.etcd.compare import TRIES, compare
from protokube.members.agreement import LOOKS, Agree, Comparison, Disagree, NotComparable
from protokube.members.start_values import Listed

MEMBERS = tuple(
    Listed(id=number, name=name, peer_urls=(f"https://{name}:2380",), client_urls=(f"https://{name}:4001",))
    for number, name in enumerate("abc", start=1)
)
STATUS = Status(
    cluster_id=1, member_id=1, leader=1, revision=20, raft_term=2, raft_index=30, applied_index=30, db_size=0,
    version="3.5.1", learner=False,
)  # fmt: skip


@dataclass
class Members:
    """Far sides that are asked one by one; everything that was asked is written down."""

    statuses: dict[str, Status] = field(default_factory=lambda: dict.fromkeys("abc", STATUS))
    hashes: dict[str, int] = field(default_factory=lambda: dict.fromkeys("abc", 7))
    deaf: frozenset[str] = frozenset()
    """`hash b`: b gives no hash; `status b 2`: b gives no second status."""
    requests: list[str] = field(default_factory=list)

    late: dict[str, list[Status]] = field(default_factory=dict)
    """What a member says first, before it says what all say."""

    def status(self, endpoint: str) -> Status:
        self._ask("status", endpoint)
        return self.late[endpoint].pop(0) if self.late.get(endpoint) else self.statuses[endpoint]

    def listed_by(self, endpoint: str) -> tuple[Listed, ...]:
        self._ask("list", endpoint)
        return MEMBERS

    def hash(self, endpoint: str, revision: int) -> Hash:
        self._ask("hash", endpoint)
        seen = self.statuses[endpoint]
        hashed = self.hashes[endpoint] + revision
        return Hash(cluster_id=seen.cluster_id, member_id=seen.member_id, hash=hashed, revision=revision, compacted=5)

    def _ask(self, what: str, endpoint: str) -> None:
        times = self.requests.count(f"{what} {endpoint}") + 1
        self.requests.append(f"{what} {endpoint}")
        if {f"{what} {endpoint}", f"{what} {endpoint} {times}", endpoint} & self.deaf:
            raise TryLater(f"{endpoint} did not answer")

    def compared(self, names: str = "abc") -> Comparison:
        return compare(cast(Etcd, self), names)


def test_members_that_hold_the_same_agree() -> None:
    assert Members().compared() == Agree()


def test_each_look_at_everybody_is_over_before_the_next_begins() -> None:
    members = Members()
    members.compared()

    order = ["status", "hash", "status", "status", "list", "status"]
    assert members.requests == [f"{what} {name}" for what in order for name in "abc"]


def test_a_member_that_is_a_moment_behind_is_waited_for() -> None:
    behind = replace(STATUS, revision=15, applied_index=22)

    assert Members(late={"b": [behind] * 4}).compared() == Agree()


def test_a_member_that_stays_behind_is_not_waited_for_long() -> None:
    behind = replace(STATUS, revision=15, applied_index=22)
    members = Members(statuses={"a": STATUS, "b": behind, "c": STATUS})

    assert members.compared() == NotComparable("b did not keep up")
    assert members.requests.count("status b") == LOOKS - 1 + TRIES


def test_hashes_are_asked_for_at_the_revision_that_everybody_has_reached() -> None:
    members = Members(statuses={"a": STATUS, "b": replace(STATUS, revision=18), "c": STATUS})
    result = members.compared()

    assert isinstance(result, Disagree)  # b is at an earlier revision after the same entries
    assert "revision 18 after entry 30" in str(result)


def test_another_hash_is_a_difference() -> None:
    result = Members(hashes={"a": 7, "b": 7, "c": 8}).compared()

    assert isinstance(result, Disagree)
    assert [side.names for side in result.sides] == [("a", "b"), ("c",)]


def test_a_member_that_never_answers_is_absent() -> None:
    assert Members(deaf=frozenset({"b"})).compared() == NotComparable("b did not answer")


def test_a_member_that_stops_answering_half_way_is_absent() -> None:
    assert Members(deaf=frozenset({"status c 3"})).compared() == NotComparable("c did not answer")
    assert Members(deaf=frozenset({"list a"})).compared() == NotComparable("a did not answer")


def test_a_member_without_a_hash_cannot_be_compared_by_it() -> None:
    found = Members(deaf=frozenset({"hash c"})).compared()

    assert found == NotComparable("c: no hash after the same compaction")


def test_nobody_answering_is_no_difference() -> None:
    assert Members(deaf=frozenset("abc")).compared() == NotComparable("a, b, c did not answer")


def test_a_learner_is_neither_asked_for_a_hash_nor_missed() -> None:
    learner = replace(STATUS, learner=True, revision=2)
    members = Members(statuses={"a": STATUS, "b": STATUS, "c": learner})

    assert members.compared() == Agree()
    assert "hash c" not in members.requests
