"""Every DNS provider, each against its far side: memory, a file, three servers and Route 53 on loopback."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from fakes.name_servers import LOOPBACK, ZONE, Running, bind, embedded, knot
from fakes.route53 import ENVIRONMENT, Route53Server
from protokube.providers.dns import DnsProvider
from protokube.providers.dns.hosts import HostsDns
from protokube.providers.dns.memory import MemoryDns
from protokube.providers.dns.named_zone import NamedZone
from protokube.providers.dns.rfc2136 import Rfc2136Dns
from protokube.records import Record

SERVERS = ("embedded", "bind", "knot")
ROUTE53 = ("route53", "route53-private", "route53-agent")
WITHOUT_FILES = ("memory", *SERVERS, *ROUTE53)
"""Where there can be aliases and wildcards."""
EVERY = ("hosts", *WITHOUT_FILES)
PATIENT = 20.0
"""Seconds for an answer that has to come."""


@dataclass(frozen=True)
class Zone:
    """One zone, as empty as it gets; `connect` gives what another machine would use to reach it."""

    connect: Callable[[], DnsProvider]
    always_there: tuple[Record, ...] = ()
    writes: Callable[[], int] | None = None
    """How many writes have reached the far side, where it can tell."""
    provider: DnsProvider = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "provider", self.connect())

    def records(self) -> list[Record]:
        """Everything in the zone but what a server needs for itself."""
        return [record for record in self.provider.list_records() if record not in self.always_there]


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Running]]:
    """Servers that run until the tests of a file are over, started when first asked for."""
    running: dict[str, Running] = {}
    with ExitStack() as stack:

        def get(kind: str) -> Running:
            if kind not in running:
                folder = tmp_path_factory.mktemp(kind)
                far_side = bind(folder) if kind == "bind" else knot(folder) if kind == "knot" else embedded()
                running[kind] = stack.enter_context(far_side)
            return running[kind]

        yield get


@pytest.fixture(scope="module")
def route53() -> Iterator[Route53Server]:
    with pytest.MonkeyPatch.context() as settings:
        for name in list(os.environ):
            if name.startswith("AWS_") or name.lower().endswith("_proxy"):
                settings.delenv(name)
        for name, value in ENVIRONMENT.items():
            settings.setenv(name, value)
        with Route53Server() as server:
            yield server


def make_zone(kind: str, request: pytest.FixtureRequest) -> Zone:
    match kind:
        case "memory":
            memory = MemoryDns(ZONE)
            return Zone(lambda: memory, writes=lambda: memory.writes)
        case "route53" | "route53-private" | "route53-agent":
            return _hosted_zone(request.getfixturevalue("route53"), request, kind)
        case "hosts":
            path: Path = request.getfixturevalue("tmp_path") / "hosts"
            path.write_text("127.0.0.1 localhost\n")
            return Zone(lambda: HostsDns(ZONE, path), writes=lambda: path.stat().st_mtime_ns)
    running: Running = request.getfixturevalue("servers")(kind)
    running.empty()
    return Zone(
        lambda: Rfc2136Dns(ZONE, LOOPBACK, running.key, port=running.port, read_seconds=PATIENT),
        (Record(name=f"ns.{ZONE}", type="A", values=(LOOPBACK,), ttl=60),),
        lambda: running.serial,
    )


def _hosted_zone(server: Route53Server, request: pytest.FixtureRequest, kind: str) -> Zone:
    """A public and a private zone of one name: whatever is done to one, the other stays as it is.

    An agent finds its zone by name and id.
    """
    private = kind != "route53"
    zones = {each: server.zone(ZONE, private=each) for each in (False, True)}
    other = server.sets(zones[not private])
    request.addfinalizer(lambda: _assert_same(server.sets(zones[not private]), other))

    def connect() -> DnsProvider:
        named = kind == "route53-agent"
        return (
            NamedZone(server.account, ZONE, zone_id=zones[private].id) if named else server.account.open(zones[private])
        )

    return Zone(connect, writes=lambda: server.requests["change"])


def _assert_same(now: object, before: object) -> None:
    assert now == before


@pytest.fixture(params=EVERY)
def zone(request: pytest.FixtureRequest) -> Zone:
    return make_zone(request.param, request)


@pytest.fixture(params=WITHOUT_FILES)
def dns_zone(request: pytest.FixtureRequest) -> Zone:
    """A zone of DNS itself, not of a file that stands in for one."""
    return make_zone(request.param, request)


@pytest.fixture(params=SERVERS)
def served(request: pytest.FixtureRequest, servers: Callable[[str], Running]) -> Running:
    """A server whose zone is as empty as it gets."""
    running = servers(request.param)
    running.empty()
    return running
