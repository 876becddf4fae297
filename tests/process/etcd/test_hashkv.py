"""The hash at a revision, as etcd's own message has it."""

from __future__ import annotations

import socket

import pytest

from fakes.ports import kept_port
from protokube.errors import TryLater
from protokube.etcd.deadline import Deadline
from protokube.etcd.dial import Target
from protokube.etcd.hashkv import hash_at


def test_a_member_that_is_not_there_is_asked_later() -> None:
    with kept_port() as port, pytest.raises(TryLater, match="did not answer"):
        hash_at(Target("127.0.0.1", port, secure=False), None, 7, Deadline.after(20))


def test_a_member_that_hangs_up_is_asked_later() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0)  # connections stay in the kernel's backlog and are never accepted
        target = Target("127.0.0.1", server.getsockname()[1], secure=False)
        with pytest.raises(TryLater, match="did not answer"):
            hash_at(target, None, 7, Deadline.after(0.2))
