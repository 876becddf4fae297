"""Publish this master's status in the state store: who reaches nothing else of the cluster reads it there.

It must cost a round nothing. A round leaves its status here and goes on; a thread of its own decides whether it is
written, asks etcd for what the members answer, and writes it. A store that hangs or fails keeps only that thread: the
status of a later round replaces the one that waits. Written at least every five minutes and at most once a minute, also
across restarts of the agent; and never into a store that holds nothing of the cluster, which may be the wrong one.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Mapping
from typing import Any

from protokube.agent.edges import Clock
from protokube.agent.redact import redacted
from protokube.errors import Refused, TryLater
from protokube.etcd import MaintainedEtcd, Status
from protokube.members.survey.answers import Answer, Answers, to_tree
from protokube.store import NotThere, Store, layout

log = logging.getLogger("protokube.agent")
LEAST, MOST = 60.0, 300.0
"""Seconds between two writes: at least, whatever changes; and at most, although nothing does."""
EVERY = 1.0
"""Seconds between two looks at what is to be written."""
ASKING = 1.0
"""Seconds that members have to answer."""
FIRST = 10.0
"""Seconds after the agent's start before it is heard: until then it may not have met the others, although they live."""
HANGS = 180.0
"""Seconds after which a hanging write is reported."""
PASSING = frozenset({"at", "round", "took", "nextWithin", "seconds", "since", "did", "jobs"})
"""Times, counters and what only one round did: they differ from round to round and are no reason for a write."""

Tree = Mapping[str, Any]


def due(now: float, last_written: float | None, last_digest: str, digest: str, *, least: float = LEAST) -> bool:
    """Whether to write a status with this digest now; all times by one monotonic clock."""
    if last_written is None:
        return True
    age = now - last_written
    return age >= MOST or (age >= least and digest != last_digest)


def digest_of(status: Tree) -> str:
    """Of what matters in a status: equal as long as nothing but time passes."""
    return hashlib.sha256(json.dumps(_lasting(status), sort_keys=True).encode()).hexdigest()[:16]


def _lasting(tree: Any) -> Any:
    if isinstance(tree, Mapping):
        return {name: _lasting(value) for name, value in tree.items() if name not in PASSING}
    return [_lasting(each) for each in tree] if isinstance(tree, list | tuple) else tree


class Publisher:
    """Writes the newest status that it was offered. `work` runs in a thread of its own; `offer` never waits.

    `least`: seconds between two writes, at least.
    """

    def __init__(self, store: Store, etcd: Mapping[str, MaintainedEtcd], clock: Clock, *, least: float = LEAST) -> None:
        self._store, self._etcd, self._clock, self._least = store, etcd, clock, least
        self._newest: Tree | None = None
        self._began = clock.monotonic()
        self._recalled = False
        self._written: float | None = None
        """When the last write was tried, by the monotonic clock."""
        self._digest = ""
        """Of what the store holds; "" if that is not certain."""
        self._trouble = ""
        self._without_quorum: float | None = None
        """Since when no round saw a quorum, in seconds since 1970."""

    def offer(self, status: Tree) -> None:
        """The status of the round that just ended; nothing may change it any more."""
        since = self._without_quorum if self._without_quorum is not None else status["at"]
        self._without_quorum = since if status["live"] is None else None
        self._newest = status

    def work(self) -> float:
        """Write the newest status if that is due; returns the seconds until the next look."""
        status = self._newest
        if status is not None and self._clock.monotonic() - self._began >= FIRST:
            self._publish(status)
        return EVERY

    def _publish(self, status: Tree) -> None:
        cluster, machine = status["cluster"], status["machine"]["id"]
        self._recall(layout.agent(cluster, machine))
        now, digest = self._clock.monotonic(), digest_of(status)
        if not due(now, self._written, self._digest, digest, least=self._least):
            return
        self._written, self._digest = now, ""  # an attempt counts: a store that fails is asked once a minute, too
        answers = {key: survey(each) for key, each in self._etcd.items()}
        if not all(map(is_settled, answers.values())):
            digest = ""  # no round may notice when that member is back: look again in a minute
        try:
            self._write(cluster, machine, encode(self._record(status, digest, answers)))
        except (TryLater, Refused) as why:
            if why.message != self._trouble:
                log.warning("cannot publish the status of this master: %s", why.message)
            self._trouble = why.message
            return
        self._digest, self._trouble = digest, ""

    def _write(self, cluster: str, machine: str, data: bytes) -> None:
        path = layout.agent(cluster, machine)
        try:
            known = self._store.read(path)
        except NotThere:
            if not self._store.list_paths(cluster):
                raise TryLater(f"{self._store.url} holds nothing of {cluster}") from None
            self._store.create(path, data)
        else:
            self._store.replace(path, data, known.version)

    def _recall(self, path: str) -> None:
        """Once: when was this last written? An agent that ends and starts again must not write each time."""
        if self._recalled:
            return
        self._recalled = True
        try:
            known = json.loads(self._store.read(path).data)
            age, digest = self._clock.now() - float(known["at"]), str(known["digest"])
        except (TryLater, Refused, ValueError, KeyError, TypeError):
            return  # never, or nobody knows
        if age >= 0:  # otherwise a clock was set back since, and its age is unknown
            self._written, self._digest = self._clock.monotonic() - age, digest

    def _record(self, status: Tree, digest: str, answers: Mapping[str, Answers]) -> dict[str, Any]:
        more = {"digest": digest, "publishedWithin": MOST + self._least, "withoutQuorumSince": self._without_quorum}
        return {**redacted(status), **more, "etcd": {key: to_tree(each) for key, each in answers.items()}}


def encode(record: Tree) -> bytes:
    return (json.dumps(record, sort_keys=True) + "\n").encode()


def survey(etcd: MaintainedEtcd) -> Answers:
    """What the members answer now. Never raises: what fails is absent."""
    statuses = etcd.survey(ASKING)
    members = {name: _answer(each) for name, each in statuses.items()}
    try:
        listed = tuple(etcd.members()) if any(each.leader for each in statuses.values()) else None
        alarms = tuple(etcd.alarms()) if listed and any(each.errors for each in statuses.values()) else ()
    except (TryLater, Refused):
        return Answers(members=members)
    return Answers(members=members, listed=listed, alarms=alarms)


def is_settled(answers: Answers) -> bool:
    """Whether each listed member answered, follows a leader and reports no error."""
    whole = answers.listed is not None and len(answers.members) >= len(answers.listed)
    return whole and all(each.leader_id and not each.errors for each in answers.members.values())


def _answer(status: Status) -> Answer:
    return Answer(
        id=status.member_id,
        cluster_id=status.cluster_id,
        leader_id=status.leader,
        raft_term=status.raft_term,
        revision=status.revision,
        learner=status.learner,
        version=status.version,
        db_size=status.db_size,
        db_in_use=status.db_size_in_use,
        errors=status.errors,
    )
