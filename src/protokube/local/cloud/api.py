"""The sockets of the local cloud: one for the operator, one for each host. The socket identifies the caller.

Calls wait for disks and processes, so they run in worker threads; the event loop only reads and writes lines.
Every socket can be created again at its path: hosts outlive the daemon, and reconnect there.
"""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import sqlite3
import time
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Executor
from contextlib import suppress
from pathlib import Path
from typing import Any

from protokube.errors import ProtokubeError, TryLater
from protokube.local.base import private
from protokube.local.base.paths import Paths
from protokube.local.cloud.calls import Call, Operator, answer, host_calls
from protokube.local.cloud.cloud import Cloud
from protokube.providers.clients.local import LONGEST, encode_error, reachable

log = logging.getLogger(__name__)

AsyncCall = Callable[..., Awaitable[Any]]
"""A call that runs in the event loop itself."""


class Api:
    """Every socket of one cloud."""

    def __init__(self, paths: Paths, cloud: Cloud, workers: Executor) -> None:
        self.paths, self.cloud, self.workers = paths, cloud, workers
        self.admin_calls: dict[str, AsyncCall] = {"api_down": self.api_down}
        """Calls that the parts of the daemon add to the operator's."""
        self._servers: dict[Path, asyncio.Server] = {}
        self._watching: set[asyncio.Event] = set()
        self._down_until = 0.0
        self._loop = asyncio.get_running_loop()
        cloud.on_change.append(self._changed)

    async def serve_admin(self) -> None:
        calls = Operator(self.cloud).calls()
        await self._serve(self.paths.admin_socket, calls, self.admin_calls, admin=True)

    async def serve_host(self, host: str) -> None:
        """Called before the host starts, and again each time the daemon starts."""
        private.make_folder(self.paths.host(host))
        await self._serve(self.paths.host_socket(host), host_calls(self.cloud, host), {}, admin=False)

    def forget_host(self, host: str) -> None:
        """Remove the socket of a host that no longer runs."""
        path = self.paths.host_socket(host)
        server = self._servers.pop(path, None)
        if server is not None:
            server.close()
            path.unlink(missing_ok=True)

    async def api_down(self, seconds: float) -> None:
        """Simulate an outage of the cloud API: hang up on every host for this long; 0 ends it."""
        self._down_until = time.monotonic() + seconds
        self._notify_watchers()

    def close(self) -> None:
        for path, server in self._servers.items():
            server.close()
            path.unlink(missing_ok=True)

    async def _serve(
        self, path: Path, calls: Mapping[str, Call], async_calls: Mapping[str, AsyncCall], *, admin: bool
    ) -> None:
        async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                with suppress(ConnectionError, asyncio.LimitOverrunError, ValueError):
                    await self._serve_connection(reader, writer, calls, async_calls, admin=admin)
            finally:
                writer.close()

        if path in self._servers:
            self._servers.pop(path).close()
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        path.unlink(missing_ok=True)
        with reachable(path) as address:
            private.bind(listener, address)
        self._servers[path] = await asyncio.start_unix_server(handle, sock=listener, limit=LONGEST, backlog=100)

    async def _serve_connection(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        calls: Mapping[str, Call],
        async_calls: Mapping[str, AsyncCall],
        *,
        admin: bool,
    ) -> None:
        while line := await reader.readline():
            if not admin and self._is_down():
                return
            request = json.loads(line)
            if not isinstance(request, dict):
                return
            if request.get("call") == "watch":
                await self._watch(reader, writer, admin=admin)
                return
            writer.write(json.dumps(await self._answer(request, calls, async_calls)).encode() + b"\n")
            await writer.drain()

    async def _answer(
        self, request: dict[str, Any], calls: Mapping[str, Call], async_calls: Mapping[str, AsyncCall]
    ) -> dict[str, Any]:
        try:
            if str(request.get("call")) in async_calls:
                return {"result": await answer(async_calls, request)}
            return {"result": await self._loop.run_in_executor(self.workers, answer, calls, request)}
        except ProtokubeError as why:
            return {"error": encode_error(why)}
        except (OSError, sqlite3.Error) as why:
            log.exception("%s failed", request.get("call"))
            return {
                "error": encode_error(TryLater("the local cloud failed", saw=str(why), hint=f"see {self.paths.log}"))
            }

    async def _watch(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, admin: bool) -> None:
        """Write one line now, and one after every change, until either side hangs up."""
        changed = asyncio.Event()
        changed.set()
        self._watching.add(changed)
        hung_up = asyncio.ensure_future(reader.read())
        try:
            while not hung_up.done() and (admin or not self._is_down()):
                if changed.is_set():
                    changed.clear()
                    writer.write(json.dumps({"changed": self.cloud.changes}).encode() + b"\n")
                    await writer.drain()
                news = asyncio.ensure_future(changed.wait())
                await asyncio.wait({news, hung_up}, return_when=asyncio.FIRST_COMPLETED)
                news.cancel()
        finally:
            self._watching.discard(changed)
            hung_up.cancel()

    def _changed(self) -> None:
        """Called in any thread."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._notify_watchers)

    def _notify_watchers(self) -> None:
        for changed in self._watching:
            changed.set()

    def _is_down(self) -> bool:
        return time.monotonic() < self._down_until
