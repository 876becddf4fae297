"""The client of the local cloud, against servers that answer badly, late, or not at all."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from protokube.errors import InvalidRequest, ProtokubeError, Refused, TryLater
from protokube.providers.clients.local import LocalClient, decode_error, encode_error, reachable
from protokube.providers.volumes import VolumeTaken

Handler = Callable[[socket.socket, bytes], None]


class FakeDaemon:
    """Passes each connection, with its first line, to the handler that a test chose."""

    def __init__(self, path: Path, handler: Handler) -> None:
        self.handler = handler
        self.requests: list[Any] = []
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        with reachable(path) as address:
            self.listener.bind(address)
        self.listener.listen()
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            with connection, suppress(OSError):
                line = connection.makefile("rb").readline()
                self.requests.append(json.loads(line))
                self.handler(connection, line)

    def close(self) -> None:
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join()


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[[Handler], FakeDaemon]]:
    servers: list[FakeDaemon] = []

    def start(handler: Handler) -> FakeDaemon:
        servers.append(FakeDaemon(tmp_path / "cloud.sock", handler))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


@pytest.fixture
def client(tmp_path: Path) -> LocalClient:
    return LocalClient(tmp_path / "cloud.sock", patience=20)


@pytest.fixture
def hasty(tmp_path: Path) -> LocalClient:
    """For a cloud that never answers."""
    return LocalClient(tmp_path / "cloud.sock", patience=1.5)


def answering(reply: object) -> Handler:
    return lambda connection, _: connection.sendall(json.dumps(reply).encode() + b"\n")


def test_a_call_is_one_line_and_so_is_its_answer(serve: Callable[[Handler], FakeDaemon], client: LocalClient) -> None:
    server = serve(answering({"result": [1, 2]}))

    assert client.call("attach", volume="vol-1", name="also fine") == [1, 2]
    assert server.requests == [{"call": "attach", "volume": "vol-1", "name": "also fine"}]


def test_nothing_is_an_answer(serve: Callable[[Handler], FakeDaemon], client: LocalClient) -> None:
    serve(answering({"result": None}))

    assert client.call("attach", volume="vol-1") is None


def test_an_answer_in_many_parts_is_one_answer(serve: Callable[[Handler], FakeDaemon], client: LocalClient) -> None:
    def slowly(connection: socket.socket, _: bytes) -> None:
        for byte in b'{"result": "whole"}\n':
            connection.sendall(bytes([byte]))
            time.sleep(0.002)

    serve(slowly)

    assert client.call("me") == "whole"


@pytest.mark.parametrize(
    "error",
    [
        VolumeTaken("attached to x"),
        TryLater("later", saw="a", want="b", hint="c"),
        Refused("no", hint="ask"),
        InvalidRequest("what?"),
    ],
)
def test_an_error_arrives_as_what_it_was(
    serve: Callable[[Handler], FakeDaemon], client: LocalClient, error: ProtokubeError
) -> None:
    serve(answering({"error": encode_error(error)}))

    with pytest.raises(type(error)) as caught:
        client.call("attach", volume="vol-1")

    assert type(caught.value) is type(error)
    assert str(caught.value) == str(error)


def test_an_error_of_a_kind_nobody_knows_is_for_a_person() -> None:
    assert type(decode_error({"kind": "new"})) is Refused
    assert "did not say why" in str(decode_error({}))


@pytest.mark.parametrize(
    "reply", [b"", b"\n", b"{}\n", b"[]\n", b'{"result"', b"garbage\n", b'{"error": "text"}\n', b"\xff\xfe\n"]
)
def test_half_an_answer_or_none_is_for_later(
    serve: Callable[[Handler], FakeDaemon], client: LocalClient, reply: bytes
) -> None:
    serve(lambda connection, _: connection.sendall(reply))

    with pytest.raises(TryLater, match="does not answer me"):
        client.call("me")


def test_a_cloud_that_hangs_costs_no_more_than_the_patience(
    serve: Callable[[Handler], FakeDaemon], hasty: LocalClient
) -> None:
    def hang(connection: socket.socket, _: bytes) -> None:
        connection.settimeout(20)
        connection.recv(1)

    serve(hang)
    began = time.monotonic()

    with pytest.raises(TryLater):
        hasty.call("list_volumes")

    assert 1 < time.monotonic() - began < 10


def test_a_cloud_that_answers_one_byte_at_a_time_does_not_stretch_the_patience(
    serve: Callable[[Handler], FakeDaemon], hasty: LocalClient
) -> None:
    def drip(connection: socket.socket, _: bytes) -> None:
        for _number in range(400):
            connection.sendall(b" ")
            time.sleep(0.05)

    serve(drip)
    began = time.monotonic()

    with pytest.raises(TryLater):
        hasty.call("list_volumes")

    assert time.monotonic() - began < 10


def test_no_cloud_at_all_is_for_later(client: LocalClient) -> None:
    with pytest.raises(TryLater, match="does not answer me") as caught:
        client.call("me")
    assert "cloud.sock" in caught.value.saw

    with pytest.raises(TryLater, match="does not answer watch"):
        client.watch()


def test_a_socket_may_lie_deeper_than_an_address_can_say(tmp_path: Path) -> None:
    deep = tmp_path / ("x" * 100) / ("y" * 100)
    deep.mkdir(parents=True)
    server = FakeDaemon(deep / "cloud.sock", answering({"result": "found"}))

    assert LocalClient(deep / "cloud.sock").call("me") == "found"
    server.close()


def test_a_watch_tells_of_changes_until_it_breaks(serve: Callable[[Handler], FakeDaemon], client: LocalClient) -> None:
    more = threading.Event()

    def twice(connection: socket.socket, _: bytes) -> None:
        connection.sendall(b'{"changed": 1}\n{"changed": 2}\n')
        more.wait(30)
        connection.sendall(b'{"changed": 3}\n')

    server = serve(twice)
    with client.watch() as watch:
        assert watch.wait(30)
        assert not watch.wait(0.01)
        more.set()
        assert watch.wait(30)
        with pytest.raises(TryLater, match="broke"):
            watch.wait(30)
    assert server.requests == [{"call": "watch"}]
