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
from dataclasses import dataclass
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
STEP = "publish"
"""Notes of this step are about the store; who reads the store need not be told."""
FORMAT = 1
"""Of the record; a reader of an earlier one says that it may not understand all of it."""
PASSING = frozenset({"at", "round", "took", "nextWithin", "seconds", "since", "did", "jobs", "leasesRead"})
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


@dataclass(frozen=True, slots=True)
class Listed:
    """A complete list of the volumes, and when it was read, by the monotonic clock."""

    volumes: Any
    at: float


@dataclass(frozen=True, slots=True)
class Offer:
    """The status of a round, when it ended, by the monotonic clock, and what earlier rounds add to it."""

    status: Tree
    at: float
    listed: Listed | None
    without_quorum: float | None


class Publisher:
    """Writes the newest status that it was offered. `work` runs in a thread of its own; `offer` never waits.

    `least`: seconds between two writes, at least.
    """

    def __init__(self, store: Store, etcd: Mapping[str, MaintainedEtcd], clock: Clock, *, least: float = LEAST) -> None:
        self._store, self._etcd, self._clock, self._least = store, etcd, clock, least
        self._newest: Offer | None = None
        self._listed: Listed | None = None
        """The last complete list of a round: while the provider is silent it is still the best that anybody has."""
        self._before: Listed | None = None
        """The one that this machine published before its agent started."""
        self._digested: tuple[Tree, str] | None = None
        self._began = clock.monotonic()
        self._recalled = False
        self._written: float | None = None
        """When the last write was tried, by the monotonic clock."""
        self._digest = ""
        """Of what the store holds; "" if that is not certain."""
        self.trouble = ""
        """Why the last write failed; "" if it did not."""
        self._without_quorum: float | None = None
        """Since when no round saw a quorum, in seconds since 1970."""

    def offer(self, status: Tree) -> None:
        """The status of the round that just ended; nothing may change it any more."""
        now = self._clock.monotonic()
        since = self._without_quorum if self._without_quorum is not None else status["at"]
        self._without_quorum = since if status["live"] is None else None
        if status["volumes"] is not None:
            self._listed = Listed(status["volumes"], now)
        self._newest = Offer(_without_own_notes(status), now, self._listed, self._without_quorum)

    def work(self) -> float:
        """Write the newest status if that is due; returns the seconds until the next look."""
        offer = self._newest
        if offer is not None and self._clock.monotonic() - self._began >= FIRST:
            self._publish(offer)
        return EVERY

    def _publish(self, offer: Offer) -> None:
        status = offer.status
        cluster, machine = status["cluster"], status["machine"]["id"]
        self._recall(layout.agent(cluster, machine))
        if self._digested is None or self._digested[0] is not status:
            self._digested = status, digest_of(status)
        now, digest = self._clock.monotonic(), self._digested[1]
        if not due(now, self._written, self._digest, digest, least=self._least):
            return
        self._written, self._digest = now, ""  # an attempt counts: a store that fails is asked once a minute, too
        answers = {key: survey(each) for key, each in self._etcd.items()}
        if not all(map(is_settled, answers.values())):
            digest = ""  # no round may notice when that member is back: look again in a minute
        try:
            write(self._store, cluster, machine, encode(self._record(offer, digest, answers)))
        except (TryLater, Refused) as why:
            if why.message != self.trouble:
                log.warning("cannot publish the status of this master: %s", why.message)
            self.trouble = why.message
            return
        self._digest, self.trouble = digest, ""

    def _recall(self, path: str) -> None:
        """Once: when was this last written? An agent that ends and starts again must not write each time."""
        if self._recalled:
            return
        self._recalled = True
        try:
            known = json.loads(self._store.read(path).data)
            age, digest = self._clock.now() - float(known["at"]), str(known["digest"])
            self._before = kept_list(known, self._clock.monotonic() - max(age, 0.0))
        except (TryLater, Refused, ValueError, KeyError, TypeError, OverflowError):
            return  # never, or nobody knows
        if age >= 0:  # otherwise a clock was set back since, and its age is unknown
            self._written, self._digest = self._clock.monotonic() - age, digest

    def _record(self, offer: Offer, digest: str, answers: Mapping[str, Answers]) -> dict[str, Any]:
        listed = offer.listed or self._before
        more = {
            **written(self._clock, offer.at, self._least),
            "digest": digest,
            "withoutQuorumSince": offer.without_quorum,
            "volumes": None if listed is None else listed.volumes,
            "volumesAge": None if listed is None else round(max(offer.at - listed.at, 0.0), 2),
            "etcd": {key: to_tree(each) for key, each in answers.items()},
        }
        return redacted({**offer.status, **more})


def written(clock: Clock, ended: float, least: float) -> dict[str, Any]:
    """What each record says of itself: its format, and what a reader needs to know how old it is."""
    return {
        "format": FORMAT,
        "written": clock.now(),
        "waited": round(max(clock.monotonic() - ended, 0.0), 2),
        "publishEvery": least,
        "publishedWithin": MOST + least,
    }


def kept_list(record: Tree, ended: float) -> Listed | None:
    """The list in a record that was published before; `ended` is when its round did, by the monotonic clock."""
    if record.get("volumes") is None:
        return None
    return Listed(record["volumes"], ended - float(record.get("volumesAge") or 0.0))


def write(store: Store, cluster: str, machine: str, data: bytes) -> None:
    """TryLater if the store holds nothing of the cluster: it may be the wrong one."""
    path = layout.agent(cluster, machine)
    try:
        known = store.read(path)
    except NotThere:
        if not store.list_paths(cluster):
            raise TryLater(f"{store.url} holds nothing of {cluster}") from None
        store.create(path, data)
    else:
        store.replace(path, data, known.version)


def _without_own_notes(status: Tree) -> Tree:
    report = status["report"]
    waiting = [each for each in report["waiting"] if each.get("step") != STEP]
    return status if len(waiting) == len(report["waiting"]) else {**status, "report": {**report, "waiting": waiting}}


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
