"""Exposed ports over a real switch: where connections go, what is refused, and what stays."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path

import pytest

from clusters.switch import Switch
from fakes.ports import kept_port
from protokube.errors import InvalidRequest, NotFound, Refused
from protokube.kube.services import Address, ServiceName
from protokube.local.cloud.exposed import Exposures, listen
from protokube.local.host import network

HERE, WEB = "127.0.0.1", "default/web:80"


class Cluster:
    """The far side: which Services there are, and where they are served."""

    def __init__(self) -> None:
        self.served: dict[str, Sequence[Address]] = {}

    def find(self, name: ServiceName) -> Sequence[Address]:
        if str(name) not in self.served:
            raise NotFound(f"there is no Service {name.name!r}")
        return self.served[str(name)]


@pytest.fixture
def switch(tmp_path: Path) -> Iterator[Switch]:
    made = Switch(tmp_path)
    yield made
    made.close()


@pytest.fixture
def wanted() -> Iterator[int]:
    """A port that nobody else gets."""
    with kept_port() as port:
        yield port


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def run(switch: Switch, cluster: Cluster, story: Callable[[Exposures], Awaitable[None]], **bounds: int) -> None:
    """One life of the daemon."""

    async def whole() -> None:
        exposures = Exposures(switch.paths, switch.database, cluster.find, again=0.05, **bounds)
        await exposures.start()
        try:
            await story(exposures)
        finally:
            exposures.close()

    asyncio.run(whole())


async def hear(port: int, address: str = HERE) -> bytes:
    reader, writer = await asyncio.open_connection(address, port)
    try:
        return await asyncio.wait_for(reader.read(), 10)
    except ConnectionError:
        return b""
    finally:
        writer.close()


def saying(text: bytes) -> Callable[[socket.socket], None]:
    return lambda connection: connection.sendall(text)


def stay(connection: socket.socket) -> None:
    """Say something, and keep the connection until the other side ends it."""
    with connection:
        connection.sendall(b"x")
        connection.recv(1)


def test_a_connection_goes_to_where_the_service_is_served_now(switch: Switch, cluster: Cluster) -> None:
    switch.serve("10.77.0.1", saying(b"first"))
    switch.serve("127.0.0.1", saying(b"second"))  # of the switch, which is not the user's

    async def story(exposures: Exposures) -> None:
        port = (await exposures.expose(WEB))["local_port"]
        assert await hear(port) == b""
        assert exposures.state()[0]["why"] == "there is no Service 'web'"
        cluster.served[WEB] = []
        assert await hear(port) == b""
        assert exposures.state()[0]["why"] == "no pod behind it is ready"
        for address, said in (("10.77.0.1", b"first"), ("127.0.0.1", b"second")):
            cluster.served[WEB] = [(address, 7000)]
            assert await hear(port) == said
        assert exposures.state()[0] | {"local_port": 0} == {
            "address": HERE, "local_port": 0, "namespace": "default", "service": "web", "port": "80",
            "listening": True, "why": "",
        }  # fmt: skip

    run(switch, cluster, story)


def test_an_endpoint_that_just_died_is_passed_over(switch: Switch, cluster: Cluster) -> None:
    switch.serve("10.77.0.1", saying(b"alive"))
    cluster.served[WEB] = [("10.77.0.1", 7001), ("10.77.0.1", 7000)]

    async def story(exposures: Exposures) -> None:
        port = (await exposures.expose(WEB))["local_port"]
        assert {await hear(port) for _ in range(12)} == {b"alive"}

    run(switch, cluster, story)


def test_a_port_stays_when_the_daemon_starts_again_until_it_is_removed(
    switch: Switch, cluster: Cluster, wanted: int
) -> None:
    switch.serve("10.77.0.1", saying(b"web"))
    cluster.served[WEB] = [("10.77.0.1", 7000)]

    async def first(exposures: Exposures) -> None:
        made = await exposures.expose(WEB, HERE, wanted)
        assert made["local_port"] == wanted
        assert await exposures.expose(WEB) == await exposures.expose(WEB, HERE, wanted) == made

    async def second(exposures: Exposures) -> None:
        assert await hear(wanted) == b"web"
        assert await exposures.unexpose(HERE, wanted) is True
        assert await exposures.unexpose(HERE, wanted) is False
        with pytest.raises(ConnectionRefusedError):
            await hear(wanted)

    async def third(exposures: Exposures) -> None:
        assert exposures.state() == []

    for life in (first, second, third):
        run(switch, cluster, life)


def test_removing_a_port_ends_its_connections(switch: Switch, cluster: Cluster) -> None:
    switch.serve("10.77.0.1", stay)
    cluster.served[WEB] = [("10.77.0.1", 7000)]

    async def story(exposures: Exposures) -> None:
        port = (await exposures.expose(WEB))["local_port"]
        reader, writer = await asyncio.open_connection(HERE, port)
        assert await reader.readexactly(1) == b"x"
        await exposures.unexpose(HERE, port)
        assert await asyncio.wait_for(reader.read(), 10) == b""
        writer.close()

    run(switch, cluster, story)


def test_more_connections_than_the_daemon_has_files_for_are_closed_and_told(switch: Switch, cluster: Cluster) -> None:
    switch.serve("10.77.0.1", lambda connection: threading.Thread(target=stay, args=(connection.dup(),)).start())
    cluster.served[WEB] = [("10.77.0.1", 7000)]

    async def story(exposures: Exposures) -> None:
        port = (await exposures.expose(WEB))["local_port"]
        writers = []
        for _ in range(2):
            reader, writer = await asyncio.open_connection(HERE, port)
            assert await reader.readexactly(1) == b"x"
            writers.append(writer)
        assert await hear(port) == b""
        assert exposures.state()[0]["why"] == "more than 2 connections at once"
        for writer in writers:
            writer.close()
        while await hear_one(port) != b"x":
            await asyncio.sleep(0.02)
        assert exposures.state()[0]["why"] == ""

    run(switch, cluster, story, most=2)


def test_a_connection_to_a_pod_that_vanished_with_its_host_ends(
    switch: Switch, cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    def never_learn(connection: socket.socket) -> None:
        with suppress(OSError):
            stay(connection)

    switch.serve("10.77.0.1", never_learn)
    cluster.served[WEB] = [("10.77.0.1", 7000)]

    async def story(exposures: Exposures) -> None:
        port = (await exposures.expose(WEB))["local_port"]
        reader, writer = await asyncio.open_connection(HERE, port)
        assert await reader.readexactly(1) == b"x"
        with network.enter(network.switch_path(switch.paths.switch)):
            network.batch(["link set lo down"])  # nobody says that it is gone
        assert await asyncio.wait_for(reader.read(), 20) == b""
        writer.close()

    run(switch, cluster, story, silence=3)
    assert "Unhandled" not in caplog.text


async def hear_one(port: int) -> bytes:
    reader, writer = await asyncio.open_connection(HERE, port)
    try:
        return await asyncio.wait_for(reader.read(1), 10)
    except ConnectionError:
        return b""
    finally:
        writer.close()


def test_a_port_that_is_in_use_is_refused_and_nothing_is_kept(switch: Switch, cluster: Cluster) -> None:
    with closing(socket.create_server((HERE, 0))) as other:
        port = other.getsockname()[1]

        async def story(exposures: Exposures) -> None:
            with pytest.raises(Refused) as caught:
                await exposures.expose(WEB, HERE, port)
            assert caught.value.code == "taken"
            assert exposures.state() == []
            assert (await exposures.expose(WEB, prefer=port))["local_port"] != port

        run(switch, cluster, story)


def test_a_port_that_leads_elsewhere_is_refused_with_the_command_that_frees_it(
    switch: Switch, cluster: Cluster
) -> None:
    async def story(exposures: Exposures) -> None:
        port = (await exposures.expose(WEB))["local_port"]
        with pytest.raises(Refused) as caught:
            await exposures.expose("default/db:5432", HERE, port)
        assert (caught.value.saw, caught.value.hint) == (f"it leads to {WEB}", f"protokube expose remove {port}")

    run(switch, cluster, story)


def test_a_port_that_somebody_took_meanwhile_is_told_and_taken_back_once_it_is_free(
    switch: Switch, cluster: Cluster
) -> None:
    switch.serve("10.77.0.1", saying(b"web"))
    cluster.served[WEB] = [("10.77.0.1", 7000)]
    ports: list[int] = []

    async def first(exposures: Exposures) -> None:
        ports.append((await exposures.expose(WEB))["local_port"])

    run(switch, cluster, first)
    other = socket.create_server((HERE, ports[0]))

    async def second(exposures: Exposures) -> None:
        (state,) = exposures.state()
        assert (state["listening"], state["why"]) == (False, f"{HERE} port {ports[0]} is in use")
        with pytest.raises(Refused, match="is in use"):
            await exposures.expose(WEB)
        other.close()
        while not exposures.state()[0]["listening"]:
            await asyncio.sleep(0.02)
        assert await hear(ports[0]) == b"web"

    run(switch, cluster, second)


def test_other_addresses_than_loopback_only_if_they_are_named_and_of_this_machine(
    switch: Switch, cluster: Cluster
) -> None:
    switch.serve("10.77.0.1", saying(b"six"))
    cluster.served[WEB] = [("10.77.0.1", 7000)]

    async def story(exposures: Exposures) -> None:
        six = await exposures.expose(WEB, "::1")
        assert await hear(six["local_port"], "::1") == b"six"
        for address in ("192.0.2.1", "nowhere", "127.0.0.1:80"):
            with pytest.raises(InvalidRequest):
                await exposures.expose(WEB, address)
        for port in (0, 65536, -1):
            with pytest.raises(InvalidRequest):
                await exposures.expose(WEB, HERE, port)
        assert [each["address"] for each in exposures.state()] == ["::1"]

    run(switch, cluster, story)


def test_a_port_of_the_system_is_taken_only_if_it_was_asked_for(switch: Switch, cluster: Cluster) -> None:
    async def story(exposures: Exposures) -> None:
        assert (await exposures.expose(WEB, prefer=80))["local_port"] >= 1024

    run(switch, cluster, story)
    with closing(listen(HERE, 0)) as listener:
        assert listener.getsockname()[1] >= 1024
