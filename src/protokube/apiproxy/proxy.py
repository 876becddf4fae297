"""The proxy process: accepts clients, checks API servers, and connects each client to one of them.

Everything runs in one thread, so a change of `state` and its consequences are applied together.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from protokube.apiproxy.backends import Backends
from protokube.apiproxy.check import Checker
from protokube.apiproxy.relay import CHUNK, Relay, enable_keepalive, reset
from protokube.apiproxy.resolver import Resolver
from protokube.apiproxy.status import Tree, sentences, snapshot
from protokube.errors import TryLater

log = logging.getLogger("protokube.apiproxy")

CONNECT, RESOLVE_EVERY, GRACE, LOOK = 1.0, 5.0, 2.0, 1.0
"""Seconds: connect timeout; between two lookups of the name; for open connections to end at shutdown; at most between
two searches for due checks."""
RESOLVE_SOON = 1.0
"""Seconds between two lookups while no address is known."""
HOLD = 5.0
"""Seconds for which a new connection waits while no API server accepts it. Refused at once, a kubelet tries again after
up to 7 s; longer than this, its TLS handshake would time out."""
MOST = 1000
"""Open connections at most: a machine needs a handful, and a client that leaks them must not exhaust the machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxyConfig:
    """Configuration of the proxy."""

    name: str
    port: int
    identity: str
    ca: Path | None = None
    known: Sequence[str] = ()
    """Addresses that an earlier run saved; used until the name resolves."""
    hold: float = HOLD


class Proxy:
    """One listener in front of the API servers of one DNS name."""

    def __init__(
        self, config: ProxyConfig, report: Callable[[Tree], None], alive: Callable[[], object] = lambda: None
    ) -> None:
        """`report` is called with each new snapshot of the status, `alive` whenever the checks make progress."""
        self._config, self._report, self._alive = config, report, alive
        self._resolver = Resolver(config.name)
        self._unresolved = ""
        self._state = Backends(identity=config.identity)
        self._snapshot: Tree = {}
        self._through: defaultdict[str, set[Relay]] = defaultdict(set)
        self._clients: set[asyncio.Task[None]] = set()
        self._checkers: dict[str, Checker] = {}
        self._checking: dict[str, asyncio.Task[None]] = {}
        self._wake = asyncio.Event()
        self._usable = asyncio.Event()
        """Set when an API server appears or turns good: connections that wait are tried again."""

    async def run(self, listener: socket.socket) -> None:
        """Serve until SIGTERM or SIGINT."""
        stop, loop = asyncio.Event(), asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.set)
        self._become(self._state.resolved(self._config.known, loop.time()))
        server = await asyncio.start_server(self._accept, sock=listener, limit=CHUNK)
        ended = asyncio.create_task(stop.wait())
        tasks = [ended, asyncio.create_task(self._resolve()), asyncio.create_task(self._check())]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for each in done:
                each.result()  # a bug in one of them ends the process; systemd restarts it
            server.close()
            if self._clients:
                await asyncio.wait(self._clients, timeout=GRACE)
        finally:
            server.close()
            for each in (*tasks, *self._checking.values(), *self._clients):
                each.cancel()
            for relay in [each for relays in self._through.values() for each in relays]:
                relay.reset()
            for checker in self._checkers.values():
                checker.close()

    async def _resolve(self) -> None:
        while True:
            try:
                addresses = await self._resolver.addresses()
                self._unresolved = ""
            except TryLater as why:
                addresses, self._unresolved = (), why.message
            busy = {address for address, relays in self._through.items() if relays}
            self._become(self._state.resolved(addresses, asyncio.get_running_loop().time(), busy))
            await asyncio.sleep(RESOLVE_EVERY if self._state.known else RESOLVE_SOON)

    async def _check(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            for address in self._state.due(loop.time()):
                if address not in self._checking:
                    self._checking[address] = asyncio.create_task(self._check_one(address))
            self._alive()
            self._wake.clear()
            dues = [each.due for each in self._state.known.values() if each.address not in self._checking]
            with suppress(TimeoutError):
                pause = min([LOOK, *(max(due - loop.time(), 0) for due in dues)])
                await asyncio.wait_for(self._wake.wait(), pause)

    async def _check_one(self, address: str) -> None:
        config = self._config
        if address not in self._checkers:
            self._checkers[address] = Checker(address, config.port, name=config.name, ca=config.ca)
        try:
            why = await self._checkers[address].check()
            self._become(self._state.checked(address, why, asyncio.get_running_loop().time()))
        finally:
            del self._checking[address]

    def _become(self, state: Backends) -> None:
        """Replace the state and apply it: cut connections, close checkers, report changes."""
        before, self._state = self._state, state
        if state.offered() - before.offered():
            self._usable.set()
            self._usable = asyncio.Event()
        for address in state.cut():
            if relays := self._through.pop(address, None):
                log.info("%d connections to %s are cut; clients reconnect to another API server", len(relays), address)
                for each in relays:
                    each.reset()
        for address in self._checkers.keys() - state.known.keys() - self._checking.keys():
            self._checkers.pop(address).close()
        seen = snapshot(state, name=self._config.name, unresolved=self._unresolved)
        if seen != self._snapshot:
            for sentence in sentences(self._snapshot, seen):
                log.info("%s", sentence)
            self._snapshot = seen
            self._report(seen)
        self._wake.set()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._clients) >= MOST:
            log.warning("a connection is refused: %d are open", MOST)
            reset(writer)
            return
        task = asyncio.create_task(self._carry(reader, writer))
        self._clients.add(task)
        task.add_done_callback(self._clients.discard)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        loop = asyncio.get_running_loop()
        end = loop.time() + self._config.hold
        while True:
            usable = self._usable  # before we try: what appears meanwhile must not be missed
            if await self._connect(reader, writer):
                return
            try:
                await asyncio.wait_for(usable.wait(), end - loop.time())
            except TimeoutError:
                break
        log.info(
            "a connection is refused: %s",
            "no API server accepts it" if self._state.known else "no address of an API server is known",
        )
        reset(writer)

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Serve the client until it ends; False if no API server accepts the connection."""
        for address in self._state.order():
            self._state = self._state.trying(address)
            try:
                opening = asyncio.open_connection(address, self._config.port, limit=CHUNK)
                far_reader, far_writer = await asyncio.wait_for(opening, CONNECT)
                enable_keepalive(far_writer)
            except OSError:
                self._become(self._state.suspected(address, asyncio.get_running_loop().time()))
                continue
            relay = Relay(writer, far_writer)
            self._through[address].add(relay)
            self._become(self._state.connected(address))  # this cuts it if the address turned bad meanwhile
            try:
                await relay.run(reader, far_reader)
            finally:
                self._through[address].discard(relay)
            return True
        return False
