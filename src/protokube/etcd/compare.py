"""Collect status, hash and member list of every member, for `members.agreement` to judge.

Clients write meanwhile, so the order of the requests matters: each pass over all members' status ends before the next
one begins. If a compaction interferes, the comparison is repeated next time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from protokube.errors import ProtokubeError
from protokube.etcd import Etcd, Status
from protokube.members.agreement import LOOKS, Comparison, Hashed, Progress, Witness, judge

T = TypeVar("T")
TRIES, PAUSE = 10, 0.02
"""How long a voter may take to apply what another has applied already: a healthy one needs milliseconds."""


def compare(etcd: Etcd, endpoints: Iterable[str]) -> Comparison:
    """Compare the members with these names (the keys of `Endpoints`). Never raises: a member that fails is absent."""
    names = list(endpoints)
    first = _each(names, etcd.status)
    voters = {name: status for name, status in first.items() if not status.learner}
    common = min((status.revision for status in voters.values()), default=0)
    hashes = _each(voters, lambda name: _hashed(etcd, name, common))
    looks = [first, _each(first, etcd.status)]
    target = max((looks[1][name].applied_index for name in looks[1].keys() & voters.keys()), default=0)
    looks.append(_each(looks[-1], lambda name: _caught_up(etcd, name, target)))
    lists = _each(looks[-1], etcd.listed_by)
    while len(looks) < LOOKS:
        looks.append(_each(looks[-1], etcd.status))
    witnesses = [
        Witness(
            name=name,
            cluster_id=first[name].cluster_id,
            members=tuple(lists[name]),
            looks=tuple(_progress(look[name]) for look in looks),
            hashed=hashes.get(name),
            learner=first[name].learner,
        )
        for name in looks[-1].keys() & lists.keys()
    ]
    learners = first.keys() - voters.keys()
    return judge(witnesses, set(names) - {each.name for each in witnesses} - learners)


def _each(names: Iterable[str] | Mapping[str, object], ask: Callable[[str], T]) -> dict[str, T]:
    """The replies by member, without those that failed."""
    answers = {}
    for name in names:
        try:
            answers[name] = ask(name)
        except ProtokubeError:
            continue
    return answers


def _caught_up(etcd: Etcd, name: str, target: int) -> Status:
    """Its status once it has applied the target index, or after a short timeout."""
    for _ in range(TRIES):
        status = etcd.status(name)
        if status.applied_index >= target or status.learner:
            break
        time.sleep(PAUSE)
    return status


def _hashed(etcd: Etcd, name: str, revision: int) -> Hashed:
    found = etcd.hash(name, revision)
    return Hashed(hash=found.hash, revision=found.revision, compacted=found.compacted)


def _progress(status: Status) -> Progress:
    return Progress(status.revision, status.applied_index)
