"""A real cluster on which scenarios are played, with or without a bug in the agents of one group.

A bug is planted by the template of a group: hosts that are started from then on run the agent with the bug in it. All
else is what everybody gets. The cluster is watched from outside all the while, as in the chaos soak.
"""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from clusters.real import RealCluster, until
from e2e import planted_bugs
from protokube.local.cloud.cloud import device_name
from protokube.local.disk import loops
from protokube.local.host import hosts
from protokube.local.view.look import Looker
from soak.chaos.campaign import is_whole
from soak.chaos.clients import KEYS, Clients
from soak.chaos.field import Field
from soak.chaos.history import Operation, Result, by_key
from soak.chaos.linear import NotLinearizable, Register
from soak.chaos.revisions import Revisions
from soak.chaos.watch import Watch

LONG = 100.0
"""Seconds: whatever a scenario waits for on a busy machine, a bug is found within five minutes."""


def agent_with(*bugs: str) -> list[str]:
    """The command of an agent with these bugs in it."""
    source = Path(planted_bugs.__file__).read_text()
    return [sys.executable, "-c", f'{source}\n\nbe_the_agent(*{bugs!r})  # instead of "agent"\n']


@dataclass
class Scene:
    """What a scenario has: the cluster, clients that rest until they are needed, and a watch.

    Clients and what they have found out last as long as the cluster: every value is written once in its history.
    """

    cluster: RealCluster
    field: Field
    looker: Looker
    clients: Clients

    def __post_init__(self) -> None:
        self.watch: Watch  # of the play that is on
        self.registers, self.revisions = dict.fromkeys(KEYS, Register()), Revisions()

    # Members and their hosts.

    def until_whole(self) -> None:
        until(lambda: is_whole(self.looker.look()), "the cluster is whole", LONG)

    def member_id(self, member: str) -> int:
        listed = until(lambda: self.cluster.client().members(), "a quorum lists its members", LONG)
        return next(each.id for each in listed if each.peer_urls[0].startswith(f"https://etcd-{member}."))

    def report(self, host: str) -> dict[str, Any]:
        """The last report of a host's agent; empty before the first."""
        return self.cluster.agents().get(host, {})

    def rounds(self, host: str) -> int:
        return int(self.report(host).get("round", 0))

    def serves(self, host: str) -> bool:
        """Whether the host lets etcd run on a volume."""
        return any(each["linked"] for each in self.report(host).get("members", ()))

    def holder(self, member: str) -> str:
        return str(self.field.volume(member)["attached_to"] or "")

    def renewed(self, member: str) -> str:
        """The host of a member, which was started just now, from the template as it is now."""
        old = self.cluster.host_of(member)
        self.field.kill_host(old)
        until(lambda: self.holder(member) not in ("", old), f"another host has the volume of {member}", LONG)
        self.until_whole()
        return self.holder(member)

    def says(self, kind: str, text: str) -> bool:
        return any(text in note["text"] for note in self.cluster.notes(kind))

    # What a provider may do.

    @contextmanager
    def a_second_host(self, member: str) -> Iterator[str]:
        """In the group of a member's host, with nothing to do."""
        first = self.cluster.host_of(member)
        self.cluster.set_group(f"master-{member}", 2)
        try:
            yield until(lambda: self._second(member, first), f"a second host for {member}", LONG)
        finally:
            self.cluster.set_group(f"master-{member}", 1)

    def _second(self, member: str, first: str) -> str:
        group = [each["name"] for each in self.cluster.hosts() if each["group"] == f"master-{member}"]
        return next((each for each in group if each != first and self.rounds(each)), "")

    def move(self, member: str, to: str) -> None:
        """Attach a volume elsewhere and cut nobody off, as clouds do whose detach takes its time."""
        volume = self.field.volume(member)
        (loop,) = loops.bound(Path(volume["image"]))
        hosts.add_device(self.field.pid_of(to), device_name(volume["id"]), loop.number)

        def attach(table: sqlite3.Connection) -> None:
            table.execute("UPDATE volumes SET attached_to = ? WHERE id = ?", (to, volume["id"]))

        self.field.change_tags(attach)

    # Histories.

    def called(self, enough: int, *, through_all: bool = False) -> str:
        """Let the clients call until they have so many replies: what is wrong with the history; "" if nothing is.

        In the end every register is read through every member, if all of them can be asked.
        """
        operations: list[Operation] = []

        def look() -> bool:
            operations.extend(self.clients.take())
            return sum(each.result is Result.OK for each in operations) >= enough

        self.clients.resume()
        until(look, f"{enough} calls with a reply", LONG)
        self.clients.pause()
        if through_all:
            self.clients.read_everything()
        return self._check([*operations, *self.clients.take()])

    def _check(self, operations: Sequence[Operation]) -> str:
        if different := self.revisions.feed(operations):
            return different
        for key, part in by_key(operations).items():
            verdict = self.registers[key].feed(part)
            if isinstance(verdict, NotLinearizable):
                return f"the history of {key} is not linearizable: {verdict}"
            self.registers[key] = verdict
        return ""


Scenario = Callable[[Scene], str]
"""What went wrong in it; "" if nothing did. Then it leaves a cluster that is whole."""


class Ground:
    """Clusters for scenarios: the same one for as long as it is whole."""

    def __init__(self) -> None:
        self._scene: Scene | None = None
        self._stack = ExitStack()

    def play(self, scenario: Scenario) -> str:
        """What a scenario found, or what was seen from outside meanwhile."""
        scene = self._get()
        with Watch(scene.field, scene.clients) as scene.watch:
            scene.until_whole()
            found = scenario(scene)
            if not found:
                scene.until_whole()
        return "; ".join([*([found] if found else []), *scene.watch.found])

    @contextmanager
    def planted(self, member: str, *bugs: str) -> Iterator[None]:
        """In the agent of the host of this member, and of those that follow it meanwhile."""
        group = f"master-{member}"
        right = self._get().cluster.template(group)
        self._renew(group, {**right, "units": {"protokube.service": agent_with(*bugs)}})
        try:
            yield
        finally:
            self._renew(group, right)

    def _renew(self, group: str, template: dict[str, Any]) -> None:
        """Kill all hosts of a group; the template is that of their successors."""
        scene = self._get()
        scene.field.admin.call("set_group", name=group, size=1, template=template)
        for host in scene.cluster.hosts():
            if host["group"] == group:
                scene.field.kill_host(host["name"])

    def discard(self) -> None:
        """What a bug has done to this cluster is not for others."""
        self._scene = None
        self._stack.close()

    def _get(self) -> Scene:
        if self._scene is None:
            cluster = self._stack.enter_context(RealCluster()).up()
            looker = self._stack.enter_context(Looker(cluster.paths))
            clients = self._stack.enter_context(Clients(cluster.endpoints, cluster.tls, seed=1))
            clients.pause()
            self._scene = Scene(cluster, Field(cluster), looker, clients)
        return self._scene

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stack.__exit__(kind, error, at)
