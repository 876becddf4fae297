"""From what a user named to the places whose logs are wanted, now and while hosts come and go. Pure.

A host that is gone is followed by the next one of its group, a member by the host that holds its volume, a component by
every host that runs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from protokube.local.logs.known import Known, KnownHost
from protokube.local.logs.places import AGENT, ETCD, Place
from protokube.nearest import no_such

MAIN = "main"
KUBELET = "kubelet"


@dataclass(frozen=True, slots=True)
class Target:
    """What was asked for: the log `source` of a host, of whichever host holds a member, or of every host."""

    kind: Literal["host", "member", "component", "cloud"]
    name: str
    source: str


@dataclass(frozen=True, slots=True)
class Trail:
    """Where a target was last seen."""

    target: Target
    places: tuple[Place, ...]
    known: frozenset[str] = frozenset()
    """Hosts that lived when it was first looked for: none of them replaces one that is gone."""
    lost: frozenset[str] = frozenset()
    """Hosts of which it was said that they are gone; with an empty name, that nobody holds the member."""


def resolve(word: str, known: Known, sources: Collection[str], beside: Collection[str] = ()) -> Target:
    """`sources` are the logs that any host has, `beside` those of the cloud. NotFound, with what was probably meant."""
    host, slash, source = word.partition("/")
    if known.host(word) is not None:
        return Target("host", word, AGENT if _is_master(known, word) else KUBELET)
    members = {form: member for member in known.members for form in forms(member)}
    if word in members:
        return Target("member", members[word], source_of(members[word]))
    if slash and known.host(host) is not None:
        if source not in sources:
            raise no_such("log", source, sorted(sources), where=f"on {host}")
        return Target("host", host, source)
    if word in beside:
        return Target("cloud", word, word)
    if word in sources:
        return Target("component", word, word)
    names = [*sorted(sources), *known.members, *(each.name for each in known.living), *beside]
    also = [*members, *(each.name for each in known.hosts)]
    raise no_such("host, member or component", word, names, also=also, hint="protokube logs")


def forms(member: str) -> Iterator[str]:
    """How a member may be named: `main/a`, `etcd-a`, and `a` if it is of the first etcd cluster."""
    key, _, short = member.partition("/")
    yield member
    if key == MAIN:
        yield from (f"etcd-{short}", short)
    else:
        yield f"etcd-{key}-{short}"


def source_of(member: str) -> str:
    key = member.partition("/")[0]
    return ETCD if key == MAIN else f"{ETCD}-{key}"


def _is_master(known: Known, name: str) -> bool:
    host = known.host(name)
    return host is None or host.master


def begin(target: Target, known: Known) -> tuple[Trail, list[str]]:
    """Where it is now; with a sentence if it is not where one would look for it."""
    living = frozenset(each.name for each in known.living)
    if target.kind == "cloud":
        return Trail(target, (Place("", target.source),), living), []
    if target.kind == "component":
        shown = known.living or _last_ones(known.hosts)
        return Trail(target, tuple(Place(each.name, target.source) for each in shown), living), []
    if target.kind == "host":
        gone = target.name not in living
        notes = [f"{target.name} is gone"] if gone else []
        lost = frozenset([target.name] if gone else [])
        return Trail(target, (Place(target.name, target.source),), living, lost), notes
    holder = known.members.get(target.name)
    host = (holder.now or holder.last) if holder else ""
    places = (Place(host, target.source),) if host else ()
    if holder and holder.now:
        return Trail(target, places, living), []
    return Trail(target, places, living, frozenset([""])), [_held_by_nobody(target.name, host)]


def follow(trail: Trail, known: Known) -> tuple[Trail, list[str]]:
    """Where it is by now, and what became of where it was."""
    match trail.target.kind:
        case "host":
            return _follow_host(trail, known)
        case "member":
            return _follow_member(trail, known)
        case "component":
            return _follow_component(trail, known)
    return trail, []


def _follow_host(trail: Trail, known: Known) -> tuple[Trail, list[str]]:
    host = known.host(trail.places[0].host)
    if host is None or host.alive:
        return trail, []
    notes = [] if host.name in trail.lost else [f"{host.name} is gone"]
    lost = trail.lost | {host.name}
    for each in known.living:
        if each.group == host.group and each.number > host.number and each.name not in trail.known:
            place = Place(each.name, trail.target.source)
            return replace(trail, places=(place,), lost=lost), [*notes, f"{each.name} replaces {host.name}"]
    return replace(trail, lost=lost), notes


def _follow_member(trail: Trail, known: Known) -> tuple[Trail, list[str]]:
    name = trail.target.name
    holder, before = known.members.get(name), trail.places[0].host if trail.places else ""
    now = holder.now if holder else ""
    if not now:
        notes = [] if "" in trail.lost else [_held_by_nobody(name, before)]
        return replace(trail, lost=trail.lost | {""}), notes
    trail = replace(trail, lost=trail.lost - {""}, places=(Place(now, trail.target.source),))
    return trail, [f"{name} is on {now} now"] if now != before else []


def _follow_component(trail: Trail, known: Known) -> tuple[Trail, list[str]]:
    before, living = [each.host for each in trail.places], [each.name for each in known.living]
    gone, new = [each for each in before if each not in living], [each for each in living if each not in before]
    notes = [f"{each} is gone" for each in gone if each not in trail.lost] + [f"{each} is new" for each in new]
    places = tuple(Place(each, trail.target.source) for each in living)
    return replace(trail, places=places or trail.places, lost=trail.lost | {*gone}), notes


def _held_by_nobody(member: str, last: str) -> str:
    return f"nobody holds {member} now" + (f"; it was on {last}" if last else "")


def _last_ones(hosts: Sequence[KnownHost]) -> list[KnownHost]:
    """The newest host of each group: where nothing runs, these ran last."""
    return list({each.group: each for each in hosts}.values())
