"""Our members' names in DNS, before etcd starts: peers turn away whoever DNS does not point at.

A record carries the epoch of its volume. A lower epoch never overwrites a name, so a master that slept cannot take a
name back from its successor.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from protokube.agent import links
from protokube.agent.cache import Confirmed, StepCache, is_fresh
from protokube.agent.world import Home, Turn
from protokube.errors import Refused, TryLater
from protokube.members.identity import Identity
from protokube.members.start import Join, Start
from protokube.records.member import MemberPlan, Publish, Refuse, Settled, Yield, plan_member, read_claim
from protokube.records.names import normalise

STEP = "names"
READ_EVERY = 300.0
"""Seconds between two readings of a name that was in order."""


@dataclass(slots=True)
class NamesCache(StepCache):
    settled: dict[str, Confirmed[tuple[str, int]]] = field(default_factory=dict)
    """By DNS name: the address and epoch with which the authoritative side answered."""


def sync(turn: Turn) -> None:
    if turn.world.dns is None or not turn.world.zone_mode:
        return
    for home in turn.homes:
        if home.volume in turn.settled and isinstance(turn.decisions.get(home.volume), Start | Join):
            with turn.reported(STEP, home.member.dns_name):
                _one(turn, home)


def _one(turn: Turn, home: Home) -> None:
    world, name = turn.world, home.member.dns_name
    assert isinstance(home.identity, Identity)
    ours, now = (world.me.address, home.identity.epoch), world.clock.monotonic()
    settled = world.memory.of(NamesCache).settled
    runs = bool(links.pointing_into(world, home.point))  # to start one, the name is read in the same round
    if not runs or not is_fresh(settled.get(name), ours, now, READ_EVERY):
        plan = _plan(turn, home)
        if isinstance(plan, Publish):
            assert world.dns is not None
            world.dns.apply(plan.changes)
            turn.report.done(STEP, f"-> {world.me.address}", name)
            plan = _plan(turn, home)  # etcd may start only when the authoritative side really answers so
        match plan:
            case Yield(why=why):
                raise Refused(why, hint="if the volume is ours for sure, delete the records of that name")
            case Refuse(why, hint):
                raise Refused(why, hint=hint)
            case Publish():
                raise TryLater(f"the authoritative server does not answer {world.me.address} yet")
            case Settled():
                settled[name] = Confirmed(ours, now)
    turn.named.add(name)


def published_epoch(turn: Turn, name: str) -> int:
    """The greatest epoch beside a name: a new volume of its member has to begin above it, or could never have it."""
    if turn.world.dns is None or not turn.world.zone_mode:
        return 0
    claim = read_claim(turn.world.dns.read([name]), normalise(name))
    return claim.epoch if claim else 0


def _plan(turn: Turn, home: Home) -> MemberPlan:
    assert turn.world.dns is not None
    assert isinstance(home.identity, Identity)
    me, name = turn.world.me, home.member.dns_name
    return plan_member(turn.world.dns.read([name]), name, me.address, home.identity.epoch, me.id)
