"""The sockets of the local cloud under many clients, rude ones among them."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from builders.volumes import a_volume, all_at_once
from clusters.daemon import until
from clusters.local import CloudWithoutHosts
from protokube.errors import InvalidRequest, TryLater
from protokube.providers.clients.local import LocalClient, connect


@pytest.fixture
def local(tmp_path: Path) -> Iterator[CloudWithoutHosts]:
    with CloudWithoutHosts(tmp_path / "dev") as made:
        yield made


def a_connection(local: CloudWithoutHosts, host: str) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(10)
    connect(connection, local.paths.host_socket(host))
    return connection


def test_forty_clients_at_once_all_get_their_own_answer(local: CloudWithoutHosts) -> None:
    hosts = [local.add_machine() for _ in range(4)]

    said = all_at_once(40, lambda number: local.client(hosts[number % 4]).call("me")["id"])

    assert list(said) == [hosts[number % 4] for number in range(40)]


def test_many_who_watch_are_all_told_and_those_who_hang_up_are_forgotten(local: CloudWithoutHosts) -> None:
    host = local.add_machine()
    watches = [local.client(host).watch() for _ in range(10)]
    for watch in watches:
        assert watch.wait(10)
    for watch in watches[5:]:
        watch.close()

    local.cloud.create_founders([a_volume()])

    for watch in watches[:5]:
        assert watch.wait(10)
        watch.close()
    until(lambda: not local.api._watching)


def test_a_watch_through_the_admin_socket_survives_an_outage_of_the_api(local: CloudWithoutHosts) -> None:
    with local.admin.watch() as watch:
        assert watch.wait(10)
        local.admin.call("api_down", seconds=1000)
        until(lambda: watch.wait(0.01))

        local.cloud.create_founders([a_volume()])

        assert watch.wait(10)


def test_an_outage_can_be_ended_early(local: CloudWithoutHosts) -> None:
    client = local.client(local.add_machine())
    local.admin.call("api_down", seconds=1000)
    with pytest.raises(TryLater):
        client.call("me")

    local.admin.call("api_down", seconds=0)

    assert client.call("me")


def test_a_client_that_hangs_up_before_its_answer_harms_nobody(local: CloudWithoutHosts) -> None:
    host = local.add_machine()
    for _ in range(20):
        with a_connection(local, host) as connection:
            connection.sendall(b'{"call": "list_volumes"}\n')

    assert local.client(host).call("list_volumes") == []


def test_a_client_that_says_nothing_keeps_nobody_waiting(local: CloudWithoutHosts) -> None:
    host = local.add_machine()
    silent = [a_connection(local, host) for _ in range(50)]

    began = time.monotonic()
    assert local.client(host).call("me")

    assert time.monotonic() - began < 5
    for connection in silent:
        connection.close()


def test_a_long_question_is_heard_whole(local: CloudWithoutHosts) -> None:
    host = local.add_machine()
    mark = "x" * 1_000_000
    (volume,) = local.cloud.create_founders([a_volume()])
    local.client(host).call("attach", volume=volume.id)

    local.client(host).call("write_mark", volume=volume.id, mark=mark)

    assert local.client(host).call("list_volumes")[0]["mark"] == mark


def test_a_question_that_arrives_in_pieces_is_one_question(local: CloudWithoutHosts) -> None:
    host = local.add_machine()
    with a_connection(local, host) as connection:
        for byte in b'{"call": "me"}\n':
            connection.sendall(bytes([byte]))

        assert json.loads(connection.makefile().readline())["result"]["id"] == host


@pytest.mark.parametrize(
    "arguments",
    [
        {"call": "attach"},
        {"call": "attach", "volume": "v", "force": True},
        {"call": "create_volume", "like": {}, "request": "r"},
        {"call": "create_volume", "like": [], "request": "r"},
        {"call": "no such call"},
        {"call": None},
    ],
)
def test_a_question_that_makes_no_sense_is_answered_with_what_is_wrong(
    local: CloudWithoutHosts, arguments: dict[str, object]
) -> None:
    host = local.add_machine()
    with a_connection(local, host) as connection:
        connection.sendall(json.dumps(arguments).encode() + b"\n")

        answered = json.loads(connection.makefile().readline())

    assert answered["error"]["kind"] == "invalid"
    assert answered["error"]["message"]


def test_the_operator_is_told_what_he_did_wrong_too(local: CloudWithoutHosts) -> None:
    for call, arguments in (
        ("api_down", {}),
        ("api_down", {"seconds": 1, "why": "x"}),
        ("kill_host", {}),
        ("create_founders", {"volumes": [{"zone": "local"}]}),
    ):
        with pytest.raises(InvalidRequest):
            local.admin.call(call, **arguments)


def test_sockets_are_made_anew_where_the_old_ones_were(local: CloudWithoutHosts) -> None:
    host = local.add_machine()
    client = LocalClient(local.paths.host_socket(host))
    for _ in range(3):
        local.thread.run(local.api.serve_host(host))

        assert client.call("me")["id"] == host


def test_attaching_many_volumes_to_many_hosts_at_once_gives_each_to_one(local: CloudWithoutHosts) -> None:
    hosts = [local.add_machine() for _ in range(4)]
    founders = local.cloud.create_founders([a_volume(member=f"m{number}") for number in range(6)])
    barrier = threading.Barrier(4)

    def greedy(number: int) -> int:
        """Take whatever one can get, and say how many that were."""
        barrier.wait()
        taken = 0
        for volume in founders:
            try:
                local.client(hosts[number]).call("attach", volume=volume.id)
                taken += 1
            except TryLater:
                continue
        return taken

    taken = all_at_once(4, greedy)

    assert sum(int(str(count)) for count in taken) == 6
    held = [len(local.cloud.volumes.held_by(host)) for host in hosts]
    assert held == list(taken)
