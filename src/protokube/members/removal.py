"""Decide when a member that a person removed from etcd's member list rejoins automatically. Pure.

A removal is often a mistake, or half of a repair that was never finished, and sometimes intended. So a member that the
configuration lists rejoins under its name, five minutes after its id and peer URL left a quorum's member list, at most
once a day. A second removal within that day is taken as intended.

The hard part is the time. Wall clocks jump, and an agent's monotonic clock ends with the agent. So the record in the
store keeps the seconds for which agents saw the list without the member: each agent adds the time between two of its
observations, by its own monotonic clock. The wall clock can only make the wait longer.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from protokube.members.older_copy import Figures, Majority, Older, why_not_rejoin
from protokube.members.raftmark import LogPosition

DAY = 86400.0
LONGEST_GAP = 30.0
"""Longest gap between two observations that counts, in seconds. Rounds run every ten seconds; after a longer gap the
agent does not know what was listed meanwhile."""
WRITTEN_EVERY = 60.0
"""Seconds of observation between two writes of the record; an agent that dies loses no more than that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lacking:
    """Stored in the record: a quorum's member list has neither this id nor its peer URL."""

    member_id: int
    since: float
    """Wall clock time of the first observation."""
    observed: float = 0.0
    """Seconds of observation so far, by monotonic clocks."""
    meant: bool = False
    """The removal is taken as intended: it was the second within a day."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Readded:
    """Stored in the record: the member was made to rejoin in place of this removed id. Written before the rejoin."""

    member_id: int
    at: float
    """Wall clock."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Removed:
    """Input of the decision: the disk, the other members, and the records."""

    name: str
    """`main/b`."""
    etcd_name: str
    volume: str
    peer_url: str
    position: LogPosition
    epoch: int
    added: int | None
    """The id that a person has added for its peer URL and that has not started yet."""
    configured: bool
    """Whether the configuration in force lists it."""
    formed: bool | None
    """Whether the generation record says that the cluster is formed; None without a record."""
    siblings: tuple[str, ...] | None
    """Other volumes of this member; None unless the list was complete."""
    named_otherwise: bool
    """The member list has its name with another peer URL."""
    answers: bool
    """An etcd with its id still answers."""
    older: Older | None
    majority: Majority | None
    """What the listed voters have committed, if more than half of them follow one leader."""
    agreed: bool
    lacking: Lacking | None
    unrecorded: str
    """Why `lacking` is not in the record."""
    now: float
    after: float | None
    """Seconds after which it rejoins; None if it never may."""


@dataclass(frozen=True, slots=True)
class Rejoin:
    """Set the data aside and join anew under the same name."""


@dataclass(frozen=True, slots=True)
class Later:
    """Not now; no action needed."""

    why: str


@dataclass(frozen=True, slots=True)
class Never:
    """Not automatically; a person has to act."""

    why: str
    hint: str


@dataclass(frozen=True, slots=True)
class Looks:
    """One agent's consecutive observations of member lists without the member."""

    member_id: int
    last: float
    """Time of the last observation, by the agent's monotonic clock."""
    unwritten: float = 0.0
    """Seconds of observation that are not in the record yet."""


def look(before: Looks | None, member_id: int, now: float) -> Looks:
    """Add one observation; `now` is monotonic."""
    if before is None or before.member_id != member_id:
        return Looks(member_id, now)
    passed = now - before.last
    return Looks(member_id, now, before.unwritten + (passed if 0 < passed <= LONGEST_GAP else 0.0))


def observe(known: Lacking | None, looks: Looks, *, now: float, readded: Readded | None) -> Lacking:
    """The entry that the record should have; `now` is the wall clock.

    A time in the future means that the clock was wrong when it was written, or is wrong now: the count restarts. That a
    removal is intended stays with its id.
    """
    if known is None or known.member_id != looks.member_id:
        return Lacking(member_id=looks.member_id, since=now, meant=is_meant(readded, looks.member_id, now))
    if known.since > now:
        return replace(known, since=now, observed=0.0)
    return replace(known, observed=known.observed + looks.unwritten)


def is_due(known: Lacking | None, wanted: Lacking, looks: Looks, after: float | None) -> bool:
    """Whether to write the record now: on a change, once a minute, and when the wait is over."""
    if known is None or replace(wanted, observed=known.observed) != known:
        return True
    if after is None or known.meant or known.observed >= after:
        return False  # nothing depends on it any more
    return looks.unwritten >= WRITTEN_EVERY or wanted.observed >= after


def is_meant(readded: Readded | None, member_id: int, now: float) -> bool:
    """Whether a member that rejoined less than a day ago was removed again.

    The same id is not a second removal: setting its data aside may take several attempts. A rejoin with a time in the
    future counts as one within the day.
    """
    return readded is not None and readded.member_id != member_id and now - readded.at < DAY


def is_over(lacking: Lacking, now: float, after: float) -> bool:
    """Whether the wait is over, by both clocks."""
    return lacking.observed >= after and now - lacking.since >= after


def decide(seen: Removed) -> Rejoin | Later | Never:
    """Decide whether a removed member rejoins now.

    Setting its data aside must lose nothing. The removal is a log entry that a majority of the voters, possibly
    including this member, committed. The leader of the remaining members has that entry, so it has everything that was
    acknowledged before it; afterwards this member no longer counted. That holds unless the others were restored from
    something older. So their majority has to follow a leader of the same cluster whose term and commit index reach
    those of the disk, as for older copies. A disk that has progressed further is kept for a person.
    """
    what = f"member {seen.position.member_id:x} of {seen.name} was removed from etcd's member list"
    if seen.added is not None:
        what += f", and {seen.added:x} was added in its place"
    return (
        _which_disk(seen, what) or _alone(seen, what) or _others(seen, what) or _its_time(seen, what) or Rejoin()
    )  # fmt: skip


def _which_disk(seen: Removed, what: str) -> Later | Never | None:
    new_disk = f"delete {seen.volume}, and a new disk joins under the same name"
    if seen.older is not None:
        return Never(f"{what}, and {seen.volume} is an older copy of its disk: {seen.older}", new_disk)
    if not seen.configured:
        return Never(f"{what}, and the configuration does not list it", f"detach {seen.volume}")
    if seen.after is None and seen.added is None:
        return Never(f"{what}, and maintenance.rejoinRemoved is off", _ways_back(seen))
    if seen.answers:
        return Later(f"{what}; an etcd with that id still answers, and has to stop first")
    return None


def _alone(seen: Removed, what: str) -> Later | Never | None:
    if seen.formed is None:
        return Later(f"{what}; the generation record cannot be read")
    if not seen.formed:
        return Never(f"{what} before the cluster was formed", "`protokube down`, and `up` again")
    if seen.siblings is None:
        return Later(f"{what}; the list of volumes is not complete, and it may have another one")
    if seen.siblings:
        several = ", ".join((seen.volume, *seen.siblings))
        return Never(f"{what}, and it has several volumes: {several}", "untag all but one")
    if seen.named_otherwise:
        return Never(
            f"{what}, and {seen.etcd_name} is listed with other peer URLs than {seen.peer_url}",
            "correct its peer URLs",
        )
    return None


def _others(seen: Removed, what: str) -> Later | Never | None:
    disk = Figures(epoch=seen.epoch, term=seen.position.term, commit=seen.position.commit)
    why_not = why_not_rejoin(Older(disk=disk, recorded=disk), seen.position, seen.majority, agreed=seen.agreed)
    if not why_not:
        return None
    others = seen.majority
    if others is None or not seen.agreed:
        return Later(f"{what}; {why_not}")
    return Never(
        f"{what}; {why_not}",
        f"{seen.volume} has term {disk.term}, commit {disk.commit}; the others have term {others.term}, commit"
        f" {others.commit}. Keep it until it is clear which data is right; after that: {_ways_back(seen)}",
    )


def _its_time(seen: Removed, what: str) -> Later | Never | None:
    if seen.added is not None:
        return None  # a person has added the member again, so there is no reason to wait
    if seen.lacking is not None and seen.lacking.meant:
        return Never(f"{what} again within a day of its rejoining: that is taken to be meant", _ways_back(seen))
    if seen.lacking is None:
        return Later(f"{what}; since when cannot be recorded: {seen.unrecorded}")
    if seen.after is None or not is_over(seen.lacking, seen.now, seen.after):
        return Later(
            f"{what}; it rejoins by itself after {lasting(seen.after or 0.0)}, unless it is listed again or taken out"
            " of the configuration before"
        )
    return None


def lasting(seconds: float) -> str:
    """`5 minutes`."""
    minutes = round(seconds / 60)
    if seconds < 60 or minutes * 60 != seconds:
        return f"{seconds:g} seconds"
    return "1 minute" if minutes == 1 else f"{minutes} minutes"


def _ways_back(seen: Removed) -> str:
    key, _, short = seen.name.partition("/")
    return (
        f"to bring it back: `etcdctl member add {seen.etcd_name} --learner --peer-urls={seen.peer_url}`, or delete"
        f" {seen.volume}; to leave it out: take {short} out of the members of {key} in the spec"
    )
