"""How a session logs in, and what it makes of connections, over real sockets."""

from __future__ import annotations

import base64
import os
import socket
import ssl
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from builders.certificates import write_certificates
from fakes.watch_server import PATH, WatchServer, login_to, session_with, until, watch_server
from protokube.errors import InvalidRequest, TryLater
from protokube.kube.client import ApiError, NoAnswer
from protokube.kube.login import Login
from protokube.kube.session import Session

PLUG_IN = {"apiVersion": "client.authentication.k8s.io/v1"}


@pytest.fixture
def server() -> Iterator[WatchServer]:
    with watch_server() as found:
        yield found


def a_program(folder: Path, *lines: str) -> dict[str, str]:
    file = folder / "plug-in"
    file.write_text("\n".join(["#!/bin/sh", *lines, ""]))
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return {**PLUG_IN, "command": str(file)}


def authorizations(server: WatchServer) -> list[str | None]:
    return [each.get("Authorization") for each in server.headers_seen]


def test_a_name_and_a_password_log_in(server: WatchServer, tmp_path: Path) -> None:
    with session_with(server, tmp_path, user={"username": "me", "password": "ü:1"}) as session:
        session.get(PATH)
    assert authorizations(server) == [f"Basic {base64.b64encode('me:ü:1'.encode()).decode()}"]


def test_without_a_user_nobody_logs_in(server: WatchServer, tmp_path: Path) -> None:
    with session_with(server, tmp_path) as session:
        session.get(PATH)
    assert authorizations(server) == [None]


def test_a_plug_in_is_asked_again_once_if_its_token_is_refused(server: WatchServer, tmp_path: Path) -> None:
    count = tmp_path / "count"
    program = a_program(
        tmp_path, f"echo x >> {count}", f'n=$(wc -l < {count}); echo "{{\\"status\\":{{\\"token\\":\\"t$n\\"}}}}"'
    )
    with session_with(server, tmp_path, user={"exec": program}) as session:  # type: ignore[dict-item]
        session.get(PATH)
        session.get(PATH)
        server.scripted.append((401, {}, b"{}"))
        session.create(PATH, b"{}")
        assert authorizations(server) == ["Bearer t1", "Bearer t1", "Bearer t1", "Bearer t2"]
        server.scripted.extend([(401, {}, b"{}"), (401, {}, b"{}")])
        with pytest.raises(ApiError) as why:
            session.get(PATH)
        assert why.value.status == 401
        assert authorizations(server)[4:] == ["Bearer t2", "Bearer t3"]


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["echo it is locked >&2; exit 3"], "returned 3: it is locked"),
        (["echo '{}'"], "printed no token"),
        (["echo '[]'"], "printed no token"),
        (["""echo '{"status":{"token":null}}'"""], "printed no token"),
        (['printf \'{"status":{"token":"a\\\\nb"}}\''], "no header can hold"),
        (['printf \'{"status":{"token":"\\303\\274"}}\''], "no header can hold"),
    ],
)
def test_what_a_plug_in_does_wrong_is_told(server: WatchServer, tmp_path: Path, lines: list[str], said: str) -> None:
    user: dict[str, Any] = {"exec": a_program(tmp_path, *lines)}
    with session_with(server, tmp_path, user=user) as session, pytest.raises(TryLater, match="cannot log in") as why:
        session.get(PATH)
    assert said in why.value.message
    assert server.seen == []


def test_a_plug_in_that_hangs_is_ended_and_told(server: WatchServer, tmp_path: Path) -> None:
    user = {"exec": a_program(tmp_path, f"echo $$ > {tmp_path}/pid", "exec sleep 600")}
    session = Session(replace(login_to(server, tmp_path, user=user), plug_in_patience=0.5))
    began = time.monotonic()
    with pytest.raises(TryLater, match="cannot log in") as why:
        session.get(PATH)
    session.close()
    assert "did not end within 0.5 s" in why.value.message
    assert time.monotonic() - began < 60
    assert not Path("/proc", (tmp_path / "pid").read_text().strip()).exists()


def test_a_plug_in_cannot_wait_for_input(server: WatchServer, tmp_path: Path) -> None:
    program = a_program(tmp_path, f"readlink /proc/self/fd/0 > {tmp_path}/input", """echo '{"status":{"token":"t"}}'""")
    (read, write), before = os.pipe(), os.dup(0)
    os.dup2(read, 0)  # as in a terminal: input that may come
    try:
        with session_with(server, tmp_path, user={"exec": program}) as session:  # type: ignore[dict-item]
            session.get(PATH)
    finally:
        os.dup2(before, 0)
        for each in (read, write, before):
            os.close(each)
    assert (tmp_path / "input").read_text() == "/dev/null\n"


@pytest.mark.parametrize(
    ("user", "said"),
    [
        ({"exec": {**PLUG_IN, "command": "/no/such/program"}}, "cannot be run"),
        ({"tokenFile": "missing"}, "cannot be read"),
        ({"token": "two\nlines"}, "no header can hold"),
    ],
)
def test_a_login_that_cannot_be_had_now_is_tried_later(
    server: WatchServer, tmp_path: Path, user: dict[str, Any], said: str
) -> None:
    with session_with(server, tmp_path, user=user) as session, pytest.raises(TryLater, match="cannot log in") as why:
        session.get(PATH)
    assert said in why.value.message


def test_an_auth_provider_is_refused_in_words(server: WatchServer, tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="auth-provider"):
        Session(login_to(server, tmp_path, user={"auth-provider": {"name": "gcp"}})).get(PATH)


@pytest.fixture
def scratch(tmp_path: Path) -> Iterator[Path]:
    """The folder for temporary files, while this test runs."""
    folder, before = tmp_path / "scratch", tempfile.tempdir
    folder.mkdir()
    tempfile.tempdir = str(folder)
    yield folder
    tempfile.tempdir = before


def test_embedded_keys_log_in_and_leave_no_file(tmp_path: Path, scratch: Path) -> None:
    pki = tmp_path / "pki"
    told = {"authority": "ca", "organizations": [], "names": ["127.0.0.1"], "usages": ["server auth", "client auth"]}
    write_certificates(pki, {name: {**told, "commonName": name} for name in ("server", "client")})

    def data(name: str) -> str:
        return base64.b64encode((pki / name).read_bytes()).decode()

    with watch_server(pki) as server:
        server.socket.context.verify_mode = ssl.CERT_REQUIRED  # type: ignore[attr-defined]
        user = {"client-certificate-data": data("client.crt"), "client-key-data": data("client.key")}
        login = login_to(server, tmp_path, user=user)
        assert login.kubeconfig is not None
        tree = yaml.safe_load(login.kubeconfig.read_text())
        tree["clusters"][0]["cluster"] = {"server": server.url, "certificate-authority-data": data("ca.crt")}
        login.kubeconfig.write_text(yaml.safe_dump(tree))
        session = Session(login)
        assert session.get(PATH)
        session.close()
    assert list(scratch.iterdir()) == []


def test_a_server_with_another_name_or_of_another_authority_is_not_spoken_to(tmp_path: Path) -> None:
    told = {"authority": "ca", "organizations": [], "usages": ["server auth", "client auth"]}
    pki = tmp_path / "pki"
    write_certificates(pki, {"server": {**told, "names": ["other.test"], "commonName": "server"}})
    with watch_server(pki) as server:
        with session_with(server, tmp_path) as session, pytest.raises(NoAnswer, match=r"(?i)certificate|mismatch"):
            session.get(PATH)
        (pki / "ca.crt").unlink()
        write_certificates(tmp_path / "others", {"server": {**told, "names": ["127.0.0.1"], "commonName": "x"}})
        (pki / "ca.crt").write_bytes((tmp_path / "others" / "ca.crt").read_bytes())
        with session_with(server, tmp_path) as session, pytest.raises(NoAnswer, match="certificate"):
            session.get(PATH)
        assert server.seen == []


def test_a_server_behind_a_path_is_asked_below_it(server: WatchServer, tmp_path: Path) -> None:
    login = login_to(server, tmp_path)
    assert login.kubeconfig is not None
    login.kubeconfig.write_text(login.kubeconfig.read_text().replace(server.url, f"{server.url}/clusters/one/"))
    session = Session(login)
    server.scripted.append((200, {}, b"fine"))
    assert session.get("/api/v1/things/ü a", {"limit": "7"}) == b"fine"
    assert server.seen == [("GET", "/clusters/one/api/v1/things/%C3%BC%20a", {"limit": "7"})]
    session.close()


def test_a_connection_is_used_again_and_one_that_the_server_closed_is_not(server: WatchServer, tmp_path: Path) -> None:
    with session_with(server, tmp_path) as session:
        assert session.get(PATH)
        (pool,) = (each.pool for each in session._pools)
        ((first, _),) = pool._idle
        assert session.get(PATH)
        assert [each for each, _ in pool._idle] == [first]
        assert first.sock is not None
        server.scripted.append((200, {"Connection": "close"}, b"last"))
        assert session.get(PATH) == b"last"
        assert pool._idle == []
        server.scripted.append((200, {}, b"made"))
        assert session.create(PATH, b"{}") == b"made"
        ((idle, _),) = pool._idle
        assert idle.sock is not None
        socket.socket.shutdown(idle.sock, socket.SHUT_RD)  # as if the server had ended it
        server.scripted.append((200, {}, b"made again"))
        assert session.create(PATH, b"{}") == b"made again", "a write is not repeated, so it must not meet a dead one"


def test_a_watch_on_a_connection_that_the_server_will_close_can_be_hung_up(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        tree = {
            "current-context": "here",
            "contexts": [{"name": "here", "context": {"cluster": "one"}}],
            "clusters": [{"name": "one", "cluster": {"server": f"http://127.0.0.1:{server.getsockname()[1]}"}}],
        }
        (tmp_path / "kubeconfig").write_text(yaml.safe_dump(tree))
        session, there = Session(Login(kubeconfig=tmp_path / "kubeconfig")), threading.Event()
        open_sides: list[socket.socket] = []

        def serve() -> None:
            open_sides.append(server.accept()[0])
            open_sides[0].recv(65536)
            open_sides[0].sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nfirst\n")

        def hang_up() -> None:
            assert there.wait(20)
            watch.hang_up()

        threads = [threading.Thread(target=each) for each in (serve, hang_up)]
        threads[0].start()
        with session.watch(PATH, {}, silence=600) as watch:
            threads[1].start()
            found = iter(watch)
            assert next(found) == b"first"
            there.set()
            assert list(found) == []
        for thread in threads:
            thread.join()
        open_sides[0].close()
        session.close()


def test_closing_ends_a_handshake_too(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:  # it accepts, and never speaks TLS
        pki = tmp_path / "pki"
        told = {"authority": "ca", "organizations": [], "names": ["127.0.0.1"], "usages": ["server auth"]}
        write_certificates(pki, {"server": {**told, "commonName": "server"}})
        tree = {
            "current-context": "here",
            "contexts": [{"name": "here", "context": {"cluster": "one"}}],
            "clusters": [{"name": "one", "cluster": {
                "server": f"https://127.0.0.1:{silent.getsockname()[1]}", "certificate-authority": "pki/ca.crt"}}],
        }  # fmt: skip
        (tmp_path / "kubeconfig").write_text(yaml.safe_dump(tree))
        session = Session(Login(kubeconfig=tmp_path / "kubeconfig"), patience=60)
        ended = threading.Event()

        def ask() -> None:
            with pytest.raises(NoAnswer):
                session.get(PATH)
            ended.set()

        thread = threading.Thread(target=ask)
        thread.start()
        (pool,) = until(lambda: [each.pool for each in session._pools], "it has begun")
        until(lambda: len(pool._sockets), "it is connected")
        began = time.monotonic()
        session.close()
        assert ended.wait(4), "sooner than the patience with a connection"
        assert time.monotonic() - began < 4
        thread.join()


def test_a_session_loads_no_library_of_others_but_the_decoder() -> None:
    code = (
        "import sys; before = set(sys.modules); import protokube.kube.session; "
        "found = {name.partition('.')[0] for name in set(sys.modules) - before} - set(sys.stdlib_module_names); "
        "print(sorted(found - {'protokube', 'typing_extensions'}), 'asyncio' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['msgspec'] False"
