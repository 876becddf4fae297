"""Detect a member that was removed from etcd's member list, count for how long, and make it rejoin.

An etcd that is removed while it runs exits, and would crash in a loop. So if a served member does not answer, or knows
no leader, the other members' list is checked for it; a member that answers costs no extra call, since the alarm watch
reads its status anyway. `members.removal` decides. The count is kept in the generation record, so that it survives a
restart of the agent and a change of machines.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from protokube.agent import links
from protokube.agent.cache import Confirmed, StepCache, is_fresh, is_recent
from protokube.agent.etcd import generations
from protokube.agent.round import MountedVolume, Round
from protokube.agent.volume import mounted_volumes, stopped
from protokube.agent.volume.evidence import Evidence, gather
from protokube.errors import Refused, TryLater
from protokube.members.generation import Generation
from protokube.members.removal import DAY, Lacking, Looks, Readded, is_due, look, observe
from protokube.members.start_values import Data, Kind, Wait

STEP = "volumes"
SILENT = 10.0
"""Seconds without an answer from a served member before the others are queried: it may just be starting."""
LOOK_AGAIN = 10.0


@dataclass(slots=True)
class RemovalsCache(StepCache):
    """If lost, the members are queried once more, and this agent counts from zero, which only delays."""

    queried: dict[str, float] = field(default_factory=dict)
    """By volume: when the other members' list was last read."""
    looks: dict[str, Looks] = field(default_factory=dict)
    """By volume: how often, and for how long, this agent has seen the list without its member."""
    rejoined: dict[str, Confirmed[int]] = field(default_factory=dict)
    """By member: the removed id for which it was made to rejoin; also in the record."""


def of_served(round_: Round, disk: MountedVolume, generation: Generation | None) -> Evidence | None:
    """Evidence from the others about a member that is served here and does not answer; None while it is not due."""
    queried, now = round_.edges.cache.of(RemovalsCache).queried, round_.edges.clock.monotonic()
    if disk.listed is None or _answers(round_, disk) or round_.waited(f"{STEP} {disk.name} answers") < SILENT:
        return None
    if is_recent(queried.get(disk.volume), now, LOOK_AGAIN):
        return None
    queried[disk.volume] = now
    try:
        found = gather(round_, disk, generation)
    except TryLater:  # its disk does not answer: other steps report that
        return None
    return replace(found, answers_elsewhere=False)  # it may be its own etcd that answered


def _answers(round_: Round, disk: MountedVolume) -> bool:
    """Whether it answers and knows a leader; a removed member that does not know of its removal has none."""
    watch = round_.edges.space
    if watch is not None:
        sight = watch.sight(disk.etcd.key)
        return sight is not None and sight.own.leader != 0
    try:
        return round_.edges.etcd[disk.etcd.key].status(disk.member.name).leader != 0
    except (TryLater, Refused):
        return False


def count(
    round_: Round, disk: MountedVolume, data: Data, found: Evidence, generation: Generation | None
) -> tuple[Lacking | None, str]:
    """How long a quorum's list has lacked the member, after updating the record; or why the record was not updated.

    Without a list, or without answers of a majority, nothing is added, and this agent starts counting again. A list
    with the id or the peer URL ends the count, and so does missing data.
    """
    kept, now, short = round_.edges.cache.of(RemovalsCache).looks, round_.edges.clock.monotonic(), disk.member.short
    known = generation.lacking.get(short) if generation is not None else None
    member_id = found.position.member_id if found.position is not None else None
    is_listed = any(each.id == member_id or disk.member.peer_url in each.peer_urls for each in found.members or ())
    if data is Data.MISSING or (member_id is not None and is_listed):
        kept.pop(disk.volume, None)
        if known is not None:
            _change(round_, disk, lambda record: record.without_lacking(short))
        return None, ""
    if member_id is None or not found.members or found.majority is None:
        kept.pop(disk.volume, None)
        return known, ""
    if generation is None:
        return None, "the generation record cannot be read"
    looks = kept[disk.volume] = look(kept.get(disk.volume), member_id, now)
    wanted = observe(known, looks, now=round_.edges.clock.now(), readded=_readded(round_, disk, generation))
    if not is_due(known, wanted, looks, disk.etcd.rejoin_removed_after):
        return known, ""
    if why := _change(round_, disk, lambda record: record.with_lacking(short, wanted)):
        return None, why
    kept[disk.volume] = replace(looks, unwritten=0.0)
    return wanted, ""


def _readded(round_: Round, disk: MountedVolume, generation: Generation) -> Readded | None:
    """When it was last made to rejoin; now, if this agent did it within a day of its monotonic clock: clocks jump."""
    known = generation.readded.get(disk.member.short)
    done, now = round_.edges.cache.of(RemovalsCache).rejoined.get(disk.name), round_.edges.clock.monotonic()
    if known is not None and is_fresh(done, known.member_id, now, DAY):
        return replace(known, at=round_.edges.clock.now())
    return known


def _change(round_: Round, disk: MountedVolume, how: Callable[[Generation], Generation]) -> str:
    """Write the record; returns the error, or "" on success. The next round tries again."""
    try:
        generations.change(round_, disk.etcd.key, how)
    except (TryLater, Refused) as why:
        return why.message
    return ""


def set_aside(round_: Round, disk: MountedVolume, removed: int) -> Wait:
    """Move the data of the removed id out of etcd's data directory, so that the next round rejoins its member.

    Its etcd must have stopped, proven in this round. Then the rejoin is recorded, since it is allowed once a day for
    each member. The record names the id, so that after a crash the next agent finishes the same attempt.
    """
    what = f"member {removed:x} of {disk.name} was removed from etcd's member list"
    if links.pointing_into(round_.edges, disk.point):
        return Wait(f"{what}; it rejoins once its etcd has stopped", Kind.REMOVED)
    try:
        stopped.require_unused(round_, disk)
    except TryLater as why:
        return Wait(f"{what}; it rejoins once its etcd has stopped: {why.message}", Kind.REMOVED)
    short, now = disk.member.short, round_.edges.clock.now()

    def record(known: Generation) -> Generation:
        before = known.readded.get(short)
        done = before is not None and before.member_id == removed
        return known if done else known.with_readded(short, Readded(member_id=removed, at=now))

    generations.change(round_, disk.etcd.key, record)
    round_.edges.cache.of(RemovalsCache).rejoined[disk.name] = Confirmed(removed, round_.edges.clock.monotonic())
    aside = mounted_volumes.on_volume(
        lambda: mounted_volumes.move_data_aside(disk), f"moving old data aside on {disk.point}"
    )
    if aside:
        round_.report.done(
            STEP, f"member {removed:x} was removed from etcd's list; its data was moved to {aside}", disk.name
        )
    return Wait("it was removed from etcd's member list, and joins the other members anew", Kind.REMOVED)
