"""A member that somebody removed from etcd's list: notice it, count for how long, and make it rejoin.

An etcd that was removed while it ran exits, and would be started again for ever. So a member that is served and does
not answer, or knows no leader, is looked for in the list of the others; a member that answers costs nothing here, since
the watch for alarms asks it anyway. `members.removal` decides. What it counts is in the generation record, so that an
agent or a machine that comes later goes on counting.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from protokube.agent import generations, homes, links
from protokube.agent.evidence import Evidence, gather
from protokube.agent.world import Home, Turn
from protokube.errors import Refused, TryLater
from protokube.members.generation import Generation
from protokube.members.removal import DAY, Lacking, Looks, Readded, is_due, look, observe
from protokube.members.start import Data, Kind, Wait

STEP = "volumes"
SILENT = 10.0
"""Seconds for which a served member has to be silent before the others are asked: it may only just be starting."""
LOOK_AGAIN = 10.0
STOPPING = 30.0
"""Seconds that an etcd whose link was taken away may need to be gone for sure."""


def of_served(turn: Turn, home: Home, generation: Generation | None) -> Evidence | None:
    """What the others say of a member that is served here and silent; None while there is nothing to ask them."""
    memory, now = turn.world.memory, turn.world.clock.monotonic()
    looked = f"looked for {home.volume} in the list"
    if home.listed is None or _answers(turn, home) or turn.waited(f"{STEP} {home.name} answers") < SILENT:
        return None
    if memory.confirmed_for(looked, now, LOOK_AGAIN) > 0:
        return None
    memory.confirm(looked, True, now)
    try:
        found = gather(turn, home, generation)
    except TryLater:  # its disk does not answer: other steps report that
        return None
    return replace(found, answers_elsewhere=False)  # it may be its own etcd that answered


def _answers(turn: Turn, home: Home) -> bool:
    """Whether it follows a leader; one that was removed and does not know it follows none."""
    watch = turn.world.space
    if watch is not None:
        sight = watch.sight(home.etcd.key)
        return sight is not None and sight.own.leader != 0
    try:
        return turn.world.etcd[home.etcd.key].status(home.member.name).leader != 0
    except (TryLater, Refused):
        return False


def count(
    turn: Turn, home: Home, data: Data, found: Evidence, generation: Generation | None
) -> tuple[Lacking | None, str]:
    """For how long a quorum's list has lacked the member, as the record says it now; or why it does not say it.

    A list that nobody could read, or a majority that nobody heard of, adds nothing and ends this agent's looks. A list
    that has the id or the peer URL ends the count, and so does data that is not there any more.
    """
    memory, now, short = turn.world.memory, turn.world.clock.monotonic(), home.member.short
    kept = f"lacking {home.volume}"
    known = generation.lacking.get(short) if generation is not None else None
    member_id = found.position.member_id if found.position is not None else None
    is_listed = any(each.id == member_id or home.member.peer_url in each.peer_urls for each in found.members or ())
    if data is Data.MISSING or (member_id is not None and is_listed):
        memory.checked.pop(kept, None)
        if known is not None:
            _change(turn, home, lambda record: record.without_lacking(short))
        return None, ""
    if member_id is None or not found.members or found.majority is None:
        memory.checked.pop(kept, None)
        return known, ""
    if generation is None:
        return None, "the generation record cannot be read"
    before, _ = memory.checked.get(kept, (None, 0.0))
    looks = look(before if isinstance(before, Looks) else None, member_id, now)
    memory.confirm(kept, looks, now)
    wanted = observe(known, looks, now=turn.world.clock.now(), readded=_readded(turn, home, generation))
    if not is_due(known, wanted, looks, home.etcd.rejoin_removed_after):
        return known, ""
    if why := _change(turn, home, lambda record: record.with_lacking(short, wanted)):
        return None, why
    memory.confirm(kept, replace(looks, unwritten=0.0), now)
    return wanted, ""


def _readded(turn: Turn, home: Home, generation: Generation) -> Readded | None:
    """When it was last made to rejoin. Today, if this agent did it and its monotonic clock says so: clocks jump."""
    known = generation.readded.get(home.member.short)
    now = turn.world.clock.monotonic()
    if known is not None and turn.world.memory.confirmed(_rejoined(home), known.member_id, now, DAY):
        return replace(known, at=turn.world.clock.now())
    return known


def _rejoined(home: Home) -> str:
    return f"rejoined {home.name}"


def _change(turn: Turn, home: Home, how: Callable[[Generation], Generation]) -> str:
    """Write the record; why it could not be written, if it could not: the next round tries again."""
    try:
        generations.change(turn, home.etcd.key, how)
    except (TryLater, Refused) as why:
        return why.message
    return ""


def stopped_for(turn: Turn, home: Home) -> float:
    """Seconds for which this agent has seen, round after round, that nothing of the volume is linked."""
    linked = links.pointing_into(turn.world, home.point)
    return 0.0 if linked else turn.waited(f"{STEP} {home.name} stopped")


def set_aside(turn: Turn, home: Home, removed: int) -> Wait:
    """Keep the data of the removed id beside where etcd looks, so that the next round joins its member anew.

    Its etcd has to be gone first. Then it is recorded: it happens once a day for each member. The record names the id,
    so that an agent which dies right after it finishes the same attempt.
    """
    if stopped_for(turn, home) < STOPPING:
        what = f"member {removed:x} of {home.name} was removed from etcd's member list"
        return Wait(f"{what}; it rejoins once its etcd has certainly stopped", Kind.REMOVED)
    short, now = home.member.short, turn.world.clock.now()

    def record(known: Generation) -> Generation:
        before = known.readded.get(short)
        done = before is not None and before.member_id == removed
        return known if done else known.with_readded(short, Readded(member_id=removed, at=now))

    generations.change(turn, home.etcd.key, record)
    turn.world.memory.confirm(_rejoined(home), removed, turn.world.clock.monotonic())
    aside = homes.on_volume(lambda: homes.move_data_aside(home), f"moving old data aside on {home.point}")
    if aside:
        turn.report.done(
            STEP, f"member {removed:x} was removed from etcd's list; its data was moved to {aside}", home.name
        )
    return Wait("it was removed from etcd's member list, and joins the other members anew", Kind.REMOVED)
