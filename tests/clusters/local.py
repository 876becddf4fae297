"""A local cloud without hosts: its real tables, disks and sockets, in this process, for machines that only ask."""

from __future__ import annotations

import asyncio
import subprocess
import threading
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from builders.volumes import nothing_left_behind
from fakes.event_loops import close_server, end_tasks
from protokube.errors import TryLater
from protokube.local.base.db import Database
from protokube.local.base.paths import Paths
from protokube.local.cloud.api import Api
from protokube.local.cloud.cloud import Cloud
from protokube.local.host import hosts
from protokube.providers.clients.local import LocalClient

T = TypeVar("T")


class PlainProcesses:
    """Hosts that are one process each, in no namespace; what is put into their /dev is written down."""

    def __init__(self) -> None:
        self.processes: dict[int, subprocess.Popen[bytes]] = {}
        self.devices: dict[tuple[int, str], tuple[int, int]] = {}
        self.undying: set[int] = set()
        """Hang in the kernel, and cannot be killed for now."""

    def start(self) -> tuple[int, int]:
        process = subprocess.Popen(["sleep", "1000"], start_new_session=True)
        self.processes[process.pid] = process
        return process.pid, hosts.started_at(process.pid)

    def alive(self, pid: int, started: int) -> bool:
        return hosts.alive(pid, started)

    def kill(self, pid: int) -> None:
        if pid in self.undying:
            raise TryLater(f"{pid} is still dying")
        hosts.kill(pid)

    def freeze(self, pid: int) -> None:
        hosts.freeze(pid)

    def thaw(self, pid: int) -> None:
        hosts.thaw(pid)

    def add_device(self, pid: int, name: str, number: tuple[int, int]) -> None:
        self.devices[pid, name] = number

    def remove_device(self, pid: int, name: str) -> None:
        self.devices.pop((pid, name), None)

    def close(self) -> None:
        for process in self.processes.values():
            process.kill()
            process.wait()


class LoopThread:
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever)
        self.thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(20)

    def close(self) -> None:
        self.run(end_tasks(cancel=True))
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()


class CloudWithoutHosts:
    """Everything but namespaces and the group."""

    def __init__(self, root: Path) -> None:
        self.paths = Paths.at(root)
        self.paths.create()
        self.database = Database(Path(":memory:"))
        self.machinery = PlainProcesses()
        self.cloud = Cloud(self.paths, self.database, self.machinery)
        self.workers = ThreadPoolExecutor(16)
        self.thread = LoopThread()
        self.api = self.thread.run(self._serve())
        self._left_behind = nothing_left_behind(self.paths.root)

    async def _serve(self) -> Api:
        api = Api(self.paths, self.cloud, self.workers)
        await api.serve_admin()
        return api

    @property
    def admin(self) -> LocalClient:
        return LocalClient(self.paths.admin_socket)

    def add_machine(self, group: str = "masters", *, master: bool = True) -> str:
        """One that asks, but has no processes: nothing appears in a /dev of its own."""
        name = self.cloud.registry.add(group, zone="local", master=master).name
        self.thread.run(self.api.serve_host(name))
        return name

    def add_running_machine(self, group: str = "masters") -> str:
        name = self.add_machine(group)
        self.cloud.registry.write_started(name, *self.machinery.start())
        return name

    def change_tags(self, volume: str, *, epoch: int, last_holder: str) -> None:
        """Behind the back of every host, as somebody does who edits tags at the provider."""
        with self.database.transaction() as connection:
            query = "UPDATE volumes SET epoch = ?, last_holder = ? WHERE id = ?"
            connection.execute(query, (epoch, last_holder, volume))

    def client(self, machine: str) -> LocalClient:
        return LocalClient(self.paths.host_socket(machine))

    def __enter__(self) -> Self:
        self._left_behind.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.thread.run(self._close())
        self.thread.close()
        self.workers.shutdown()
        self.machinery.close()
        self.database.close()
        self._left_behind.__exit__(None, None, None)

    async def _close(self) -> None:
        for server in self.api._servers.values():
            await close_server(server)
        self.api.close()
