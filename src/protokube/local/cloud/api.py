"""The sockets of the local cloud: one for the operator, one for each host. Which socket is asked says who asks.

The calls wait for disks and processes, so they run in worker threads; the loop only reads lines and writes lines.
Every socket can be made anew at its path: hosts outlive the daemon, and look for it there.
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

Later = Callable[..., Awaitable[Any]]
"""A call that runs in the loop itself."""


class Api:
    """Every socket of one cloud."""

    def __init__(self, paths: Paths, cloud: Cloud, workers: Executor) -> None:
        self.paths, self.cloud, self.workers = paths, cloud, workers
        self.admin_calls: dict[str, Later] = {"api_down": self.api_down}
        """What the parts of the daemon add to the operator's calls."""
        self._servers: dict[Path, asyncio.Server] = {}
        self._watching: set[asyncio.Event] = set()
        self._down_until = 0.0
        self._loop = asyncio.get_running_loop()
        cloud.on_change.append(self._changed)

    async def serve_admin(self) -> None:
        calls = Operator(self.cloud).calls()
        await self._serve(self.paths.admin_socket, calls, self.admin_calls, admin=True)

    async def serve_host(self, host: str) -> None:
        """Before the host starts, and again in each life of the daemon."""
        private.make_folder(self.paths.host(host))
        await self._serve(self.paths.host_socket(host), host_calls(self.cloud, host), {}, admin=False)

    def forget_host(self, host: str) -> None:
        """Once nobody is left to ask."""
        path = self.paths.host_socket(host)
        server = self._servers.pop(path, None)
        if server is not None:
            server.close()
            path.unlink(missing_ok=True)

    async def api_down(self, seconds: float) -> None:
        """Hang up on every host for this long, as a cloud does whose API is out of order; 0 ends it."""
        self._down_until = time.monotonic() + seconds
        self._tell()

    def close(self) -> None:
        for path, server in self._servers.items():
            server.close()
            path.unlink(missing_ok=True)

    async def _serve(self, path: Path, calls: Mapping[str, Call], later: Mapping[str, Later], *, admin: bool) -> None:
        async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                with suppress(ConnectionError, asyncio.LimitOverrunError, ValueError):
                    await self._talk(reader, writer, calls, later, admin=admin)
            finally:
                writer.close()

        if path in self._servers:
            self._servers.pop(path).close()
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        path.unlink(missing_ok=True)
        with reachable(path) as address:
            private.bind(listener, address)
        self._servers[path] = await asyncio.start_unix_server(talk, sock=listener, limit=LONGEST, backlog=100)

    async def _talk(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        calls: Mapping[str, Call],
        later: Mapping[str, Later],
        *,
        admin: bool,
    ) -> None:
        while line := await reader.readline():
            if not admin and self._is_down():
                return
            told = json.loads(line)
            if not isinstance(told, dict):
                return
            if told.get("call") == "watch":
                await self._watch(reader, writer, admin=admin)
                return
            writer.write(json.dumps(await self._answer(told, calls, later)).encode() + b"\n")
            await writer.drain()

    async def _answer(
        self, told: dict[str, Any], calls: Mapping[str, Call], later: Mapping[str, Later]
    ) -> dict[str, Any]:
        try:
            if str(told.get("call")) in later:
                return {"result": await answer(later, told)}
            return {"result": await self._loop.run_in_executor(self.workers, answer, calls, told)}
        except ProtokubeError as why:
            return {"error": encode_error(why)}
        except (OSError, sqlite3.Error) as why:
            log.exception("%s failed", told.get("call"))
            return {
                "error": encode_error(TryLater("the local cloud failed", saw=str(why), hint=f"see {self.paths.log}"))
            }

    async def _watch(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, admin: bool) -> None:
        """One line now, and one whenever something changed; until either side hangs up."""
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
        """From any thread."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._tell)

    def _tell(self) -> None:
        for changed in self._watching:
            changed.set()

    def _is_down(self) -> bool:
        return time.monotonic() < self._down_until
