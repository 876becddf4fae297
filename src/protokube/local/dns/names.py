"""The embedded name server in the local cloud: for hosts at 10.77.0.1:53, and for the user's `dig` on a local port.

`up` sets the zones it serves and the TSIG keys for updates; both are stored.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from protokube.errors import InvalidRequest
from protokube.local.base.db import Database, KeptRecords
from protokube.local.host import network
from protokube.providers.dns.keys import TsigKey

if TYPE_CHECKING:
    from protokube.local.dns.forward import Forwarder
    from protokube.local.dns.nameserver import DnsServer

log = logging.getLogger(__name__)

ZONES, KEYS, PORT = "dns zones", "dns keys", "dns port"
LOOPBACK = "127.0.0.1"
ATTEMPTS = 20


class Names:
    """The name server of one cloud."""

    def __init__(self, database: Database, switch: str) -> None:
        self.database, self.switch = database, switch
        self._server: DnsServer | None = None
        self._forwarder: Forwarder | None = None

    @property
    def port(self) -> int | None:
        """The port on the user's 127.0.0.1."""
        found: int | None = self.database.setting(PORT, None)
        return found

    @property
    def zones(self) -> Sequence[str]:
        return list(self.database.setting(ZONES, []))

    async def start(self) -> None:
        """Serve the stored zones; do nothing while none are set."""
        zones = self.zones
        if not zones:
            return
        from protokube.local.dns.nameserver import DnsServer  # its library takes longer to import than all the rest

        keys = [TsigKey(**key) for key in self.database.setting(KEYS, [])]
        server = DnsServer(zones, keys, KeptRecords(self.database), address=network.GATEWAY)
        server.forwarder = self._forwarder
        self._server = server
        with network.enter(network.switch_path(self.switch)):
            inside = _pair(network.GATEWAY, 53)
        await server.start(*inside, forwards=True)
        outside = _free_pair(self.port or 0)
        self.database.set(PORT, outside[0].getsockname()[1])
        await server.start(*outside)
        log.info("names of %s are served at %s:53 and %s:%d", ", ".join(zones), network.GATEWAY, LOOPBACK, self.port)

    async def set_dns(self, zones: list[str], keys: list[dict[str, str]]) -> dict[str, Any]:
        """Serve these zones, and accept updates signed with one of these keys; idempotent."""
        if not zones or not all(zones):
            raise InvalidRequest("a name server needs a zone", saw=str(zones))
        for key in keys:
            if set(key) != {"name", "secret"}:
                raise InvalidRequest("a key has a name and a secret", saw=", ".join(sorted(key)))
            TsigKey(**key)
        before = (self.zones, self.database.setting(KEYS, []))
        self.database.set(ZONES, zones)
        self.database.set(KEYS, keys)
        if self._server is None or before != (zones, keys):
            await self.close()
            await self.start()
        return {"port": self.port}

    def forward_to(self, forwarder: Forwarder | None) -> None:
        """Forward queries of hosts for names that are not ours; None: do not. Queries on the user's port never are."""
        self._forwarder = forwarder
        if self._server is not None:
            self._server.forwarder = forwarder

    async def close(self) -> None:
        if self._server is not None:
            await self._server.close()
            self._server = None


def _free_pair(port: int) -> tuple[socket.socket, socket.socket]:
    """Bind the stored port if it is free; else any that is free for both UDP and TCP."""
    for attempt in range(ATTEMPTS):
        try:
            return _pair(LOOPBACK, port)
        except OSError:
            if attempt == ATTEMPTS - 1:
                raise
            port = 0
    raise AssertionError


def _pair(address: str, port: int) -> tuple[socket.socket, socket.socket]:
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    tcp = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        tcp.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        tcp.bind((address, port))
        udp.bind((address, tcp.getsockname()[1]))
    except OSError:
        udp.close()
        tcp.close()
        raise
    return udp, tcp
