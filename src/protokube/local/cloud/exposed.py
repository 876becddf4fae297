"""Ports of the user's machine that lead to Services of the cluster.

Each connection goes to a ready endpoint, asked of the API at most once a second, through the switch: every pod is
reached from there, so no host is on the way that could die. While no API server answers, the last endpoints are used.

A port stays what it is: it is in the database, and if somebody else has it when the daemon starts, it is tried again.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import random
import socket
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass
from ipaddress import ip_address
from typing import Any

from protokube.errors import InvalidRequest, ProtokubeError, Refused, TryLater
from protokube.kube.services import Address, ServiceName, read_name
from protokube.local.base.db import Database
from protokube.local.base.paths import Paths
from protokube.local.cloud.endpoints import Endpoints
from protokube.local.cloud.ports import CONNECT_SECONDS, LOOPBACK, carry, connect_inside
from protokube.local.host import network

log = logging.getLogger(__name__)

TRY_AGAIN = 3.0
BACKLOG = 100
MOST_AT_ONCE = 400
"""Connections: each takes two files, and the daemon must not run out of them, since hosts need its sockets."""
SILENCE = 60
"""Seconds after which a side that answers nothing counts as dead; longer than a drill cuts a host off."""
LOWEST, ABOVE = 1024, 8000
"""Ports below the first belong to the system: unless one is asked for, 80 becomes 8080."""
Find = Callable[[ServiceName], Sequence[Address]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Exposure:
    """A port of this machine, and the Service it leads to."""

    address: str
    local_port: int
    namespace: str
    service: str
    port: str

    @property
    def name(self) -> ServiceName:
        return ServiceName(self.namespace, self.service, self.port)

    @property
    def here(self) -> str:
        return f"[{self.address}]:{self.local_port}" if ":" in self.address else f"{self.address}:{self.local_port}"


class Exposures:
    """Every exposed port of one cloud."""

    def __init__(
        self,
        paths: Paths,
        database: Database,
        find: Find | None = None,
        *,
        again: float = TRY_AGAIN,
        most: int = MOST_AT_ONCE,
        silence: int = SILENCE,
    ) -> None:
        self.database, self.switch, self._again, self._most = database, paths.switch, again, most
        self._silence = silence
        self._find = find or Endpoints(paths).find
        self._servers: dict[tuple[str, int], asyncio.Server] = {}
        self._why: dict[tuple[str, int], str] = {}
        self._busy: dict[asyncio.Task[None], tuple[str, int]] = {}
        self._retrying: asyncio.Task[None] | None = None
        # of its own: an API server that hangs must not delay what else the daemon does in threads, such as DNS updates
        self._asking = ThreadPoolExecutor(1, thread_name_prefix="endpoints")

    def everything(self) -> list[Exposure]:
        rows = self.database.rows("SELECT * FROM exposed ORDER BY address, local_port")
        return [Exposure(**dict(row)) for row in rows]

    def state(self) -> list[dict[str, Any]]:
        """Each with whether connections are accepted, and why the last one was not served."""
        return [
            {
                **asdict(each),
                "listening": (each.address, each.local_port) in self._servers,
                "why": self._why.get((each.address, each.local_port), ""),
            }
            for each in self.everything()
        ]

    async def start(self) -> None:
        """Listen at all stored ports; those that are taken are tried again."""
        if not await self._listen_at_all():
            self._retrying = asyncio.create_task(self._retry())

    async def expose(
        self, service: str, address: str = LOOPBACK, local_port: int | None = None, prefer: int = 0
    ) -> dict[str, Any]:
        """Expose a Service; without a port the one it has already, else `prefer`, else any free one."""
        name, address = read_name(service), read_address(address)
        if local_port is not None and not 0 < local_port < 65536:
            raise InvalidRequest(f"{local_port} is no port", want="1 to 65535")
        there = self._known(name, address, local_port)
        if there is not None:
            if (there.address, there.local_port) not in self._servers:
                await self._serve(there, listen(there.address, there.local_port))
            return asdict(there)
        listener = self._bind(address, local_port, prefer)
        made = Exposure(
            address=address,
            local_port=listener.getsockname()[1],
            namespace=name.namespace,
            service=name.name,
            port=name.port,
        )
        try:
            with self.database.transaction() as connection:
                connection.execute(
                    "INSERT INTO exposed (address, local_port, namespace, service, port) VALUES (?, ?, ?, ?, ?)",
                    (made.address, made.local_port, made.namespace, made.service, made.port),
                )
        except BaseException:
            listener.close()
            raise
        await self._serve(made, listener)
        log.info("%s leads to %s", made.here, made.name)
        return asdict(made)

    async def unexpose(self, address: str, local_port: int) -> bool:
        """Close a port and its connections; whether there was such a port."""
        place = (address, local_port)
        with self.database.transaction() as connection:
            found = connection.execute("DELETE FROM exposed WHERE address = ? AND local_port = ?", place).rowcount
        if server := self._servers.pop(place, None):
            server.close()
        for task in [task for task, of in self._busy.items() if of == place]:
            task.cancel()
        self._why.pop(place, None)
        return found > 0

    def close(self) -> None:
        if self._retrying:
            self._retrying.cancel()
        for server in self._servers.values():
            server.close()
        for task in self._busy:
            task.cancel()
        self._asking.shutdown(wait=False, cancel_futures=True)

    def _known(self, name: ServiceName, address: str, local_port: int | None) -> Exposure | None:
        """What is exposed like this already. Refused if the port leads elsewhere."""
        for each in self.everything():
            if each.address == address and each.local_port == local_port and each.name != name:
                raise _taken(each.here, f"it leads to {each.name}", hint=f"protokube expose remove {local_port}")
            if each.address == address and each.name == name and local_port in (None, each.local_port):
                return each
        return None

    def _bind(self, address: str, local_port: int | None, prefer: int) -> socket.socket:
        if local_port is not None:
            return listen(address, local_port)
        kept = {each.local_port for each in self.everything()}
        prefer += ABOVE if prefer < LOWEST else 0
        if prefer not in kept:
            with suppress(Refused):
                return listen(address, prefer)
        return listen(address, 0)

    async def _serve(self, exposure: Exposure, listener: socket.socket) -> None:
        place = (exposure.address, exposure.local_port)
        end_when_dead(listener, self._silence)  # what it accepts inherits that

        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            self._busy[task] = place
            try:
                await self._carry(exposure, reader, writer)
            finally:
                self._busy.pop(task, None)
                writer.close()

        self._servers[place] = await asyncio.start_server(accept, sock=listener)
        self._why.pop(place, None)

    async def _carry(self, exposure: Exposure, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        place = (exposure.address, exposure.local_port)
        if len(self._busy) > self._most:
            self._why[place] = f"more than {self._most} connections at once"
            return
        try:
            there = await asyncio.wait_for(self._connect(exposure), CONNECT_SECONDS)
        except (OSError, TimeoutError, ProtokubeError) as why:
            text = getattr(why, "message", "") or str(why) or "no answer in time"
            log.info("%s cannot be reached: %s", exposure.name, text)
            self._why[place] = text
            return
        self._why.pop(place, None)
        await carry(reader, writer, there)

    async def _connect(self, exposure: Exposure) -> socket.socket:
        found = list(await asyncio.get_running_loop().run_in_executor(self._asking, self._find, exposure.name))
        if not found:
            raise TryLater("no pod behind it is ready")
        random.shuffle(found)
        connection = await connect_inside(network.switch_path(self.switch), found)
        end_when_dead(connection, self._silence)
        return connection

    async def _listen_at_all(self) -> bool:
        """Whether all ports are ours."""
        complete = True
        for each in self.everything():
            place = (each.address, each.local_port)
            if place in self._servers:
                continue
            try:
                listener = listen(*place)
                if each not in self.everything():  # removed meanwhile
                    listener.close()
                    continue
                await self._serve(each, listener)
            except (ProtokubeError, OSError) as why:
                self._why[place] = getattr(why, "message", "") or str(why)
                complete = False
        return complete

    async def _retry(self) -> None:
        while True:
            await asyncio.sleep(self._again)
            if await self._listen_at_all():
                return


def read_address(text: str) -> str:
    """An address of this machine in its usual form."""
    try:
        return str(ip_address(LOOPBACK if text == "localhost" else text))
    except ValueError:
        raise InvalidRequest(f"{text!r} is no address", want="such as 127.0.0.1, ::1 or 0.0.0.0") from None


def listen(address: str, port: int) -> socket.socket:
    """Listen at exactly this place; Refused if somebody else does."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # connections of before may still be closing
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.bind((address, port))
        listener.listen(BACKLOG)
    except OSError as why:
        listener.close()
        if why.errno == errno.EADDRINUSE:
            raise _taken(f"{address} port {port}", "another program listens there") from why
        if why.errno == errno.EADDRNOTAVAIL:
            raise InvalidRequest(f"{address} is no address of this machine", hint="leave --address out") from why
        raise Refused(f"cannot listen at {address} port {port}", saw=why.strerror or str(why)) from why
    listener.setblocking(False)
    return listener


def end_when_dead(connection: socket.socket, seconds: int) -> None:
    """A host that is killed says nothing, and its connections would count as open for ever: have the kernel probe."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (
        (socket.TCP_KEEPIDLE, max(seconds // 3, 1)),
        (socket.TCP_KEEPINTVL, max(seconds // 6, 1)),
        (socket.TCP_USER_TIMEOUT, seconds * 1000),  # decides instead of a number of probes, also for unsent data
    ):
        connection.setsockopt(socket.IPPROTO_TCP, option, value)


def _taken(place: str, saw: str, hint: str = "name another port") -> Refused:
    return Refused(f"{place} is in use", saw=saw, hint=hint, code="taken")
