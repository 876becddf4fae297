"""The embedded name server inside the local cloud: for the hosts at 10.77.0.1, and for the user's own `dig` on a port.

Which zones it serves, and by which keys they may be written, is told by `up` and kept.
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
        """On 127.0.0.1 of the user."""
        found: int | None = self.database.setting(PORT, None)
        return found

    @property
    def zones(self) -> Sequence[str]:
        return list(self.database.setting(ZONES, []))

    async def start(self) -> None:
        """Serve what is kept; nothing, before anybody said what."""
        zones = self.zones
        if not zones:
            return
        from protokube.local.dns.nameserver import DnsServer  # its library takes longer to import than all the rest

        keys = [TsigKey(**told) for told in self.database.setting(KEYS, [])]
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
        """Serve these zones, and let whoever has one of these keys write them; asked again, it is nothing."""
        if not zones or not all(zones):
            raise InvalidRequest("a name server needs a zone", saw=str(zones))
        for told in keys:
            if set(told) != {"name", "secret"}:
                raise InvalidRequest("a key has a name and a secret", saw=", ".join(sorted(told)))
            TsigKey(**told)
        before = (self.zones, self.database.setting(KEYS, []))
        self.database.set(ZONES, zones)
        self.database.set(KEYS, keys)
        if self._server is None or before != (zones, keys):
            await self.close()
            await self.start()
        return {"port": self.port}

    def forward_to(self, forwarder: Forwarder | None) -> None:
        """Have hosts told by somebody else what is not ours; None: by nobody. The user's own port tells only ours."""
        self._forwarder = forwarder
        if self._server is not None:
            self._server.forwarder = forwarder

    async def close(self) -> None:
        if self._server is not None:
            await self._server.close()
            self._server = None


def _free_pair(port: int) -> tuple[socket.socket, socket.socket]:
    """The kept port if it is free; else any that is free for both kinds."""
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
