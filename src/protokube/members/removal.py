"""A member that somebody removed from etcd's list by hand: when does it rejoin by itself? Pure.

Removing a member is often a mistake, or half of a repair that was never finished, and sometimes meant. So a member that
the configuration lists rejoins under its name, five minutes after its id and its peer URL left a quorum's list, once a
day. Whoever removes it again within that day means it.

What is hard is the time. Wall clocks jump, and an agent's monotonic clock ends with the agent. So the record in the
store keeps the seconds for which agents saw the list lack the member: each adds what passed on its own monotonic clock
between two looks. The wall clock can only make that longer.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from protokube.members.older import Figures, Majority, Older, why_not_rejoin
from protokube.members.raftmark import LogPosition

DAY = 86400.0
LONGEST_GAP = 30.0
"""Seconds between two looks that count. Rounds come every ten seconds; who was away longer saw nothing meanwhile."""
WRITTEN_EVERY = 60.0
"""Seconds of looks between two writes of the record; an agent that dies loses no more than that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lacking:
    """In the record: a quorum's list has neither this id nor its peer URL."""

    member_id: int
    since: float
    """Wall clock, of the first look."""
    observed: float = 0.0
    """Seconds for which it was seen so, from look to look, by monotonic clocks."""
    meant: bool = False
    """It was removed a second time within a day."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Readded:
    """In the record: for this removed id the member was made to join anew. Written before anything is done."""

    member_id: int
    at: float
    """Wall clock."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Removed:
    """What the decision rests on: the disk, the others, and what was recorded."""

    name: str
    """`main/b`."""
    etcd_name: str
    volume: str
    peer_url: str
    position: LogPosition
    epoch: int
    added: int | None
    """The id that somebody has added for its peer URL, and that never started."""
    configured: bool
    """Whether the configuration in force lists it."""
    formed: bool | None
    """Whether the generation record says that the cluster is formed; None without a record."""
    siblings: tuple[str, ...] | None
    """Other volumes of this member; None unless the list was complete."""
    named_otherwise: bool
    """The list has its name with another peer URL."""
    answers: bool
    """A running etcd has its id."""
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
    """Not now; nobody has to act."""

    why: str


@dataclass(frozen=True, slots=True)
class Never:
    """Not by itself; a person reads why."""

    why: str
    hint: str


@dataclass(frozen=True, slots=True)
class Looks:
    """One agent's looks at lists that lacked the member, without a look in between that says otherwise."""

    member_id: int
    last: float
    """By the agent's monotonic clock."""
    unwritten: float = 0.0
    """Seconds between the looks that are not in the record yet."""


def look(before: Looks | None, member_id: int, now: float) -> Looks:
    """One more; `now` is monotonic."""
    if before is None or before.member_id != member_id:
        return Looks(member_id, now)
    passed = now - before.last
    return Looks(member_id, now, before.unwritten + (passed if 0 < passed <= LONGEST_GAP else 0.0))


def observe(known: Lacking | None, looks: Looks, *, now: float, readded: Readded | None) -> Lacking:
    """What the record should say; `now` is the wall clock.

    A time in the future says that a clock was wrong when it was written, or is wrong now: the count begins anew. That a
    removal is meant stays with its id.
    """
    if known is None or known.member_id != looks.member_id:
        return Lacking(member_id=looks.member_id, since=now, meant=is_meant(readded, looks.member_id, now))
    if known.since > now:
        return replace(known, since=now, observed=0.0)
    return replace(known, observed=known.observed + looks.unwritten)


def is_due(known: Lacking | None, wanted: Lacking, looks: Looks, after: float | None) -> bool:
    """Whether the record has to be written now: for what is new in it, once a minute, and when the time is over."""
    if known is None or replace(wanted, observed=known.observed) != known:
        return True
    if after is None or known.meant or known.observed >= after:
        return False  # nothing depends on it any more
    return looks.unwritten >= WRITTEN_EVERY or wanted.observed >= after


def is_meant(readded: Readded | None, member_id: int, now: float) -> bool:
    """Whether a member that was made to rejoin not a day ago was removed again.

    The same id is none again: setting its data aside may take several attempts. A rejoin in the future counts as today.
    """
    return readded is not None and readded.member_id != member_id and now - readded.at < DAY


def is_over(lacking: Lacking, now: float, after: float) -> bool:
    """Whether the time to wait has passed, by every clock."""
    return lacking.observed >= after and now - lacking.since >= after


def decide(seen: Removed) -> Rejoin | Later | Never:
    """Whether a removed member rejoins now.

    Is nothing lost by setting its data aside? Its removal is an entry of the log that a majority of the voters, it may
    have been one of them, committed. The leader of those that are left has that entry, so it has everything that was
    acknowledged before it; afterwards this member counted for nothing. That holds if the others went on from there, and
    were not put back to something older. So their majority has to follow a leader of this very cluster whose term and
    commit reach those of the disk, as for older copies. A disk that came further is kept for a person.
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
        return None  # a person acted, and nothing is gained by waiting
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
