"""A zone whose key is changed while we run, against a real server that knows one key at a time."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from clusters.etcd import own_address
from fakes.dns_thread import DnsThread
from fakes.name_servers import LOOPBACK, ZONE, Kept, a_text, an_address, change, create
from protokube.config.dnscontroller import KEY_SECRET
from protokube.errors import Refused, TryLater
from protokube.local.dns.nameserver import DnsServer
from protokube.providers import catalog
from protokube.providers.dns import BadRecord, DnsProvider
from protokube.providers.dns.keys import TsigKey, new_key
from protokube.providers.dns.memory import MemoryDns
from protokube.providers.dns.rekeyed import RekeyedDns
from protokube.records import Change
from protokube.store import NotThere, Store, layout
from protokube.store.open import open_store

CLUSTER, PORT = "laptop", 5301
A, B = an_address("a"), an_address("b")
Serve = Callable[[TsigKey], None]


@pytest.fixture
def kept() -> Kept:
    return Kept()


@pytest.fixture
def serve(kept: Kept) -> Iterator[Serve]:
    """The server of the zone, which from now on takes this key and no other."""
    running: list[DnsThread] = []

    def start(key: TsigKey) -> None:
        while running:
            running.pop().close()
        tcp = socket.create_server((own_address(), PORT))
        udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        udp.bind((own_address(), PORT))
        running.append(DnsThread(DnsServer([ZONE], [key], kept, address=LOOPBACK), (udp, tcp)))

    try:
        yield start
    finally:
        for each in running:
            each.close()


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(f"file://{tmp_path}")


def put(store: Store, key: TsigKey) -> None:
    store.put(layout.secret(CLUSTER, KEY_SECRET), json.dumps({"name": key.name, "secret": key.secret}).encode())


def names(store: Store) -> DnsProvider:
    """As an agent makes it from its launch data."""
    told = {"kind": "rfc2136", "server": own_address(), "port": PORT, "zone": ZONE, "key": {"fromSecret": KEY_SECRET}}
    found = catalog.names(told, Path("/"), store, CLUSTER).provider
    assert found is not None
    return found


def test_a_key_that_was_changed_is_read_again_when_the_server_turns_us_away(serve: Serve, store: Store) -> None:
    first, second = new_key("first"), new_key("second")
    put(store, first)
    serve(first)
    zone = names(store)
    zone.apply(create(A))

    put(store, second)
    zone.apply([change(A, an_address("a", "10.0.0.2"))])  # with the old one, as long as it is good
    serve(second)
    zone.apply(create(B))

    assert B in zone.read([B.name])
    assert B in zone.list_records()


def test_a_secret_of_the_same_name_that_was_changed_is_another_key(serve: Serve, store: Store) -> None:
    first, second = new_key("same"), new_key("same")
    put(store, first)
    serve(first)
    zone = names(store)
    zone.apply(create(A))
    put(store, second)
    serve(second)

    assert A in zone.list_records()  # read by a key too


def test_while_only_the_server_has_the_new_key_its_word_is_told_and_then_all_goes_on(
    serve: Serve, store: Store
) -> None:
    first, second = new_key("first"), new_key("second")
    put(store, first)
    serve(first)
    zone = names(store)
    zone.apply(create(A))
    serve(second)

    with pytest.raises(Refused, match="the DNS server"):
        zone.apply(create(B))
    put(store, second)

    zone.apply(create(B))
    assert B in zone.list_records()


def test_an_agent_starts_without_its_key_and_takes_it_once_it_is_there(serve: Serve, store: Store) -> None:
    key = new_key("late")
    serve(key)
    zone = names(store)

    assert zone.zone == ZONE
    with pytest.raises(NotThere):
        zone.apply(create(A))
    store.put(layout.secret(CLUSTER, KEY_SECRET), b"\xff nothing of the kind")
    with pytest.raises(Refused, match="holds no key"):
        zone.apply(create(A))

    put(store, key)
    zone.apply(create(A))
    assert A in zone.read([A.name])


def test_a_key_is_taken_as_dns_servers_print_it(serve: Serve, store: Store) -> None:
    key = new_key("printed")
    serve(key)
    text = f'key "{key.name}" {{ algorithm hmac-sha256; secret "{key.secret}"; }};\n'
    store.put(layout.secret(CLUSTER, KEY_SECRET), text.encode())

    zone = names(store)

    zone.apply(create(a_text("printed")))
    assert list(zone.split([create(A)])) == [create(A)]


class Refusing:
    """Implements DnsProvider as far as it is asked: a zone in which every write is turned away."""

    def __init__(self, why: Refused) -> None:
        self._why, self._memory = why, MemoryDns(ZONE)
        self.zone, self.read, self.list_records = ZONE, self._memory.read, self._memory.list_records
        self.split = self._memory.split

    def apply(self, batch: Sequence[Change]) -> None:
        raise self._why


def test_a_record_that_nobody_may_write_is_not_tried_with_another_key() -> None:
    asked: list[TsigKey] = []

    def ask() -> TsigKey:
        asked.append(new_key(f"key{len(asked)}"))
        return asked[-1]

    zone = RekeyedDns(ZONE, ask, lambda _: Refusing(BadRecord("no such type")))

    with pytest.raises(BadRecord):
        zone.apply(create(A))
    assert len(asked) == 1


@pytest.mark.parametrize("silence", [TryLater("the store is silent"), Refused("the store lets nobody in")])
def test_when_the_store_cannot_be_asked_either_the_servers_word_is_the_one_to_tell(silence: Exception) -> None:
    answers: list[TsigKey | Exception] = [new_key("only"), silence]

    def ask() -> TsigKey:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    zone = RekeyedDns(ZONE, ask, lambda _: Refusing(Refused("we do not share the key")))

    with pytest.raises(Refused, match="do not share the key"):
        zone.apply(create(A))
    assert not answers
