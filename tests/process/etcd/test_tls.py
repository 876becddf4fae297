"""Certificates are renewed while we run, and the next connection uses the new ones."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from builders.certificates import write_certificates
from protokube.etcd.deadline import Deadline
from protokube.etcd.dial import Target
from protokube.etcd.tls import TlsFiles, Trust
from protokube.etcd.wire import NoAnswer, Wire

BOTH = ["server auth", "client auth"]


def a_certificate(name: str, *names: str) -> dict[str, object]:
    return {"authority": "ca", "commonName": name, "organizations": [], "names": [*names], "usages": BOTH}


def make(directory: Path, *names: str) -> TlsFiles:
    """An authority, a server that is called by these names, and a client."""
    write_certificates(directory, {"server": a_certificate("server", *names), "client": a_certificate("client")})
    return TlsFiles(ca=directory / "ca.crt", cert=directory / "client.crt", key=directory / "client.key")


@contextmanager
def tls_server(directory: Path) -> Iterator[Target]:
    """Shakes hands with clients of its own authority, and hangs up."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(directory / "server.crt", directory / "server.key")
    context.load_verify_locations(directory / "ca.crt")
    context.verify_mode = ssl.CERT_REQUIRED
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                    with context.wrap_socket(connection, server_side=True) as secure:
                        secure.recv(1)
                except ssl.SSLError:
                    continue
                except OSError:
                    return

        threading.Thread(target=serve, daemon=True).start()
        yield Target("127.0.0.1", server.getsockname()[1], secure=True)
        server.shutdown(socket.SHUT_RDWR)


def test_a_member_is_known_by_its_authority_and_by_its_name(tmp_path: Path) -> None:
    files = make(tmp_path / "pki", "127.0.0.1")

    with tls_server(tmp_path / "pki") as target:
        Wire(target, Trust(files).contexts().gateway, Deadline.after(20)).close()


def test_a_member_of_another_authority_is_turned_away_whatever_the_environment_trusts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tmp_path / "theirs", "127.0.0.1")
    files = make(tmp_path / "ours")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "theirs" / "ca.crt"))

    with (
        tls_server(tmp_path / "theirs") as target,
        pytest.raises(NoAnswer, match="its certificate is not valid for us") as caught,
    ):
        Wire(target, Trust(files).contexts().gateway, Deadline.after(20))

    assert not caught.value.sent


def test_a_member_under_another_name_is_turned_away(tmp_path: Path) -> None:
    files = make(tmp_path / "pki", "etcd-a.internal.dev")

    with tls_server(tmp_path / "pki") as target, pytest.raises(NoAnswer, match="IP address mismatch"):
        Wire(target, Trust(files).contexts().gateway, Deadline.after(20))
