"""After any history of objects and faults, then quiet, DNS holds what the objects ask for and every foreign value.

What must hold all along is checked at every write, in `clusters.dns_world`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from builders.dns_objects import Document, a_node, a_pod, a_service, an_ingress
from clusters.dns_world import API, PRIVATE, PUBLIC, World, values_of
from protokube.controllers.dns.read.agentnames import Names
from protokube.records import Record

pytestmark = pytest.mark.usefixtures("unmeasured")

SHARED = ("web.example.com", "*.apps.example.com", API)
ADDRESSES = ("10.0.0.1", "10.0.0.2", "2001:db8::1")
LEFT = ("203.0.113.7", "203.0.113.8", "10.0.0.1", "10.0.0.2")
"""What agents write to the API's name: addresses that pods get too, and some that no machine has."""
TIMES = ("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z")
FOREIGN = (
    Record(name="mail.example.com", type="A", values=("192.0.2.25",), ttl=300),
    Record(name="www.example.com", type="CNAME", values=("web.example.com",), ttl=300),
    Record(name="web.example.com", type="TXT", values=("v=spf1 -all",), ttl=300),
    Record(name="example.com", type="TXT", values=("protokube/1 is not a mark",), ttl=300),
)
TAKEN = {"mail.example.com", "www.example.com"}
"""Names that are never ours, whichever object asks for them."""

EXAMPLES = 300

owners = st.sampled_from(("a", "b"))
small = st.integers(0, 1)
seldom_none = st.sampled_from((1, 1, 1, 0))
address = st.sampled_from(ADDRESSES)
created = st.sampled_from(TIMES)
names = st.lists(st.sampled_from((*SHARED, "mail.example.com", "OWN")), min_size=1, max_size=2, unique=True)


@st.composite
def documents(draw: st.DrawFn, owner: str) -> Document:
    """One of few objects, so that each is made, changed and deleted again and again."""
    own = f"own.{owner}.example.com"
    asked = ",".join(draw(names)).replace("OWN", own) if draw(st.integers(0, 9)) else None
    views = draw(st.sampled_from(("internal_names", "external_names")))
    fields: dict[str, Any] = {views: asked, "created": draw(created)}
    name = f"o{draw(small)}"
    match draw(st.sampled_from(("pod", "pod", "node", "balancer", "alias", "port", "ingress"))):
        case "pod":
            fields["deleted"] = draw(st.sampled_from((None, None, None, "2026-01-03T00:00:00Z")))
            addresses = draw(st.lists(address, min_size=draw(seldom_none), max_size=2, unique=True))
            return a_pod(name, addresses=addresses, node=f"n{draw(small)}", **fields)
        case "node":
            role = {f"node-role.kubernetes.io/{draw(st.sampled_from(('node', 'master')))}": ""}
            internal, external = (draw(st.lists(address, min_size=draw(seldom_none), max_size=2)) for _ in "ab")
            return a_node(f"n{draw(small)}", internal=internal, external=external, labels=role, **fields)
        case "balancer":
            points = [{"ip": each} for each in draw(st.lists(address, min_size=draw(seldom_none), max_size=2))]
            return a_service(name, "LoadBalancer", *points, **fields)
        case "alias":
            fields[views] = own  # a CNAME excludes others, and which cluster is first is not the subject of this test
            return a_service(name, "LoadBalancer", {"hostname": f"lb{draw(small)}.example.net"}, **fields)
        case "port":
            return a_service(name, "NodePort", **fields)
        case _:
            points = [{"ip": each} for each in draw(st.lists(address, max_size=1))]
            hosts = [each for each in (asked or "").split(",") if each]
            return an_ingress(name, hosts, *points, created=draw(created))


Event = tuple[str, Callable[[World], object]]
"""What happens, as a text and as a function."""


def put(draw: st.DrawFn, owner: str) -> Event:
    document = draw(documents(owner))
    return f"{owner} has {document}", lambda world: world.clusters[owner].put(document)


def remove(draw: st.DrawFn, owner: str) -> Event:
    which = draw(st.integers(0, 9))

    def carried_out(world: World) -> None:
        keys = sorted(world.clusters[owner].objects)
        if keys:
            world.clusters[owner].remove(keys[which % len(keys)])

    return f"{owner} loses object {which}", carried_out


def time_passes(draw: st.DrawFn, owner: str) -> Event:
    seconds = draw(st.sampled_from((1.0, 5.0, 31.0, 61.0, 310.0, 1000.0)))

    def carried_out(world: World) -> None:
        """As it does: with a round before and after."""
        world.rounds(owner)
        world.pass_time(seconds)
        world.rounds(owner)

    return f"{seconds} s pass, with rounds of {owner}", carried_out


def list_lies(draw: st.DrawFn, owner: str) -> Event:
    hidden, lies = draw(st.sets(st.integers(0, 9), min_size=1)), draw(small)

    def carried_out(world: World) -> None:
        keys = sorted(world.clusters[owner].objects)
        world.clusters[owner].hide([key for at, key in enumerate(keys) if at in hidden], lies=lies)

    return f"the list of {owner} leaves out {sorted(hidden)}, {lies} times more", carried_out


def silent(draw: st.DrawFn, owner: str) -> Event:
    return f"{owner} hears nothing more", lambda world: world.clusters[owner].fall_silent()


def api_away(draw: st.DrawFn, owner: str) -> Event:
    def carried_out(world: World) -> None:
        world.clusters[owner].fall_silent()
        world.clusters[owner].answers = False

    return f"the API server of {owner} is away", carried_out


def api_back(draw: st.DrawFn, owner: str) -> Event:
    return f"{owner} hears again", lambda world: world.clusters[owner].heal()


def dns_breaks(draw: st.DrawFn, owner: str) -> Event:
    mode = draw(st.sampled_from(("", "", "away", "lost", "stale")))
    bad = frozenset(draw(st.sets(st.sampled_from(SHARED), max_size=1)))

    def carried_out(world: World) -> None:
        for wire in world.wires[owner].values():
            wire.mode, wire.bad = mode, bad

    return f"DNS of {owner} is {mode or 'well'}, and turns away {sorted(bad)}", carried_out


def restart(draw: st.DrawFn, owner: str) -> Event:
    which = draw(st.integers(0, 1))
    return f"{owner} restarts {which}", lambda world: world.restart(owner, which)


def lead(draw: st.DrawFn, owner: str) -> Event:
    leaders = draw(st.sampled_from(((True, False), (False, True), (False, False), (True, True))))
    return f"who leads {owner}: {leaders}", lambda world: world.lead(owner, *leaders)


def lose_lease(draw: st.DrawFn, owner: str) -> Event:
    which, after = draw(st.integers(0, 1)), draw(st.integers(0, 3))

    def carried_out(world: World) -> None:
        world.replicas[owner][which].leads.questions = after

    return f"{owner} {which} loses its lease after {after} questions", carried_out


def agents_write(draw: st.DrawFn, owner: str) -> Event:
    values = tuple(sorted(draw(st.sets(st.sampled_from(LEFT), min_size=1))))
    zone = draw(st.sampled_from((PUBLIC, PRIVATE)))

    def carried_out(world: World) -> None:
        """The agents write the name only while they are alive and no controller has marked it."""
        marked = {name for each in world.clusters for name, _, _ in world.marked(each, zone)}
        if world.clusters[owner].agents.reserved and API not in marked:
            world.write(zone, Record(name=API, type="A", values=values, ttl=10))

    return f"the agents write {values} to {zone}", carried_out


def agents_live(draw: st.DrawFn, owner: str) -> Event:
    live = draw(st.booleans())
    return f"the agents live: {live}", lambda world: _agents(world, live=live)


def _agents(world: World, *, live: bool) -> None:
    for cluster in world.clusters.values():
        cluster.agents = Names(reserved=frozenset({API})) if live else Names(left=frozenset({API}))


def api_servers_come(draw: st.DrawFn, owner: str) -> Event:
    def carried_out(world: World) -> None:
        for number in (0, 1):
            address = f"10.0.0.{number + 1}"
            world.clusters[owner].put(a_pod(f"o{number}", addresses=[address], node=f"m{number}", internal_names=API))

    return f"{owner} has API servers", carried_out


def a_round(draw: st.DrawFn, owner: str) -> Event:
    return f"a round of {owner}", lambda world: world.rounds(owner)


KINDS = (
    *(put,) * 8, *(a_round,) * 4, *(time_passes,) * 8, *(remove,) * 3, *(list_lies,) * 3, silent, api_away, api_back,
    *(dns_breaks,) * 2, restart, lead, lose_lease, agents_write, *(agents_live,) * 2, api_servers_come,
)  # fmt: skip


@st.composite
def events(draw: st.DrawFn) -> Event:
    return draw(st.sampled_from(KINDS))(draw, draw(owners))


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(history=st.lists(events(), min_size=16, max_size=60))
def test_after_any_history_and_quiet_the_zones_hold_what_the_objects_ask_for(history: list[Event]) -> None:
    world = World()
    _agents(world, live=True)
    for zone in (PUBLIC, PRIVATE):
        world.write(zone, *FOREIGN, Record(name=API, type="A", values=tuple(sorted(LEFT)), ttl=10))
    for _, event in history:
        event(world)
        assert world_is_sane(world)
    world.heal()
    _agents(world, live=False)
    world.quiet()
    for owner, cluster in world.clusters.items():
        for zone, wanted in cluster.wanted().items():
            marked, more = world.marked(owner, zone), world.inherited(owner, zone) - wanted
            assert marked == {each for each in wanted if each[0] not in TAKEN} | more, (owner, zone)
            assert {value for _, _, value in more} <= cluster.holders(), "what nobody has goes in the end"
    writes = [dns.writes for dns in world.dns.values()]
    world.quiet()
    assert [dns.writes for dns in world.dns.values()] == writes, "what is settled is written again"


def world_is_sane(world: World) -> bool:
    """Foreign values are still there, whatever happened."""
    foreign = values_of(FOREIGN)
    return all(foreign <= values_of(dns.list_records()) for dns in world.dns.values())
