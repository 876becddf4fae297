"""Serve the Prometheus metrics of one process over HTTP."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from protokube.errors import InvalidRequest, Refused

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry


def serve(registry: CollectorRegistry, address: str) -> Callable[[], None]:
    """Serve metrics at HOST:PORT, by default on loopback; call the returned function to stop."""
    from prometheus_client import start_http_server

    host, colon, port = address.rpartition(":")
    if not colon or not port.isdecimal() or not 0 < int(port) < 65536:
        raise InvalidRequest(f"{address!r} is no address for metrics", want="HOST:PORT")
    try:
        server, thread = start_http_server(int(port), addr=host.strip("[]") or "127.0.0.1", registry=registry)
    except OSError as error:
        raise Refused(
            f"cannot serve metrics at {address}: {error.strerror or error}", hint="choose another one with --metrics"
        ) from error

    def close() -> None:
        server.shutdown()
        thread.join()
        server.server_close()

    return close
