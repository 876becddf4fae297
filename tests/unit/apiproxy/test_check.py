"""What an API server answers, read as far as it matters."""

from __future__ import annotations

import pytest

from protokube.apiproxy.check import parse_head


@pytest.mark.parametrize(
    ("head", "parsed"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n", (200, 2)),
        (b"HTTP/1.1 401 Unauthorized\r\ncontent-length:  129 \r\n\r\n", (401, 129)),
        (b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 7\r\nConnection: close\r\n\r\n", (500, None)),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", (200, None)),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n", (200, None)),
    ],
)
def test_the_status_is_read_and_whether_the_connection_can_be_used_again(head: bytes, parsed: object) -> None:
    assert parse_head(head) == parsed


@pytest.mark.parametrize(
    "head", [b"\r\n\r\n", b"SSH-2.0-x\r\n\r\n", b"HTTP/1.1 abc\r\n\r\n", b"HTTP/2 200\r\n\r\n", b"\xff\xfe\r\n\r\n"]
)
def test_what_is_no_answer_is_an_error(head: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  its text is not for people
        parse_head(head)
