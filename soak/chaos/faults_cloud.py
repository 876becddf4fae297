"""Faults outside the hosts: the cloud's API, tags, DNS, the state store, an agent's clock."""

from __future__ import annotations

import json
import random
import secrets
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from protokube.agent.names import member_names
from protokube.errors import ProtokubeError
from protokube.local.host import network
from protokube.records import Change, Record
from soak.chaos.fault import Fault
from soak.chaos.field import Field

NOWHERE = "10.77.0.250"
"""An address in the hosts' network that no host has."""
INSIDE = "/srv/protokube/store"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiDown(Fault):
    """The cloud's API closes every host's connections."""

    kind: ClassVar[str] = "api-down"
    shortest: ClassVar[float] = 3.0
    longest: ClassVar[float] = 15.0
    aimed: ClassVar[bool] = False

    def apply(self, field: Field) -> None:
        field.admin.call("api_down", seconds=3600)

    def undo(self, field: Field) -> None:
        field.admin.call("api_down", seconds=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class SilentDns(Fault):
    """No reply of the DNS server reaches any host."""

    kind: ClassVar[str] = "silent-dns"
    shortest: ClassVar[float] = 3.0
    longest: ClassVar[float] = 15.0
    aimed: ClassVar[bool] = False

    def apply(self, field: Field) -> None:
        self._rules(field, "add", check=True)

    def undo(self, field: Field) -> None:
        self._rules(field, "delete", check=False)

    def _rules(self, field: Field, what: str, *, check: bool) -> None:
        with network.enter(network.switch_path(field.paths.switch)):
            for protocol in ("udp", "tcp"):
                rule = ["ip", "rule", what, "ipproto", protocol, "sport", "53", "blackhole"]
                subprocess.run(rule, check=check, capture_output=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class WrongName(Fault):
    """A name of the zone points at an unused address; the agents have to correct it."""

    name: str = ""
    """`etcd-a.internal`, `api.internal`, without the cluster's zone."""
    kind: ClassVar[str] = "wrong-dns"
    heals: ClassVar[float] = member_names.READ_EVERY + 60
    """Agents re-read names that they believe to be correct only every READ_EVERY seconds."""

    @classmethod
    def draw(cls, chance: random.Random, members: Sequence[str]) -> Self:
        member = chance.choice(list(members))
        name = chance.choice([f"etcd-{member}.internal", f"etcd-{member}.internal", "api.internal"])
        return cls(member=member, name=name, lasts=cls.lasting(chance))

    def apply(self, field: Field) -> None:
        zone = field.zone()
        name = f"{self.name}.{field.paths.cluster}"
        before = next((each for each in zone.read([name]) if each.type == "A"), None)
        ttl = before.ttl if before else 5
        wrong = Record(name=name, type="A", values=(NOWHERE,), ttl=ttl)
        zone.apply([Change(before=before, after=wrong, why="a fault")])

    def describe(self) -> str:
        return f"{self.kind} {self.name} -> {NOWHERE}"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreAway(Fault):
    """The state store is empty for a while."""

    kind: ClassVar[str] = "store-away"
    shortest: ClassVar[float] = 3.0
    longest: ClassVar[float] = 15.0
    aimed: ClassVar[bool] = False

    def apply(self, field: Field) -> None:
        (field.paths.store / field.paths.cluster).rename(field.paths.store / ".away")

    def undo(self, field: Field) -> None:
        away, home = field.paths.store / ".away", field.paths.store / field.paths.cluster
        if not away.exists():
            return
        written = [str(each.relative_to(home)) for each in home.rglob("*") if each.is_file()]
        if home.exists():
            home.rename(field.paths.store / f".written-{secrets.token_hex(4)}")
        away.rename(home)
        assert not written, f"an agent wrote into a state store that it took for an empty one: {', '.join(written)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreReadOnly(Fault):
    """The state store is read-only on every running host."""

    kind: ClassVar[str] = "store-read-only"
    shortest: ClassVar[float] = 3.0
    longest: ClassVar[float] = 15.0
    aimed: ClassVar[bool] = False

    def apply(self, field: Field) -> None:
        self._remount(field, "ro")

    def undo(self, field: Field) -> None:
        self._remount(field, "rw")

    def _remount(self, field: Field, mode: str) -> None:
        for host in field.cluster.hosts():
            with suppress(StopIteration, ProtokubeError):  # the host may be terminating
                field.cluster.inside(host["name"], "mount", "-o", f"remount,bind,{mode}", INSIDE)


@dataclass(frozen=True, slots=True, kw_only=True)
class StrippedTags(Fault):
    """A volume loses its tags, so that it is not listed, and gets them back later.

    After a while without it the cluster creates a new volume; then the old one that returns is a duplicate, and a
    person removes it.
    """

    kind: ClassVar[str] = "stripped-tags"
    alone: ClassVar[bool] = True
    shortest: ClassVar[float] = 2.0
    longest: ClassVar[float] = 40.0
    heals: ClassVar[float] = 180.0
    causes: ClassVar[tuple[str, ...]] = (r"has several volumes", r"is attached here beside")

    def apply(self, field: Field) -> None:
        volume = field.saved[self] = field.volume(self.member)["id"]
        field.change_tags(lambda table: self._list(table, volume, listed=False))

    def undo(self, field: Field) -> None:
        if volume := field.saved.get(self, ""):
            field.change_tags(lambda table: self._list(table, volume, listed=True))

    def mend(self, field: Field) -> None:
        if sum(each["member"] == self.member for each in field.admin.call("volumes")) > 1:
            field.admin.call("delete_volume", volume=field.saved[self])

    @staticmethod
    def _list(table: sqlite3.Connection, volume: str, *, listed: bool) -> None:
        table.execute("UPDATE volumes SET deleted = ? WHERE id = ?", (not listed, volume))


@dataclass(frozen=True, slots=True, kw_only=True)
class SwappedTags(Fault):
    """Two volumes carry each other's tags for a while."""

    other: str = ""
    kind: ClassVar[str] = "swapped-tags"
    alone: ClassVar[bool] = True
    shortest: ClassVar[float] = 3.0
    longest: ClassVar[float] = 30.0

    @classmethod
    def draw(cls, chance: random.Random, members: Sequence[str]) -> Self:
        one, other = chance.sample(list(members), 2) if len(members) > 1 else (members[0], members[0])
        return cls(member=one, other=other, lasts=cls.lasting(chance))

    def apply(self, field: Field) -> None:
        one, other = (field.volume(each)["id"] for each in (self.member, self.other))
        field.saved[self] = {one: self.member, other: self.other}
        self._tag(field, {one: self.other, other: self.member})

    def undo(self, field: Field) -> None:
        self._tag(field, field.saved.pop(self, {}))

    def describe(self) -> str:
        return f"{self.kind} {self.member} and {self.other} for {self.lasts:g} s"

    @staticmethod
    def _tag(field: Field, members: dict[str, str]) -> None:
        def change(table: sqlite3.Connection) -> None:
            for volume, member in members.items():
                table.execute("UPDATE volumes SET member = ? WHERE id = ?", (member, volume))

        field.change_tags(change)


ANOTHER_TIME = """
import runpy, sys, time
real = time.time

def now():
    try:
        return real() + float(open("/run/protokube/clock").read())
    except (OSError, ValueError):
        return real() + OFFSET

time.time = now
sys.argv = ["protokube", "agent"]
runpy.run_module("protokube", run_name="__main__")
"""
"""Runs the agent with a shifted wall clock; timeouts use the monotonic clock, which stays correct."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentClock(Fault):
    """The host of a member is replaced by one whose agent has a wrong clock; later the clock is corrected."""

    hours: float = 1.0
    kind: ClassVar[str] = "agent-clock"
    alone: ClassVar[bool] = True
    shortest: ClassVar[float] = 8.0
    longest: ClassVar[float] = 20.0

    @classmethod
    def draw(cls, chance: random.Random, members: Sequence[str]) -> Self:
        hours = chance.choice([-24.0, -1.0, 1.0, 24.0])
        lasts = cls.lasting(chance)
        return cls(member=chance.choice(list(members)), lasts=lasts, hours=hours)

    def apply(self, field: Field) -> None:
        old = field.host_of(self.member)
        group = next(each["group"] for each in field.cluster.hosts() if each["name"] == old)
        right: dict[str, Any] = field.cluster.template(group)
        field.saved[self] = (group, right)
        code = ANOTHER_TIME.replace("OFFSET", str(self.hours * 3600))
        field.cluster.set_group(group, 1, units={"protokube.service": [sys.executable, "-c", code]})
        field.kill_host(old)

    def undo(self, field: Field) -> None:
        if self not in field.saved:
            return
        group, right = field.saved.pop(self)
        field.admin.call("set_group", name=group, size=1, template=right)
        for host in field.cluster.hosts():
            if host["group"] == group:
                clock = field.paths.host(host["name"]) / "run/protokube/clock"
                clock.with_name("clock.new").write_text(json.dumps(0.0))
                clock.with_name("clock.new").rename(clock)

    def describe(self) -> str:
        return f"{self.kind} {self.member} {self.hours:+g} h for {self.lasts:g} s"
