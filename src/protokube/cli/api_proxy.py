"""`protokube api-proxy`: proxy connections of local clients to an API server that is ready."""

from __future__ import annotations

import errno
import json
import logging
import socket
import sys
from pathlib import Path
from typing import Any

import click

from protokube.errors import InvalidRequest, Refused

STATUS = Path("/run/protokube/api-proxy.json")


@click.command("api-proxy")
@click.option("--name", required=True, help="DNS name of the API servers, such as api.internal.dev.")
@click.option("--port", type=click.IntRange(1, 65535), default=443, show_default=True, help="Port of the API servers.")
@click.option("--listen", default="127.0.0.1:3988", show_default=True, help="Address and port for local clients.")
@click.option(
    "--ca",
    type=click.Path(path_type=Path, dir_okay=False),
    help="CA of the API servers; a server whose certificate it did not sign is not used.",
)
@click.option(
    "--status", type=click.Path(path_type=Path), default=STATUS, show_default=True, help="Status file to write."
)
def api_proxy(name: str, port: int, listen: str, ca: Path | None, status: Path) -> None:
    """Proxy local clients to an API server that is ready.

    The kubelet and other clients of this machine connect to --listen; their connections are forwarded, without
    terminating TLS, to one API server that is ready. If that server dies, hangs, disappears or stops being ready, its
    connections are closed within seconds, and clients that reconnect reach another server.

    \b
      protokube api-proxy --name api.internal.dev
      protokube api-proxy --name api.internal.dev --port 443 --listen 127.0.0.1:3988 --ca /srv/kubernetes/ca.crt
    """
    import asyncio

    from protokube.apiproxy.proxy import Proxy, ProxyConfig
    from protokube.host.notify import notify

    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(message)s")
    if ca is not None:
        check_authority(ca)
    listener = listen_at(listen)
    config = ProxyConfig(name=name, port=port, identity=socket.gethostname(), ca=ca, known=remembered(status))

    async def serve() -> None:
        proxy = Proxy(config, lambda tree: write(status, tree), lambda: notify(WATCHDOG="1"))
        notify(READY="1")
        await proxy.run(listener)
        notify(STOPPING="1")

    asyncio.run(serve())


def check_authority(ca: Path) -> None:
    import ssl

    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(ca)
    except OSError as error:  # ssl's own errors are among them
        why = "it holds no certificate" if isinstance(error, ssl.SSLError) else error.strerror
        raise InvalidRequest(f"cannot use {ca}: {why}", hint="give the cluster's ca.crt, or omit --ca") from error


def listen_at(place: str) -> socket.socket:
    host, _, port = place.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise InvalidRequest(f"{place!r} is not a listen address", want="ADDRESS:PORT", hint="such as 127.0.0.1:3988")
    host = host.removeprefix("[").removesuffix("]")
    try:
        return socket.create_server(
            (host, int(port)), family=socket.AF_INET6 if ":" in host else socket.AF_INET, backlog=128
        )
    except OSError as error:
        taken = error.errno == errno.EADDRINUSE
        raise Refused(
            f"cannot listen at {place}: {error.strerror or error}",
            hint=f"find the process: `ss -ltnp sport = :{port}`" if taken else "give another address with --listen",
        ) from error


def remembered(status: Path) -> list[str]:
    """Server addresses that an earlier run recorded; empty if the status file is missing or invalid."""
    from protokube.apiproxy.status import addresses_in

    try:
        return addresses_in(json.loads(status.read_text()))
    except (OSError, ValueError):
        return []


def write(status: Path, tree: dict[str, Any]) -> None:
    """Write the status file; the proxy keeps running if that fails, as on a full disk."""
    from protokube.host.files import write_atomic

    try:
        status.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(status, (json.dumps(tree, indent=2) + "\n").encode(), durable=False)
    except OSError as error:
        logging.getLogger("protokube.apiproxy").warning("cannot write %s: %s", status, error.strerror)
