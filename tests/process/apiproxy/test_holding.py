"""A client of the API that comes too early: its connection waits for an API server instead of being refused."""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from builders.certificates import write_certificates
from protokube.apiproxy.proxy import HOLD, Proxy, ProxyConfig

NAME = "localhost"
CERTIFICATE = {"authority": "ca", "commonName": NAME, "organizations": [], "names": [NAME], "usages": ["server auth"]}
REQUEST = b"GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n"


@asynccontextmanager
async def a_proxy(name: str, port: int, hold: float = HOLD) -> AsyncIterator[int]:
    """Its own port."""
    listener = socket.create_server(("127.0.0.1", 0))
    config = ProxyConfig(name=name, port=port, identity="a machine", hold=hold)
    running = asyncio.create_task(Proxy(config, lambda _: None).run(listener))
    try:
        yield listener.getsockname()[1]
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
        await asyncio.sleep(0)  # what it aborted is closed in the next turn of the loop


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """The far side: an API server that is ready."""
    with suppress(OSError, EOFError):
        while await reader.readuntil(b"\r\n\r\n"):
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
    writer.close()


def context(folder: Path) -> ssl.SSLContext:
    write_certificates(folder, {"api": CERTIFICATE})
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.load_cert_chain(folder / "api.crt", folder / "api.key")
    return made


async def ask(port: int) -> bytes:
    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trusting)
    writer.write(REQUEST)
    answer = await reader.readuntil(b"ok")
    writer.transport.abort()
    return answer


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


def test_it_is_served_by_the_api_server_that_starts_meanwhile(tmp_path: Path) -> None:
    async def scene() -> bytes:
        port = free_port()
        async with a_proxy(NAME, port) as entrance:
            asking = asyncio.create_task(ask(entrance))
            await asyncio.sleep(0.5)
            assert not asking.done()
            server = await asyncio.start_server(serve, "127.0.0.1", port, ssl=context(tmp_path / "pki"))
            try:
                return await asking
            finally:
                server.close()

    assert asyncio.run(scene()).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("name", [NAME, "nowhere.invalid"])
def test_it_is_refused_if_none_comes(name: str) -> None:
    async def scene() -> float:
        async with a_proxy(name, free_port(), hold=0.3) as entrance:
            began = time.monotonic()
            reader, writer = await asyncio.open_connection("127.0.0.1", entrance)
            with pytest.raises(ConnectionResetError):
                await reader.read(1)
            writer.transport.abort()
            return time.monotonic() - began

    assert asyncio.run(scene()) >= 0.3
