"""Clusters that share zones in memory, under a fake clock: everything that can go wrong around a dns-controller.

Every write is checked when it is made: a controller that removes a foreign value, or a value that its own objects still
ask for, or that adds a value that no object ever asked for, fails the test at that call.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from builders.dns_objects import Document, read_object
from builders.owners import marks_of
from clusters.dns_whole import whole
from protokube.controllers.dns import NodeTarget, Source
from protokube.controllers.dns.controller import Controller, Round
from protokube.controllers.dns.decide.desired import RequestedValue, desired, source_of
from protokube.controllers.dns.decide.zonerules import Rule
from protokube.controllers.dns.read.agentnames import Names
from protokube.controllers.dns.read.nodes import node_target
from protokube.controllers.dns.read.objects import Ingress, Object, Pod
from protokube.controllers.dns.read.sources import ingress_source, pod_source, service_source
from protokube.controllers.dns.read.watching import Seen
from protokube.controllers.dns.write.zones import Zones
from protokube.controllers.dns.write.zonework import Policy
from protokube.errors import TryLater
from protokube.providers.dns import BadRecord, Stale
from protokube.providers.dns.given_zones import GivenZones
from protokube.providers.dns.memory import MemoryDns
from protokube.records import Change, Record
from protokube.records.onename import INHERITED
from protokube.records.owners import marked_name
from protokube.records.zones import Zone

PUBLIC, PRIVATE = Zone(name="example.com", id="Z1"), Zone(name="example.com", id="Z2", private=True)
API = "api.example.com"
"""The name that the agents manage while they are alive."""
GRACE = 30.0
SILENCE = 76.0
"""Seconds until a silent watch is detected."""
Triple = tuple[str, str, str]
"""Name, type, value."""


@dataclass(frozen=True)
class Known:
    """One object, as every part of the world knows it."""

    item: Object
    source: Source | None
    node: NodeTarget | None = None


@lru_cache(4096)
def _known(text: str) -> tuple[str, Known]:
    document = json.loads(text)
    item, meta = read_object(document), document["metadata"]
    key = "/".join(filter(None, (document["kind"].lower(), meta.get("namespace"), meta["name"])))
    if document["kind"] == "Node":
        node = node_target(item)  # type: ignore[arg-type]
        return key, Known(item, node.source, node)
    if isinstance(item, Pod):
        return key, Known(item, pod_source(item))
    return key, Known(item, ingress_source(item) if isinstance(item, Ingress) else service_source(item))  # type: ignore[arg-type]


def known(document: Document) -> tuple[str, Known]:
    return _known(json.dumps(document, sort_keys=True))


@dataclass
class Cluster:
    """The API server's objects, and what its lists show of them: implements Watches and Objects."""

    owner: str
    objects: dict[str, Known] = field(default_factory=dict)
    hidden: set[str] = field(default_factory=set)
    """Left out of the list, which looks complete."""
    lies: int = 0
    """The number of further lists that leave them out."""
    frozen: tuple[dict[str, Known], float] | None = None
    """The last list, and when: the watch has been silent since."""
    answers: bool = True
    agents: Names = field(default_factory=Names)
    ever: set[Triple] = field(default_factory=set)
    now: float = 0.0
    relists: int = 0
    asked_for: list[str] = field(default_factory=list)

    def put(self, document: Document) -> str:
        key, found = known(document)
        self.objects[key] = found
        self.hidden.discard(key)  # a watch delivers it
        self._note()
        return key

    def remove(self, key: str) -> None:
        if self.objects.pop(key, None):
            self._note()

    def _note(self) -> None:
        """While its node is unknown, a pod may publish an address that it must not publish otherwise."""
        self.ever |= {_triple(one) for one in (*self.asked(), *self.asked(nodes=False))}

    def asked(self, *, nodes: bool = True) -> tuple[RequestedValue, ...]:
        found = self.objects.values()
        sources = [each.source for each in found if each.source and not each.node]
        return desired(sources, [each.node for each in found if each.node and nodes]).asked

    def hide(self, keys: Iterable[str], *, lies: int = 0) -> None:
        self.hidden, self.lies = {*keys} & self.objects.keys(), lies

    def fall_silent(self) -> None:
        if self.frozen is None:
            self.frozen = self._listed(), self.now

    def heal(self) -> None:
        self.frozen, self.answers, self.lies, self.hidden = None, True, 0, set()

    @property
    def honest(self) -> bool:
        """Its lists match its objects."""
        return self.frozen is None and not self.hidden

    def wanted(self, reserved: Collection[str] = ()) -> Mapping[Zone, set[Triple]]:
        items, members = [each.item for each in self.objects.values()], self.agents.members
        routed = whole(items, (PUBLIC, PRIVATE), (), reserved=reserved, members=members)
        return {zone: {(want.name, want.type, want.value) for want in wants} for zone, wants in routed.wants.items()}

    def _listed(self) -> dict[str, Known]:
        return {key: each for key, each in self.objects.items() if key not in self.hidden}

    def look(self) -> Seen:
        listed, since = self.frozen or (self._listed(), self.now)
        in_touch = self.frozen is None or (self.answers and self.now - since < SILENCE)
        return Seen(
            sources={key: each.source for key, each in listed.items() if each.source and not each.node},
            nodes={each.node.name: each.node for each in listed.values() if each.node},
            agents=self.agents,
            ready=True,
            whole=in_touch,
            trouble="" if in_touch else "nothing was heard",
        )

    def relist(self) -> None:
        self.relists += 1
        if not self.answers:
            return
        self.frozen = None
        if self.lies:
            self.lies -= 1
        else:
            self.hidden = set()

    def source(self, key: str) -> Source | None:
        found = self._asked_for(key)
        return found.source if found else None

    def node(self, name: str) -> NodeTarget | None:
        found = self._asked_for(f"node/{name}")
        return found.node if found else None

    def serves(self, address: str) -> bool:
        """A single object is read whole or not at all, whatever lists leave out."""
        self._asked_for("service/default/kubernetes")
        return address in self.api_servers()

    def api_servers(self) -> set[str]:
        """The addresses of all pods that ask for the API's name."""
        return {one.want.value for one in self.asked() if one.want.name == API and one.source.startswith("pod/")}

    def who_has(self, name: str, address: str) -> str:
        """A new list is wrong in the same way as the cached one."""
        self._asked_for("node/all")
        return next((key for key, each in self._listed().items() if each.node and address in _addresses(each.node)), "")

    def holders(self) -> set[str]:
        """All addresses that can serve the API."""
        nodes = (each.node for each in self.objects.values() if each.node)
        return self.api_servers() | {address for node in nodes for address in _addresses(node)}

    def _asked_for(self, key: str) -> Known | None:
        self.asked_for.append(key)
        if not self.answers:
            raise TryLater("the API server does not answer")
        if key.partition("/")[0] not in ("pod", "service", "ingress", "node"):
            raise TryLater(f"{key} is no object")
        return self.objects.get(key)


def _addresses(node: NodeTarget) -> tuple[str, ...]:
    return *node.internal, *node.external


def _triple(one: RequestedValue) -> Triple:
    return one.want.name, one.want.type, one.want.value


@dataclass
class Wire:
    """Implements DnsProvider: the connection of one cluster to one zone. It fails on demand, and checks every write."""

    inner: MemoryDns
    place: Zone
    cluster: Cluster
    others: Collection[str]
    mode: str = ""
    """`away`, `lost` (applied, but the response is lost), `stale`, or empty."""
    bad: frozenset[str] = frozenset()
    """Names that are rejected."""
    writes: int = 0

    @property
    def zone(self) -> str:
        return self.inner.zone

    def read(self, names: Collection[str]) -> Sequence[Record]:
        self._reach()
        return self.inner.read(names)

    def list_records(self) -> Sequence[Record]:
        self._reach()
        return self.inner.list_records()

    def split(self, units: Iterable[Iterable[Change]]) -> Sequence[Sequence[Change]]:
        return self.inner.split(units)

    def apply(self, batch: Sequence[Change]) -> None:
        self._reach()
        if self.mode == "stale":
            raise Stale("somebody else wrote there, says the test")
        names = {marked_name(change.key[0]) or change.key[0] for change in batch}
        if names & self.bad:
            raise BadRecord(f"{', '.join(sorted(names & self.bad))}: turned away, says the test")
        before = self.inner.list_records()
        self.inner.apply(batch)
        self.writes += 1
        self._judge(before, self.inner.list_records())
        if self.mode == "lost":
            raise TryLater("no answer, says the test")

    def _reach(self) -> None:
        if self.mode == "away":
            raise TryLater("the DNS server does not answer, says the test")

    def _judge(self, before: Sequence[Record], after: Sequence[Record]) -> None:
        us = self.cluster.owner
        was, now = values_of(before), values_of(after)
        marks = {owner: marks_of(before, owner) for owner in (us, *self.others)}
        ours = {(line.name, line.mark.type, line.mark.value): line.mark.by for line in sorted(marks[us])}
        theirs = {(line.name, line.mark.type, line.mark.value) for owner in self.others for line in marks[owner]}
        for owner in self.others:
            assert marks_of(after, owner) == marks[owner], "marks of another cluster were changed"
        lost, hands_off = was - now, self.cluster.agents.reserved
        assert not lost & theirs, f"taken from another cluster: {lost & theirs}"
        assert not (lost - ours.keys()), f"nobody says that these are ours: {lost - ours.keys()}"
        assert now - was <= self.cluster.ever, f"nobody ever asked for {now - was - self.cluster.ever}"
        assert {each[0] for each in was ^ now}.isdisjoint(hands_off), "the agents look after this name"
        wanted = self.cluster.wanted(hands_off)[self.place]
        wrong = lost & wanted if self.cluster.honest else {each for each in lost & wanted if self._asks(ours, each)}
        assert not wrong, f"gone though objects that are there ask for it: {wrong}"
        served = {each for each in lost if ours[each] == INHERITED and each[2] in self.cluster.api_servers()}
        assert not served, f"taken out of the API's name though an API server is there: {served}"
        stand = {(line.name, line.mark.type, line.mark.value) for line in marks_of(after, us)}
        assert now - was <= stand, f"written without a mark: {now - was - stand}"
        assert stand <= now, f"marked and not there: {stand - now}"

    def _asks(self, ours: Mapping[Triple, str], value: Triple) -> bool:
        """Whether the object that the mark names asks for the value."""
        by = source_of(ours[value])
        return any(_triple(one) == value and one.source == by for one in self.cluster.asked())


def values_of(records: Iterable[Record]) -> set[Triple]:
    return {(record.name, record.type, value) for record in records if record.type != "TXT" for value in record.values}


@dataclass
class Leads:
    """Implements the election of one replica."""

    leader: bool = True
    questions: int | None = None
    """It stops leading after so many checks."""

    def leading(self) -> bool:
        if self.questions is not None:
            self.questions -= 1
            if self.questions < 0:
                self.leader, self.questions = False, None
        return self.leader

    def holder(self) -> str:
        return "" if self.leader else "another"


@dataclass
class Replica:
    controller: Controller
    leads: Leads


class World:
    """Two clusters, each with two replicas, over a public and a private zone of one name."""

    def __init__(self, owners: Sequence[str] = ("a", "b"), *, rules: Sequence[Rule] = ()) -> None:
        self.now = 0.0
        self.rules = rules
        self.dns = {zone: MemoryDns(zone.name) for zone in (PUBLIC, PRIVATE)}
        self.clusters = {owner: Cluster(owner) for owner in owners}
        self.wires = {
            owner: {
                zone: Wire(dns, zone, cluster, [each for each in owners if each != owner])
                for zone, dns in self.dns.items()
            }
            for owner, cluster in self.clusters.items()
        }
        self.replicas = {owner: [self.start(owner, leader=True), self.start(owner, leader=False)] for owner in owners}

    def start(self, owner: str, *, leader: bool, **policy: Any) -> Replica:
        """A new process, without state."""
        leads, cluster = Leads(leader), self.clusters[owner]
        options: dict[str, Any] = {"owner": owner, "grace": GRACE} | policy
        controller = Controller(
            watching=cluster,
            election=leads,
            zones=Zones(GivenZones(self.wires[owner]), self.rules),
            policy=Policy(**options),
            objects=lambda: cluster,
            clock=lambda: self.now,
        )
        return Replica(controller, leads)

    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        for cluster in self.clusters.values():
            cluster.now = self.now

    def rounds(self, owner: str) -> list[Round]:
        return [replica.controller.round() for replica in self.replicas[owner]]

    def restart(self, owner: str, which: int) -> None:
        before = self.replicas[owner][which]
        self.replicas[owner][which] = self.start(owner, leader=before.leads.leader)

    def lead(self, owner: str, *leaders: bool) -> None:
        for replica, leader in zip(self.replicas[owner], leaders, strict=True):
            replica.leads.leader, replica.leads.questions = leader, None

    def write(self, zone: Zone, *records: Record) -> None:
        """A write by another client."""
        seen = {record.key: record for record in self.dns[zone].list_records()}
        changes = [Change(before=seen.get(each.key), after=each, why="by hand") for each in records]
        self.dns[zone].apply(changes)

    def heal(self) -> None:
        for owner, cluster in self.clusters.items():
            cluster.heal()
            self.lead(owner, True, False)
            for wire in self.wires[owner].values():
                wire.mode, wire.bad = "", frozenset()

    def quiet(self) -> None:
        """Run without events for longer than any wait."""
        for gap in QUIET:
            self.pass_time(gap)
            for owner in self.clusters:
                self.rounds(owner)

    def marked(self, owner: str, zone: Zone) -> set[Triple]:
        found = marks_of(self.dns[zone].list_records(), owner)
        return {(line.name, line.mark.type, line.mark.value) for line in found}

    def inherited(self, owner: str, zone: Zone) -> set[Triple]:
        """The marked values that the agents left."""
        found = marks_of(self.dns[zone].list_records(), owner)
        return {(line.name, line.mark.type, line.mark.value) for line in found if line.mark.by == INHERITED}

    def values(self, zone: Zone) -> Iterator[Triple]:
        yield from sorted(values_of(self.dns[zone].list_records()))


QUIET = (0.0, 1.0, 61.0, GRACE + 1, 301.0, 301.0, 3601.0, GRACE + 1, 301.0, 3601.0, GRACE + 1, 0.0)
