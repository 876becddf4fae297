"""The name server of a cloud, in a real switch: what it serves, where, and whose updates it takes."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import dns.asyncquery
import dns.message
import dns.rcode
import dns.tsigkeyring
import dns.update
import pytest

from protokube.errors import InvalidRequest, Refused
from protokube.local.base.db import Database, KeptRecords
from protokube.local.base.paths import Paths
from protokube.local.dns.names import Names
from protokube.local.host import network

KEY = {"name": "agents", "secret": "c2VjcmV0"}
OTHER_KEY = {"name": "agents", "secret": "b3RoZXI="}


class Place:
    """A switch and a database for a name server."""

    def __init__(self, folder: Path) -> None:
        self.paths = Paths.at(folder / "dev")
        self.paths.create()
        self.database = Database(self.paths.database)
        network.make_switch(self.paths.switch)

    def run(self, story: Callable[[Names], Coroutine[Any, Any, None]]) -> None:
        async def whole() -> None:
            names = Names(self.database, self.paths.switch)
            try:
                await names.start()
                await story(names)
            finally:
                await names.close()

        asyncio.run(whole())

    def ask_inside(self, wire: bytes) -> socket.socket:
        """A question on its way to the server inside, as a host would ask."""
        with network.enter(network.switch_path(self.paths.switch)):
            question = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        question.settimeout(5)
        question.sendto(wire, (network.GATEWAY, 53))
        return question

    def close(self) -> None:
        network.remove_switch(self.paths.switch)
        self.database.close()


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path)
    yield made
    made.close()


async def address_of(name: str, port: int, *, tcp: bool = False) -> str:
    query = dns.message.make_query(name, "A")
    ask = dns.asyncquery.tcp if tcp else dns.asyncquery.udp
    answer = await ask(query, "127.0.0.1", 5, port=port)
    return " ".join(item.to_text() for rrset in answer.answer for item in rrset) or dns.rcode.to_text(answer.rcode())


async def write(name: str, address: str, port: int, key: dict[str, str], zone: str = "dev.test") -> str:
    update = dns.update.UpdateMessage(zone, keyring=dns.tsigkeyring.from_text({key["name"]: key["secret"]}))
    update.replace(name, 5, "A", address)
    answer = await dns.asyncquery.tcp(update, "127.0.0.1", 5, port=port)
    return dns.rcode.to_text(answer.rcode())


def test_before_anybody_said_what_nothing_is_served(place: Place) -> None:
    async def story(names: Names) -> None:
        assert names.port is None
        assert list(names.zones) == []

    place.run(story)


def test_a_zone_is_served_to_the_user_by_both_kinds_of_transport_and_to_hosts(place: Place) -> None:
    async def story(names: Names) -> None:
        port = (await names.set_dns(["dev.test"], [KEY]))["port"]

        assert await address_of("ns.dev.test", port) == network.GATEWAY
        assert await address_of("ns.dev.test", port, tcp=True) == network.GATEWAY
        query = dns.message.make_query("ns.dev.test", "A")
        with place.ask_inside(query.to_wire()) as question:
            answer = await asyncio.to_thread(question.recv, 1000)
        assert network.GATEWAY in dns.message.from_wire(answer).to_text()

    place.run(story)


def test_what_was_written_is_there_in_the_next_life_on_the_same_port(place: Place) -> None:
    ports: list[int] = []

    async def first(names: Names) -> None:
        ports.append((await names.set_dns(["dev.test"], [KEY]))["port"])
        assert await write("etcd-a", "10.77.0.11", ports[0], KEY) == "NOERROR"
        assert await address_of("etcd-a.dev.test", ports[0]) == "10.77.0.11"

    async def second(names: Names) -> None:
        assert names.port == ports[0]
        assert await address_of("etcd-a.dev.test", ports[0]) == "10.77.0.11"

    place.run(first)
    assert list(KeptRecords(place.database).addresses("etcd-a.dev.test")) == ["10.77.0.11"]
    place.run(second)


def test_a_new_key_counts_at_once_and_the_old_one_no_more(place: Place) -> None:
    async def story(names: Names) -> None:
        port = (await names.set_dns(["dev.test"], [KEY]))["port"]
        assert await write("a", "10.77.0.11", port, KEY) == "NOERROR"

        assert (await names.set_dns(["dev.test"], [OTHER_KEY]))["port"] == port

        with pytest.raises(dns.tsig.PeerError):
            await write("a", "10.77.0.12", port, KEY)
        assert await write("a", "10.77.0.13", port, OTHER_KEY) == "NOERROR"
        assert await address_of("a.dev.test", port) == "10.77.0.13"

    place.run(story)


def test_another_zone_beside_the_first_leaves_its_names_alone(place: Place) -> None:
    async def story(names: Names) -> None:
        port = (await names.set_dns(["dev.test"], [KEY]))["port"]
        await write("a", "10.77.0.11", port, KEY)

        await names.set_dns(["dev.test", "other.test"], [KEY])

        assert await address_of("a.dev.test", port) == "10.77.0.11"
        assert await address_of("ns.other.test", port) == network.GATEWAY
        assert await address_of("a.other.test", port) == "NXDOMAIN"

    place.run(story)


def test_asked_for_the_same_again_it_does_not_even_blink(place: Place) -> None:
    async def story(names: Names) -> None:
        await names.set_dns(["dev.test"], [KEY])
        server = names._server

        await names.set_dns(["dev.test"], [KEY])

        assert names._server is server

    place.run(story)


@pytest.mark.parametrize("kind", [socket.SOCK_STREAM, socket.SOCK_DGRAM])
def test_a_kept_port_that_somebody_else_has_is_given_up(place: Place, kind: socket.SocketKind) -> None:
    async def first(names: Names) -> None:
        await names.set_dns(["dev.test"], [KEY])

    async def second(names: Names) -> None:
        assert names.port is not None
        assert names.port != kept
        assert await address_of("ns.dev.test", names.port) == network.GATEWAY

    place.run(first)
    kept = place.database.setting("dns port", None)
    with socket.socket(socket.AF_INET, kind) as somebody:
        somebody.bind(("127.0.0.1", kept))
        if kind == socket.SOCK_STREAM:
            somebody.listen()
        place.run(second)


@pytest.mark.parametrize(
    ("zones", "keys", "error"),
    [
        ([], [KEY], InvalidRequest),
        (["dev.test", ""], [KEY], InvalidRequest),
        (["dev.test"], [{"name": "k"}], InvalidRequest),
        (["dev.test"], [{**KEY, "algorithm": "md5"}], InvalidRequest),
        (["dev.test"], [{"name": "k", "secret": "not base64!"}], Refused),
    ],
)
def test_what_cannot_be_served_is_refused_and_what_is_served_stays(
    place: Place, zones: list[str], keys: list[dict[str, str]], error: type[Exception]
) -> None:
    async def story(names: Names) -> None:
        port = (await names.set_dns(["dev.test"], [KEY]))["port"]

        with pytest.raises(error):
            await names.set_dns(zones, keys)

        assert list(names.zones) == ["dev.test"]
        assert await address_of("ns.dev.test", port) == network.GATEWAY

    place.run(story)
