"""Answers that are cut off or make no sense: none is taken for a success, and each is told in words."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from protokube.errors import TryLater
from protokube.kube.client import NoAnswer
from protokube.kube.login import Login
from protokube.kube.session import Session

PATH = "/api/v1/things"
OK, CHUNKED = b"HTTP/1.1 200 OK\r\n", b"Transfer-Encoding: chunked\r\n"
BROKEN = {
    "nothing": b"",
    "no HTTP": b"\x00\xff\n\n",
    "cut in the status": OK[:11],
    "cut after the status": OK,
    "cut in a header": OK + b"Content-Ty",
    "cut before the length": OK + b"Content-Type: application/json\r\n",
    "a length that is none": OK + b"Content-Length: x\r\n\r\n{}",
    "a length beyond all memory": OK + b"Content-Length: 99999999999999999999\r\n\r\n{}",
    "a shorter body": OK + b"Content-Length: 10\r\n\r\n{}",
    "cut in a chunk": OK + CHUNKED + b"\r\n5\r\n{}",
    "cut between chunks": OK + CHUNKED + b"\r\n2\r\n{}\r\n",
    "a chunk without a size": OK + CHUNKED + b"\r\nzz\r\n{}\r\n0\r\n\r\n",
    "a chunk beyond all memory": OK + CHUNKED + b"\r\nffffffffffffffffff\r\n{}\r\n0\r\n\r\n",
    "compressed on the way": OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    "hints before the answer": b"HTTP/1.1 103 Early Hints\r\n\r\n",
}


@contextmanager
def session_answered_by(answer: bytes, folder: Path) -> Iterator[Session]:
    """Every connection gets these bytes, and is closed."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                connection, _ = server.accept()
                with connection:
                    if not connection.recv(65536):
                        return  # the last one, which ends this thread
                    connection.sendall(answer)
                    connection.shutdown(socket.SHUT_WR)
                    while connection.recv(65536):
                        pass

        thread = threading.Thread(target=serve)
        thread.start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        tree = {
            "current-context": "here",
            "contexts": [{"name": "here", "context": {"cluster": "one"}}],
            "clusters": [{"name": "one", "cluster": {"server": url}}],
        }
        (folder / "kubeconfig").write_text(yaml.safe_dump(tree))
        session = Session(Login(kubeconfig=folder / "kubeconfig"))
        try:
            yield session
        finally:
            session.close()
            socket.create_connection(server.getsockname()).close()
            thread.join()


@pytest.mark.parametrize("name", BROKEN)
def test_an_answer_that_is_not_whole_is_no_success_of_a_read_a_write_or_a_watch(name: str, tmp_path: Path) -> None:
    with session_answered_by(BROKEN[name], tmp_path) as session:
        with pytest.raises(NoAnswer):
            session.get(PATH)
        with pytest.raises(NoAnswer):
            session.create(PATH, b"{}")
        with pytest.raises(NoAnswer), session.watch(PATH, {}) as watch:
            list(watch)


@pytest.mark.parametrize(
    "answer",
    [
        OK + CHUNKED + b"\r\n3;name=value\r\nfin\r\n2\r\ne\n\r\n0\r\nTrailer: x\r\n\r\n",
        OK + b"Connection: close\r\n\r\nfine\n",
        b"HTTP/1.1 100 Continue\r\n\r\n" + OK + b"Content-Length: 5\r\n\r\nfine\n",
    ],
    ids=["chunks", "until the connection ends", "after a 100"],
)
def test_every_form_of_a_whole_answer_is_read(answer: bytes, tmp_path: Path) -> None:
    with session_answered_by(answer, tmp_path) as session:
        with session.watch(PATH, {}) as watch:  # first: a read is sent again if the connection ends just then
            assert list(watch) == [b"fine"]
        assert session.get(PATH) == b"fine\n"


@pytest.mark.parametrize(
    ("head", "body"), [(b"", b"[" * 100_000), (b"Retry-After: " + b"9" * 5000 + b"\r\n", b"{}")], ids=["deep", "long"]
)
def test_a_refusal_that_makes_no_sense_is_still_one(head: bytes, body: bytes, tmp_path: Path) -> None:
    refusal = b"HTTP/1.1 429 Too Many Requests\r\n%sContent-Length: %d\r\n\r\n" % (head, len(body))
    with session_answered_by(refusal + body, tmp_path) as session, pytest.raises(TryLater, match=f"GET {PATH}: "):
        session.get(PATH)
