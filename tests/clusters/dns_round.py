"""One dns-controller over a zone in memory, round by round: for tests of who is told what."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from builders.dns_objects import Document, read_object
from protokube.controllers.dns import NodeTarget, Source
from protokube.controllers.dns.controller import Controller, Round
from protokube.controllers.dns.decide.zonerules import choose
from protokube.controllers.dns.read.agentnames import Names
from protokube.controllers.dns.read.watching import Seen
from protokube.controllers.dns.tell.explain import Everything
from protokube.controllers.dns.write.zones import Zones
from protokube.controllers.dns.write.zonework import Policy
from protokube.providers.dns.given_zones import given
from protokube.providers.dns.memory import MemoryDns
from protokube.records import Change, Record
from protokube.records.zones import Zone

OWNER = "cluster-a"
ZONE = "example.com"
THE_ZONE = Zone(name=ZONE, id=ZONE)


@dataclass
class Story:
    """Objects, a zone, and the rounds between them; time passes when told to."""

    dns: MemoryDns = field(default_factory=lambda: MemoryDns(ZONE))
    documents: list[Document] = field(default_factory=list)
    leads: bool = True
    whole: bool = True
    reserved: frozenset[str] = frozenset()
    now: float = 1000.0
    grace: float = 30.0

    def __post_init__(self) -> None:
        self.controller = Controller(
            watching=self, election=self, zones=Zones(given(self.dns), ()), objects=lambda: self,
            policy=Policy(owner=OWNER, grace=self.grace), clock=lambda: self.now,
        )  # fmt: skip

    def round(self, *documents: Document, after: float = 0.0) -> Round:
        """With these objects and no others."""
        self.documents = list(documents)
        self.now += after
        return self.controller.round()

    def write(self, *records: Record) -> None:
        """As somebody else does it."""
        self.dns.apply([Change(before=None, after=record, why="by hand") for record in records])

    @property
    def objects(self) -> Everything:
        return Everything(
            objects=[read_object(each) for each in self.documents],
            managed=choose([THE_ZONE], ()),
            agents=Names(reserved=self.reserved),
        )

    @property
    def everything(self) -> Everything:
        """With what stands in the zone."""
        return replace(self.objects, records={THE_ZONE: self.dns.list_records()})

    def look(self) -> Seen:
        seen = self.objects
        return Seen(
            sources=seen.sources, nodes=seen.nodes, agents=seen.agents, ready=True, whole=self.whole,
            trouble="" if self.whole else "the watch is silent",
        )  # fmt: skip

    def relist(self) -> None:
        """The list is always new here."""

    def leading(self) -> bool:
        return self.leads

    def holder(self) -> str:
        return "" if self.leads else "another"

    def source(self, key: str) -> Source | None:
        return self.objects.sources.get(key)

    def node(self, name: str) -> NodeTarget | None:
        return self.objects.nodes.get(name)

    def serves(self, address: str) -> bool:
        return False

    def who_has(self, name: str, address: str) -> str:
        return ""


def a_record(name: str, *values: str, type: str = "A", ttl: int = 60) -> Record:  # noqa: A002
    return Record(name=f"{name}.{ZONE}", type=type, values=tuple(sorted(values)), ttl=ttl)
