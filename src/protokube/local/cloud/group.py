"""Instance groups: keep each group at its size, and replace hosts that died.

A host is dead when its init is; a pidfd reports that at once. Its volumes are detached while its replacement, with
another name and address, already starts.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

from protokube.errors import ProtokubeError
from protokube.local.cloud.cloud import Cloud
from protokube.local.cloud.host_registry import Host
from protokube.local.cloud.template import Template
from protokube.providers.groups import check_name_and_size

log = logging.getLogger(__name__)

SHORT_LIFE = 5.0
"""Seconds; a host that ran for less counts as failed at start."""
FREE_RESTARTS = 3
"""Failed starts in a row that are retried without back-off: a drill kills fast."""
LONGEST_PAUSE = 10.0
TRY_AGAIN = 1.0


class Starter(Protocol):
    """Start a host from its template; return the pid of its init, and when that process started."""

    def __call__(self, host: Host, template: Template) -> tuple[int, int]: ...


@dataclass(frozen=True, slots=True)
class Group:
    name: str
    size: int
    template: Template


@dataclass(slots=True)
class StartBackoff:
    """Back-off of one group: hosts in a row that ended too soon, and when the next one may start."""

    short_lives: int = 0
    not_before: float = 0.0

    def record_lifetime(self, seconds: float, now: float) -> None:
        self.short_lives = self.short_lives + 1 if seconds < SHORT_LIFE else 0
        if self.short_lives > FREE_RESTARTS:
            pause = min(0.5 * 2 ** (self.short_lives - FREE_RESTARTS), LONGEST_PAUSE)
            self.not_before = now + pause


@dataclass(frozen=True, slots=True)
class Plan:
    """Hosts to start and hosts to stop."""

    start: Sequence[str] = field(default=())
    """The name of the group, once for each host to start."""
    stop: Sequence[str] = field(default=())


def plan(observed: Sequence[Host], desired: Sequence[Group]) -> Plan:
    """Compare living hosts with the sizes of the groups; the youngest are stopped first. Pure."""
    start: list[str] = []
    stop: list[str] = []
    for group in desired:
        members = [host.name for host in observed if host.group == group.name]
        start += [group.name] * (group.size - len(members))
        stop += members[group.size :]
    return Plan(tuple(start), tuple(stop))


class Groups:
    """The group controller. It runs in the event loop; blocking work goes to worker threads."""

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
        """Hosts seen dead whose volumes are being detached."""
        self._started: dict[str, float] = {}
        self._backoff: defaultdict[str, StartBackoff] = defaultdict(StartBackoff)
        self._waiting: set[str] = set()
        """Groups whose back-off has a timer: one each, or every timer would start one for each of the others."""
        self.not_starting: dict[str, str] = {}
        """Why no host of a group starts, by the name of the group."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._watched: dict[int, str] = {}
        self._loop = asyncio.get_running_loop()
        cloud.on_death.append(self._on_declared_dead)

    # Calls of the operator.

    def groups(self) -> Sequence[Group]:
        rows = self.cloud.database.rows("SELECT * FROM groups ORDER BY name")
        return [Group(row["name"], row["size"], Template.read(json.loads(row["template"]))) for row in rows]

    async def list_groups(self) -> list[dict[str, Any]]:
        rows = self.cloud.database.rows("SELECT * FROM groups ORDER BY name")
        return [{**row, "template": json.loads(row["template"])} for row in rows]

    async def set_group(self, name: str, size: int, template: dict[str, Any]) -> None:
        """Create or change a group. Its template is stored as given, so that it is listed without our defaults."""
        check_name_and_size(name, size)
        Template.read(template)
        values = (name, size, json.dumps(template, sort_keys=True))
        with self.cloud.database.transaction() as connection:
            connection.execute("INSERT OR REPLACE INTO groups VALUES (?, ?, ?)", values)
        self.reconcile()

    async def delete_group(self, name: str) -> None:
        """Delete a group once its hosts are gone and their volumes free; no effect if there is none.

        If the daemon or the caller ends before that, the group stays at size 0, and another call deletes it.
        """
        with self.cloud.database.transaction() as connection:
            connection.execute("UPDATE groups SET size = 0 WHERE name = ?", (name,))
        going = [host.name for host in self.cloud.registry.all_hosts() if host.group == name and self._is_there(host)]
        self._dying.update(going)
        await asyncio.gather(*(self._declare_dead(host, kill=True) for host in going))
        with self.cloud.database.transaction() as connection:
            connection.execute("DELETE FROM groups WHERE name = ? AND size = 0", (name,))
        self._backoff.pop(name, None)
        self.not_starting.pop(name, None)

    async def pause_group(self) -> None:
        """Start no more hosts; a host that dies is still declared dead."""
        self.cloud.database.set("paused", True)

    async def resume_group(self) -> None:
        self.cloud.database.set("paused", False)
        self.reconcile()

    # The controller.

    async def adopt(self) -> None:
        """After a restart of the daemon: serve and watch the hosts that run."""
        for host in self.cloud.registry.all_hosts():
            if self.cloud.is_running(host):
                await self.open_socket(host.name)
                self._watch(host)
            if host.dead and self.cloud.volumes.held_by(host.name):  # `restore` could not detach them
                self._spawn(self._declare_dead(host.name, kill=False))

    def reconcile(self) -> None:
        """Begin to start missing hosts, all at once, and to stop surplus ones. Does not wait for either."""
        groups = {group.name: group for group in self.groups()}
        living = [host for host in self.cloud.registry.living() if host.name not in self._dying]
        todo = plan(living, list(groups.values()))
        for name in todo.stop:
            log.info("%s exceeds the size of its group", name)
            self._dying.add(name)
            self._spawn(self._declare_dead(name, kill=True))
        if not self.cloud.database.setting("paused", False):
            for name in todo.start:
                if self._may_start(name):
                    self._spawn(self._start(self._register(groups[name]), groups[name].template))

    def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        for handle in self._watched:
            self._loop.remove_reader(handle)
            os.close(handle)
        self._watched.clear()

    def _register(self, group: Group) -> Host:
        template = group.template
        return self.cloud.registry.add(
            group.name, zone=template.zone, master=template.master, in_use=self.cloud.is_running
        )

    async def _start(self, host: Host, template: Template) -> None:
        began = time.monotonic()
        try:
            await self.open_socket(host.name)
            pid, started = await self._in_thread(self.start_host, host, template)
        except (ProtokubeError, OSError) as why:
            log.error("%s could not be started: %s", host.name, why)
            self.not_starting[host.group] = why.in_one_line() if isinstance(why, ProtokubeError) else str(why)
            self.close_socket(host.name)
            self.cloud.registry.mark_dead(host.name)
            self._backoff[host.group].record_lifetime(0, time.monotonic())
            self._loop.call_later(TRY_AGAIN, self.reconcile)
            return
        self.cloud.registry.write_started(host.name, pid, started)
        self._started[host.name] = time.monotonic()
        self.not_starting.pop(host.group, None)
        known = self.cloud.registry.find(host.name)
        self._watch(known)
        if known.dead:  # declared dead before its pid was known, so not killed yet
            log.info("%s was declared dead while it started", host.name)
            self._spawn(self._declare_dead(host.name, kill=True))
        self.cloud.changed()
        log.info("%s runs at %s after %.2f s (pid %d)", host.name, host.address, time.monotonic() - began, pid)

    def _watch(self, host: Host) -> None:
        """Have a pidfd report the end of its init."""
        assert host.pid is not None
        try:
            handle = os.pidfd_open(host.pid)
        except ProcessLookupError:
            self._ended(host.name)
            return
        if not self.cloud.is_running(host):  # the pid was reused before it was opened
            os.close(handle)
            self._ended(host.name)
            return
        self._watched[handle] = host.name
        self._loop.add_reader(handle, self._readable, handle)

    def _readable(self, handle: int) -> None:
        self._loop.remove_reader(handle)
        with suppress(ChildProcessError):  # started by an earlier daemon, so not our child
            os.waitid(os.P_PIDFD, handle, os.WEXITED | os.WNOHANG)
        os.close(handle)
        self._ended(self._watched.pop(handle))

    def _ended(self, name: str) -> None:
        host = self.cloud.registry.find(name)
        if not host.dead:
            log.info("%s is dead", name)
            now = time.monotonic()
            self._backoff[host.group].record_lifetime(now - self._started.get(name, 0.0), now)
        self._dying.add(name)
        self._spawn(self._declare_dead(name, kill=False))
        self.reconcile()

    async def _declare_dead(self, name: str, *, kill: bool) -> None:
        """Retry until all its volumes are detached; until then no other host can attach them."""
        while True:
            try:
                await self._in_thread(lambda: self.cloud.declare_dead(name, kill=kill))
                break
            except (ProtokubeError, OSError) as why:
                log.error("%s keeps its volumes for now: %s", name, why)
                await asyncio.sleep(TRY_AGAIN)
        self._dying.discard(name)
        if not self.cloud.is_running(self.cloud.registry.find(name)):
            self.close_socket(name)

    def _is_there(self, host: Host) -> bool:
        """Whether it lives, or still runs or holds a volume although it was declared dead."""
        return not host.dead or self.cloud.is_running(host) or bool(self.cloud.volumes.held_by(host.name))

    def _may_start(self, group: str) -> bool:
        wait = self._backoff[group].not_before - time.monotonic()
        if wait > 0 and group not in self._waiting:
            log.info("%s: the next host starts in %.1f s, the last ones ended too soon", group, wait)
            self._waiting.add(group)
            self._loop.call_later(wait, self._waited, group)
        return wait <= 0

    def _waited(self, group: str) -> None:
        self._waiting.discard(group)
        self.reconcile()

    def _on_declared_dead(self) -> None:
        """A host declared dead may still run, so no pidfd reports it. Called in any thread."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self.reconcile)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _in_thread(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return await self._loop.run_in_executor(self.workers, function, *arguments)
