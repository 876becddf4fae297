"""One call over HTTP/2, against a far side of which the test decides every byte."""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protokube.etcd.deadline import Deadline
from protokube.etcd.dial import Target
from protokube.etcd.grpc import (
    ACK,
    DATA,
    END_HEADERS,
    END_STREAM,
    GO_AWAY,
    HEADERS,
    LONGEST,
    PADDED,
    PING,
    PREFACE,
    RESET,
    SETTINGS,
    NoMessage,
    frame,
    header,
    unary,
    varint,
)  # fmt: skip

TARGET = Target("etcd-a.internal.dev", 4001, secure=True)
OK_HEADERS = frame(HEADERS, END_HEADERS, 1, b"\x88")
TRAILERS = frame(HEADERS, END_HEADERS | END_STREAM, 1, b"")


def message(content: bytes) -> bytes:
    return struct.pack(">BI", 0, len(content)) + content


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.settimeout(5)
        yield ours, theirs


def called(ends: tuple[socket.socket, socket.socket], *answer: bytes, seconds: float = 5) -> bytes:
    """Call a method on a far side that has already answered."""
    ends[1].sendall(b"".join(answer))
    return unary(ends[0], TARGET, "/service/method", b"question", Deadline.after(seconds))


def frames(content: bytes) -> list[tuple[int, int, int, bytes]]:
    found = []
    while content:
        size = int.from_bytes(content[:3], "big")
        found.append((content[3], content[4], int.from_bytes(content[5:9], "big"), content[9 : 9 + size]))
        content = content[9 + size :]
    return found


def test_the_message_of_the_answer_comes_back(ends: tuple[socket.socket, socket.socket]) -> None:
    assert called(ends, frame(SETTINGS, 0, 0, b""), OK_HEADERS, frame(DATA, 0, 1, message(b"42")), TRAILERS) == b"42"


def test_what_is_sent_is_one_whole_request(ends: tuple[socket.socket, socket.socket]) -> None:
    called(ends, OK_HEADERS, frame(DATA, END_STREAM, 1, message(b"")))
    sent = ends[1].recv(65536)

    assert sent.startswith(PREFACE)
    settings_frame, headers, data = frames(sent.removeprefix(PREFACE))
    assert settings_frame == (SETTINGS, 0, 0, b"")
    assert headers[:3] == (HEADERS, END_HEADERS, 1)
    assert header(":path", "/service/method") in headers[3]
    assert header(":authority", "etcd-a.internal.dev:4001") in headers[3]
    assert header("content-type", "application/grpc") in headers[3]
    assert b"grpc-timeout" in headers[3]
    assert data == (DATA, END_STREAM, 1, message(b"question"))


def test_an_answer_in_pieces_is_put_together(ends: tuple[socket.socket, socket.socket]) -> None:
    whole = message(b"a longer answer")
    pieces = [frame(DATA, 0, 1, whole[at : at + 4]) for at in range(0, len(whole), 4)]

    assert called(ends, OK_HEADERS, *pieces, TRAILERS) == b"a longer answer"


def test_padding_is_not_part_of_the_answer(ends: tuple[socket.socket, socket.socket]) -> None:
    padded = b"\x03" + message(b"42") + b"\0\0\0"

    assert called(ends, OK_HEADERS, frame(DATA, PADDED, 1, padded), TRAILERS) == b"42"


def test_housekeeping_is_answered_and_other_streams_are_nothing_to_us(
    ends: tuple[socket.socket, socket.socket],
) -> None:
    others = [frame(SETTINGS, 0, 0, b"\0\4\0\0\xff\xff"), frame(SETTINGS, ACK, 0, b""), frame(PING, 0, 0, b"12345678")]
    others += [frame(DATA, END_STREAM, 3, message(b"no")), frame(RESET, 0, 3, b"\0" * 4), frame(8, 0, 0, b"\0\0\1\0")]

    assert called(ends, *others, OK_HEADERS, frame(DATA, 0, 1, message(b"yes")), TRAILERS) == b"yes"
    answered = frames(ends[1].recv(65536).removeprefix(PREFACE))[3:]
    assert answered == [(SETTINGS, ACK, 0, b""), (PING, ACK, 0, b"12345678")]


@pytest.mark.parametrize(
    "answer",
    [
        TRAILERS,
        OK_HEADERS + TRAILERS,
        frame(RESET, 0, 1, b"\0\0\0\7"),
        frame(GO_AWAY, 0, 0, b"\0" * 8),
        OK_HEADERS + frame(DATA, END_STREAM, 1, b"\1\0\0\0\2zz"),
        OK_HEADERS + frame(DATA, END_STREAM, 1, message(b"cut off")[:-2]),
        OK_HEADERS + frame(DATA, 0, 1, b"\0" * 16384) * (LONGEST // 16384 + 1),
    ],
    ids=["trailers only", "no data", "reset", "going away", "compressed", "cut off", "endless"],
)
def test_a_call_that_ends_without_a_message_is_an_error(answer: bytes) -> None:
    ours, theirs = socket.socketpair()

    def send() -> None:
        with suppress(OSError):  # we hang up before the end of the endless one
            theirs.sendall(answer)

    far = threading.Thread(target=send)
    with ours, theirs:
        far.start()
        with pytest.raises(NoMessage):
            unary(ours, TARGET, "/service/method", b"", Deadline.after(5))
        ours.close()
        far.join()


def test_a_connection_that_ends_early_is_an_error_of_the_network(ends: tuple[socket.socket, socket.socket]) -> None:
    ends[1].sendall(OK_HEADERS[:5])
    ends[1].shutdown(socket.SHUT_WR)

    with pytest.raises(OSError, match="ended within a reply"):
        unary(ends[0], TARGET, "/service/method", b"", Deadline.after(5))


def test_a_far_side_that_drips_cannot_stretch_the_deadline(ends: tuple[socket.socket, socket.socket]) -> None:
    over = threading.Event()

    def drip() -> None:
        for _ in range(2000):
            if over.wait(0.02):
                return
            ends[1].sendall(b"\0")

    far = threading.Thread(target=drip)
    far.start()
    started = time.monotonic()
    with pytest.raises(TimeoutError):
        unary(ends[0], TARGET, "/service/method", b"", Deadline.after(0.3))
    took = time.monotonic() - started
    over.set()
    far.join()

    assert took < 10


@given(st.text(max_size=300), st.text(max_size=300))
@settings(derandomize=True, deadline=None)
def test_a_header_of_any_length_can_be_read_back(name: str, value: str) -> None:
    content, found = header(name, value)[1:], []
    while content:
        size, used = content[0] & 127, 1
        assert not content[0] & 128, "the bit that says it is compressed"
        if size == 127:
            shift = 0
            while True:
                byte, used = content[used], used + 1
                size += (byte & 127) << shift
                shift += 7
                if byte < 128:
                    break
        found.append(content[used : used + size].decode())
        content = content[used + size :]

    assert found == [name, value]


def test_a_negative_number_is_a_large_one() -> None:
    assert varint(-1) == b"\xff" * 9 + b"\1"
    assert varint(300) == b"\xac\x02"
