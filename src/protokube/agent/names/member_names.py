"""Publish our members' DNS names before etcd starts: peers reject a connection whose address DNS does not confirm.

A record carries the epoch of its volume. A lower epoch never overwrites a name, so a master that was suspended cannot
take a name back from its successor.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from protokube.agent import links
from protokube.agent.cache import Confirmed, StepCache, is_fresh
from protokube.agent.round import MountedVolume, Round
from protokube.errors import Refused, TryLater
from protokube.members.identity import Identity
from protokube.members.start_values import Join, Start
from protokube.records.member import MemberPlan, Publish, Refuse, Settled, Yield, plan_member, read_claim
from protokube.records.names import normalise

STEP = "names"
READ_EVERY = 300.0
"""Seconds between two reads of a name that was correct."""


@dataclass(slots=True)
class NamesCache(StepCache):
    settled: dict[str, Confirmed[tuple[str, int]]] = field(default_factory=dict)
    """By DNS name: the address and epoch that the authoritative server answered."""


def sync(round_: Round) -> None:
    if round_.edges.dns is None or not round_.edges.zone_mode:
        return
    for disk in round_.mounted:
        if disk.volume in round_.settled and isinstance(round_.decisions.get(disk.volume), Start | Join):
            with round_.reported(STEP, disk.member.dns_name):
                _one(round_, disk)


def _one(round_: Round, disk: MountedVolume) -> None:
    edges, name = round_.edges, disk.member.dns_name
    assert isinstance(disk.identity, Identity)
    ours, now = (edges.me.address, disk.identity.epoch), edges.clock.monotonic()
    settled = edges.cache.of(NamesCache).settled
    runs = bool(links.pointing_into(edges, disk.point))  # to start one, the name is read in the same round
    if not runs or not is_fresh(settled.get(name), ours, now, READ_EVERY):
        plan = _plan(round_, disk)
        if isinstance(plan, Publish):
            assert edges.dns is not None
            edges.dns.apply(plan.changes)
            round_.report.done(STEP, f"-> {edges.me.address}", name)
            plan = _plan(round_, disk)  # etcd may start only when the authoritative server answers it
        match plan:
            case Yield(why=why):
                raise Refused(why, hint="if the volume is ours for sure, delete the records of that name")
            case Refuse(why, hint):
                raise Refused(why, hint=hint)
            case Publish():
                raise TryLater(f"the authoritative server does not answer {edges.me.address} yet")
            case Settled():
                settled[name] = Confirmed(ours, now)
    round_.named.add(name)


def published_epoch(round_: Round, name: str) -> int:
    """The epoch published with a name: a new volume of its member must start above it, or could never take the name."""
    if round_.edges.dns is None or not round_.edges.zone_mode:
        return 0
    claim = read_claim(round_.edges.dns.read([name]), normalise(name))
    return claim.epoch if claim else 0


def _plan(round_: Round, disk: MountedVolume) -> MemberPlan:
    assert round_.edges.dns is not None
    assert isinstance(disk.identity, Identity)
    me, name = round_.edges.me, disk.member.dns_name
    return plan_member(round_.edges.dns.read([name]), name, me.address, disk.identity.epoch, me.id)
