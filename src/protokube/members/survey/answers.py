"""What the members of one etcd cluster answered when somebody asked all of them, as a document and back. Pure.

A master that reaches etcd publishes it for readers that do not. Ids are in hex: JSON has no whole numbers of 64 bits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from protokube.members.alarms import Alarm
from protokube.members.start_values import Listed
from protokube.members.survey.listing import list_tree, read_list


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The status of one member, as it reported it."""

    id: int
    cluster_id: int
    leader_id: int
    """0 if it knows no leader."""
    raft_term: int
    revision: int
    learner: bool
    version: str
    db_size: int
    db_in_use: int
    errors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """One survey of an etcd cluster."""

    members: Mapping[str, Answer] = field(default_factory=dict)
    """By name, those that answered."""
    listed: tuple[Listed, ...] | None = None
    """The member list behind a quorum; None without one."""
    alarms: tuple[Alarm, ...] = ()


def to_tree(answers: Answers) -> dict[str, Any]:
    return {
        "members": {name: _answer(each) for name, each in sorted(answers.members.items())},
        "listed": None if answers.listed is None else list_tree(answers.listed),
        "alarms": [{"member": f"{each.member:x}", "name": each.name} for each in answers.alarms],
    }


def from_tree(tree: Mapping[str, Any]) -> Answers:
    """KeyError, TypeError, ValueError or AttributeError if it is no such document."""
    listed = tree["listed"]
    return Answers(
        members={str(name): _read(each) for name, each in tree["members"].items()},
        listed=None if listed is None else read_list(listed),
        alarms=tuple(Alarm(int(each["member"], 16), str(each["name"])) for each in tree["alarms"]),
    )


def _answer(answer: Answer) -> dict[str, Any]:
    return {
        "id": f"{answer.id:x}",
        "clusterId": f"{answer.cluster_id:x}",
        "leaderId": f"{answer.leader_id:x}",
        "raftTerm": answer.raft_term,
        "revision": answer.revision,
        "learner": answer.learner,
        "version": answer.version,
        "dbSize": answer.db_size,
        "dbInUse": answer.db_in_use,
        "errors": list(answer.errors),
    }


def _read(row: Mapping[str, Any]) -> Answer:
    return Answer(
        id=int(row["id"], 16),
        cluster_id=int(row["clusterId"], 16),
        leader_id=int(row["leaderId"], 16),
        raft_term=int(row["raftTerm"]),
        revision=int(row["revision"]),
        learner=row["learner"] is True,
        version=str(row["version"]),
        db_size=int(row["dbSize"]),
        db_in_use=int(row["dbInUse"]),
        errors=tuple(map(str, row["errors"])),
    )
