"""A URL leads to a member, whatever address its name has today."""

from __future__ import annotations

import socket
import ssl
import time

import pytest

from protokube.errors import Refused
from protokube.etcd.deadline import Deadline
from protokube.etcd.dial import Target, dial, look_up


@pytest.mark.parametrize(
    ("url", "target", "authority"),
    [
        (
            "https://etcd-a.internal.dev:4001",
            Target("etcd-a.internal.dev", 4001, secure=True),
            "etcd-a.internal.dev:4001",
        ),
        ("http://127.0.0.1:2379/", Target("127.0.0.1", 2379, secure=False), "127.0.0.1:2379"),
        ("https://[fd00::1]:4001", Target("fd00::1", 4001, secure=True), "[fd00::1]:4001"),
        ("https://etcd-a", Target("etcd-a", 2379, secure=True), "etcd-a:2379"),
    ],
)
def test_a_url_is_a_host_a_port_and_whether_it_is_secure(url: str, target: Target, authority: str) -> None:
    assert Target.of(url) == target
    assert target.authority == authority


@pytest.mark.parametrize("url", ["etcd-a:4001", "", "ftp://etcd-a", "https://"])
def test_what_is_not_the_url_of_a_member_is_refused(url: str) -> None:
    with pytest.raises(Refused, match="not the URL"):
        Target.of(url)


def test_addresses_need_no_resolver() -> None:
    long_over = Deadline.after(-1)

    assert look_up("127.0.0.1", 80, long_over) == [(socket.AF_INET, ("127.0.0.1", 80))]
    assert look_up("::1", 80, long_over) == [(socket.AF_INET6, ("::1", 80))]


def test_a_name_is_looked_up_at_every_connect() -> None:
    first = look_up("localhost", 80, Deadline.after(20))

    assert any(address[0] in ("127.0.0.1", "::1") for _, address in first)
    assert look_up("localhost", 80, Deadline.after(20)) == first


@pytest.mark.parametrize("name", ["a name with spaces", "x" * 70 + ".example", "..", "a..b"])
def test_what_is_not_a_name_is_an_error_of_the_network(name: str) -> None:
    with pytest.raises(OSError, match=r"\w"):
        look_up(name, 80, Deadline.after(5))


def test_the_second_address_of_a_name_is_tried_when_nobody_is_at_the_first() -> None:
    """`localhost` is both ::1 and 127.0.0.1 on most machines; only the second one listens here."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        target = Target("localhost", server.getsockname()[1], secure=False)
        with dial(target, None, Deadline.after(20)) as connection:
            assert connection.getpeername()[0] == "127.0.0.1"


def test_a_handshake_that_never_ends_ends_with_the_deadline() -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    with socket.create_server(("127.0.0.1", 0)) as server:  # the kernel accepts, but no TLS handshake follows
        started = time.monotonic()
        with pytest.raises(TimeoutError):
            dial(Target("127.0.0.1", server.getsockname()[1], secure=True), context, Deadline.after(0.3))
        assert time.monotonic() - started < 10
