"""Connections between etcd peers whose machine vanished: aborted soon, and no other connection ever."""

from __future__ import annotations

import errno
import os
import socket
import subprocess
from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass

import pytest

from clusters.etcd import eventually
from protokube.agent.etcd.stalled_peers import EVERY, LATER, NEVER, StalledPeers
from protokube.errors import Refused
from protokube.etcd import peer_connections
from protokube.etcd.peer_connections import Connection
from protokube.local.host import network

PEER, OTHER = 2380, 4001
HOME, AWAY, STAYS = "10.79.1.1", "10.79.1.2", "10.79.2.2"


@dataclass
class Net:
    """This machine, `home`, with a cable to each of two others, in namespaces of their own."""

    name: str
    stack: ExitStack

    def within(self, where: str) -> AbstractContextManager[None]:
        return network.enter(network.switch_path(f"{self.name}-{where}"))

    def connect(self, where: str, address: str, port: int, *, dialled: bool) -> socket.socket:
        """A connection between us and a machine; returns our end. Its other end is open and reads nothing."""
        ours, theirs = ("home", where) if not dialled else (where, "home")
        at = address if dialled else address.rpartition(".")[0] + ".1"
        with self.within(ours):
            listener = socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True)
        with listener:
            with self.within(theirs):
                dialling = socket.create_connection((at, port), timeout=10)
            accepted, _ = listener.accept()
        for each in (dialling, accepted):
            self.stack.enter_context(each)
        return dialling if dialled else accepted

    def vanish(self, where: str) -> None:
        """Its cable is gone: nothing comes back any more, neither data nor errors."""
        run("ip", "-n", f"{self.name}-{where}", "link", "delete", "eth0")
        run("ip", "-n", f"{self.name}-home", "link", "add", "gone", "type", "bridge")
        run("ip", "-n", f"{self.name}-home", "address", "add", f"{HOME}/24", "dev", "gone")
        run("ip", "-n", f"{self.name}-home", "link", "set", "gone", "up")


def run(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True)


@pytest.fixture
def net() -> Iterator[Net]:
    name = f"stalled{os.getpid()}"
    with ExitStack() as stack:
        for where in ("home", "away", "stays"):
            run("ip", "netns", "add", f"{name}-{where}")
            stack.callback(run, "ip", "netns", "delete", f"{name}-{where}")
            run("ip", "-n", f"{name}-{where}", "link", "set", "lo", "up")
        for where, ours, theirs in (("away", HOME, AWAY), ("stays", "10.79.2.1", STAYS)):
            cable = ["link", "add", where, "type", "veth", "peer", "name", "eth0", "netns", f"{name}-{where}"]
            run("ip", "-n", f"{name}-home", *cable)
            for namespace, device, address in ((f"{name}-home", where, ours), (f"{name}-{where}", "eth0", theirs)):
                run("ip", "-n", namespace, "address", "add", f"{address}/24", "dev", device)
                run("ip", "-n", namespace, "link", "set", device, "up")
        yield Net(name, stack)


def fill(connection: socket.socket) -> None:
    """Write until the other end, which reads nothing, takes no more."""
    connection.setblocking(False)
    try:
        while True:
            connection.send(bytes(1 << 16))
    except BlockingIOError:
        connection.settimeout(10)


def error_of(connection: socket.socket) -> int:
    return connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)


@pytest.mark.parametrize("dialled", [True, False], ids=["that we dialled", "that it dialled"])
def test_a_connection_to_a_machine_that_vanished_is_aborted_and_all_others_live(net: Net, dialled: bool) -> None:
    gone = net.connect("away", AWAY, PEER, dialled=dialled)
    other_port = net.connect("away", AWAY, OTHER, dialled=dialled)
    idle = net.connect("stays", STAYS, PEER, dialled=dialled)
    frozen = net.connect("stays", STAYS, PEER + 1, dialled=dialled)
    fill(frozen)
    net.vanish("away")
    for each in (gone, other_port):
        each.sendall(b"an entry of the log")
    watch = StalledPeers({PEER, PEER + 1})
    aborted: list[Connection] = []

    def look() -> str:
        with net.within("home"):
            aborted.extend(peer_connections.read_stalled({PEER, PEER + 1}))
            assert watch.work() == EVERY
        return "" if aborted else "not stalled yet"

    assert eventually(look) == ""
    assert {(each.remote, PEER in (each.local_port, each.remote_port)) for each in aborted} == {(AWAY, True)}
    with pytest.raises(ConnectionAbortedError):
        gone.sendall(b"the next entry")
    assert [error_of(each) for each in (other_port, idle, frozen)] == [0, 0, 0]
    idle.sendall(b"a heartbeat")
    with net.within("home"):
        assert peer_connections.read_stalled({PEER}) == []
        assert [peer_connections.abort(each) for each in aborted] == [False] * len(aborted), "it is gone already"


def test_a_kernel_that_aborts_nothing_is_told_once_and_not_asked_again(caplog: pytest.LogCaptureFixture) -> None:
    def refuse(_connection: Connection) -> bool:
        raise Refused("this machine does not let us abort connections", saw="Operation not supported")

    stalled = Connection(family=2, identity=bytes(48), local_port=PEER, remote_port=1, remote=AWAY, retransmissions=9)
    assert StalledPeers({PEER}, lambda _ports: [stalled], refuse).work() == NEVER
    assert "does not let us abort connections (Operation not supported)" in caplog.text


def test_a_kernel_that_lists_no_connections_is_told_once_and_asked_again_later(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail(_ports: Collection[int]) -> list[Connection]:
        raise OSError(errno.EPROTONOSUPPORT, os.strerror(errno.EPROTONOSUPPORT))

    watch = StalledPeers({PEER}, fail)
    assert [watch.work(), watch.work()] == [LATER, LATER]
    assert caplog.text.count("connections cannot be listed (Protocol not supported)") == 1
