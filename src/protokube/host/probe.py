"""A liveness probe of a static pod, as its manifest declares it: an HTTP request, or a connection, to this machine."""

from __future__ import annotations

import http.client
import socket
import ssl
from collections.abc import Mapping
from typing import Any

SECONDS = 2.0


def probe(check: Mapping[str, Any]) -> str:
    """ "" if it succeeds, else the reason."""
    try:
        return _http(check["httpGet"]) if "httpGet" in check else _tcp(check["tcpSocket"])
    except (OSError, http.client.HTTPException) as why:
        return (getattr(why, "strerror", None) or str(why) or type(why).__name__).lower()


def _http(get: Mapping[str, Any]) -> str:
    host, port = str(get.get("host") or "127.0.0.1"), int(get["port"])
    connection: http.client.HTTPConnection
    if get.get("scheme") == "HTTPS":
        context = ssl.create_default_context()
        # as a kubelet does: a probe asks whether it answers, and trusts nothing that it says
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        connection = http.client.HTTPSConnection(host, port, timeout=SECONDS, context=context)
    else:
        connection = http.client.HTTPConnection(host, port, timeout=SECONDS)
    try:
        connection.request("GET", str(get.get("path") or "/"))
        status = connection.getresponse().status
    finally:
        connection.close()
    return "" if 200 <= status < 400 else f"it answers with {status}"


def _tcp(connect: Mapping[str, Any]) -> str:
    address = (str(connect.get("host") or "127.0.0.1"), int(connect["port"]))
    with socket.create_connection(address, SECONDS):
        return ""
