"""Instance groups: each has so many hosts, and a host that died is replaced by another one.

A host is dead when its first process is; the kernel says so at once through a pidfd. Then its volumes are taken from
it while its successor, with another name and address, already starts.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

from protokube.errors import InvalidRequest, ProtokubeError
from protokube.local.cloud.cloud import Cloud
from protokube.local.cloud.host_registry import Host
from protokube.local.cloud.template import Template

log = logging.getLogger(__name__)

SOON = 5.0
"""Seconds; a host that lived for less did not get anywhere."""
FORGIVEN = 3
"""So many short lives in a row are replaced without delay: a drill kills fast."""
LONGEST_PAUSE = 10.0
TRY_AGAIN = 1.0
NAME = r"[a-z0-9]([a-z0-9-]{0,50}[a-z0-9])?"
"""Room is left for what makes a host's name of it."""


class Starter(Protocol):
    """Starts a host from its template, and says which process its init is and when that began."""

    def __call__(self, host: Host, template: Template) -> tuple[int, int]: ...


@dataclass(frozen=True, slots=True)
class Group:
    name: str
    size: int
    template: Template


@dataclass(slots=True)
class Patience:
    """How often hosts of a group ended too soon, and when the next one may start."""

    short_lives: int = 0
    not_before: float = 0.0

    def lived(self, seconds: float, now: float) -> None:
        self.short_lives = self.short_lives + 1 if seconds < SOON else 0
        if self.short_lives > FORGIVEN:
            pause = min(0.5 * 2 ** (self.short_lives - FORGIVEN), LONGEST_PAUSE)
            self.not_before = now + pause


@dataclass(frozen=True, slots=True)
class Plan:
    """What is missing, and who is too many."""

    start: Sequence[str] = field(default=())
    """One entry of the group's name for each host to start."""
    stop: Sequence[str] = field(default=())


def plan(observed: Sequence[Host], desired: Sequence[Group]) -> Plan:
    """Compare the hosts that live with what the groups ask for; the youngest go first. Pure."""
    start: list[str] = []
    stop: list[str] = []
    for group in desired:
        members = [host.name for host in observed if host.group == group.name]
        start += [group.name] * (group.size - len(members))
        stop += members[group.size :]
    return Plan(tuple(start), tuple(stop))


class Groups:
    """The controller; everything in it runs in the loop, and what waits in worker threads."""

    def __init__(
        self,
        cloud: Cloud,
        workers: Executor,
        start: Starter,
        *,
        open_socket: Callable[[str], Awaitable[None]],
        close_socket: Callable[[str], None],
    ) -> None:
        self.cloud, self.workers, self.start_host = cloud, workers, start
        self.open_socket, self.close_socket = open_socket, close_socket
        self._dying: set[str] = set()
        """Seen dead, and their volumes are being taken away."""
        self._born: dict[str, float] = {}
        self._patience: defaultdict[str, Patience] = defaultdict(Patience)
        self._tasks: set[asyncio.Task[None]] = set()
        self._watched: dict[int, str] = {}
        self._loop = asyncio.get_running_loop()
        cloud.on_death.append(self._somebody_died)

    # What the operator asks.

    def groups(self) -> Sequence[Group]:
        rows = self.cloud.database.rows("SELECT * FROM groups ORDER BY name")
        return [Group(row["name"], row["size"], Template.read(json.loads(row["template"]))) for row in rows]

    async def set_group(self, name: str, size: int, template: dict[str, Any]) -> None:
        if not re.fullmatch(NAME, str(name)) or type(size) is not int or size < 0:
            raise InvalidRequest(f"{name!r} cannot be a group of {size!r}", want="a name of a-z, 0-9 and -; a number")
        values = (name, size, Template.read(template).encode())
        with self.cloud.database.transaction() as connection:
            connection.execute("INSERT OR REPLACE INTO groups VALUES (?, ?, ?)", values)
        self.reconcile()

    async def pause_group(self) -> None:
        """Start nobody any more; whoever dies is still declared dead."""
        self.cloud.database.set("paused", True)

    async def resume_group(self) -> None:
        self.cloud.database.set("paused", False)
        self.reconcile()

    # What happens.

    async def adopt(self) -> None:
        """In a new life of the daemon: go on with the hosts that run."""
        for host in self.cloud.census.everybody():
            if self.cloud.is_running(host):
                await self.open_socket(host.name)
                self._watch(host)
            if host.dead and self.cloud.volumes.held_by(host.name):  # not restored for now
                self._spawn(self._declare(host.name, kill=False))

    def reconcile(self) -> None:
        """Begin to start who is missing, all at once, and to stop who is too many. Waits for nothing."""
        groups = {group.name: group for group in self.groups()}
        living = [host for host in self.cloud.census.living() if host.name not in self._dying]
        todo = plan(living, list(groups.values()))
        for name in todo.stop:
            log.info("%s is one too many", name)
            self._dying.add(name)
            self._spawn(self._declare(name, kill=True))
        if not self.cloud.database.setting("paused", False):
            for name in todo.start:
                if self._may_start(name):
                    self._spawn(self._start(self._admit(groups[name]), groups[name].template))

    def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        for handle in self._watched:
            self._loop.remove_reader(handle)
            os.close(handle)
        self._watched.clear()

    def _admit(self, group: Group) -> Host:
        template = group.template
        return self.cloud.census.admit(
            group.name, zone=template.zone, master=template.master, in_use=self.cloud.is_running
        )

    async def _start(self, host: Host, template: Template) -> None:
        began = time.monotonic()
        try:
            await self.open_socket(host.name)
            pid, started = await self._in_thread(self.start_host, host, template)
        except (ProtokubeError, OSError) as why:
            log.error("%s could not be started: %s", host.name, why)
            self.close_socket(host.name)
            self.cloud.census.bury(host.name)
            self._patience[host.group].lived(0, time.monotonic())
            self._loop.call_later(TRY_AGAIN, self.reconcile)
            return
        self.cloud.census.write_started(host.name, pid, started)
        self._born[host.name] = time.monotonic()
        known = self.cloud.census.find(host.name)
        self._watch(known)
        if known.dead:  # by a decision that could not kill it yet
            log.info("%s was declared dead while it started", host.name)
            self._spawn(self._declare(host.name, kill=True))
        self.cloud.changed()
        log.info("%s runs at %s after %.2f s (pid %d)", host.name, host.address, time.monotonic() - began, pid)

    def _watch(self, host: Host) -> None:
        """Have the kernel tell when its init ends."""
        assert host.pid is not None
        try:
            handle = os.pidfd_open(host.pid)
        except ProcessLookupError:
            self._ended(host.name)
            return
        if not self.cloud.is_running(host):  # between the two, the pid went to somebody else
            os.close(handle)
            self._ended(host.name)
            return
        self._watched[handle] = host.name
        self._loop.add_reader(handle, self._readable, handle)

    def _readable(self, handle: int) -> None:
        self._loop.remove_reader(handle)
        with suppress(ChildProcessError):  # started by an earlier life of the daemon: not ours to reap
            os.waitid(os.P_PIDFD, handle, os.WEXITED | os.WNOHANG)
        os.close(handle)
        self._ended(self._watched.pop(handle))

    def _ended(self, name: str) -> None:
        host = self.cloud.census.find(name)
        if not host.dead:
            log.info("%s is dead", name)
            now = time.monotonic()
            self._patience[host.group].lived(now - self._born.get(name, 0.0), now)
        self._dying.add(name)
        self._spawn(self._declare(name, kill=False))
        self.reconcile()

    async def _declare(self, name: str, *, kill: bool) -> None:
        """Until it is done: a disk that cannot be taken away now is taken later, and is nobody's meanwhile."""
        while True:
            try:
                await self._in_thread(lambda: self.cloud.declare_dead(name, kill=kill))
                break
            except (ProtokubeError, OSError) as why:
                log.error("%s keeps its volumes for now: %s", name, why)
                await asyncio.sleep(TRY_AGAIN)
        self._dying.discard(name)
        if not self.cloud.is_running(self.cloud.census.find(name)):
            self.close_socket(name)

    def _may_start(self, group: str) -> bool:
        wait = self._patience[group].not_before - time.monotonic()
        if wait > 0:
            log.info("%s: the next host starts in %.1f s, the last ones ended too soon", group, wait)
            self._loop.call_later(wait, self.reconcile)
        return wait <= 0

    def _somebody_died(self) -> None:
        """By decision, perhaps: the kernel does not tell of that. From any thread."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self.reconcile)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _in_thread(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return await self._loop.run_in_executor(self.workers, function, *arguments)
