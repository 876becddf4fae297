"""Ports of the user that lead into a real switch: by name, anew for each connection, whole and in both directions."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from clusters.switch import NAME, Switch
from protokube.local.cloud.ports import Forward, Forwards, listen
from protokube.local.host import network


@pytest.fixture
def switch(tmp_path: Path) -> Iterator[Switch]:
    made = Switch(tmp_path)
    yield made
    made.close()


def saying(text: bytes) -> Callable[[socket.socket], None]:
    return lambda connection: connection.sendall(text)


def echo(connection: socket.socket) -> None:
    """Everything back, and the end only once the other side has ended."""
    received = b"".join(iter(lambda: connection.recv(65536), b""))
    connection.sendall(received[::-1])


async def hear(port: int) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        return await asyncio.wait_for(reader.read(), 10)
    except ConnectionError:
        return b""
    finally:
        writer.close()


def test_a_connection_goes_to_where_the_name_leads_now(switch: Switch) -> None:
    switch.serve("10.77.0.1", saying(b"first"))
    switch.serve("127.0.0.1", saying(b"second"))

    async def story(forwards: Forwards) -> None:
        (forward,) = await forwards.ensure([(NAME, 7000)])
        assert await hear(forward.local_port) == b""
        switch.point("10.77.0.1")
        assert await hear(forward.local_port) == b"first"
        switch.point("127.0.0.1")  # of the switch, which is not the user's
        assert await hear(forward.local_port) == b"second"
        switch.point()
        assert await hear(forward.local_port) == b""

    switch.run(story)


def test_of_several_addresses_any_is_taken(switch: Switch) -> None:
    switch.serve("10.77.0.1", saying(b"1"))
    switch.serve("127.0.0.1", saying(b"2"))
    switch.point("10.77.0.1", "127.0.0.1")

    async def story(forwards: Forwards) -> None:
        (forward,) = await forwards.ensure([(NAME, 7000)])
        assert {await hear(forward.local_port) for _ in range(40)} == {b"1", b"2"}

    switch.run(story)


def test_much_goes_through_in_both_directions_and_each_ends_by_itself(switch: Switch) -> None:
    switch.serve("10.77.0.1", echo)
    switch.point("10.77.0.1")
    sent = os.urandom(3_000_000)

    async def story(forwards: Forwards) -> None:
        (forward,) = await forwards.ensure([(NAME, 7000)])
        reader, writer = await asyncio.open_connection("127.0.0.1", forward.local_port, limit=2**24)
        writer.write(sent)
        await writer.drain()
        writer.write_eof()
        assert await asyncio.wait_for(reader.read(), 20) == sent[::-1]
        writer.close()

    switch.run(story)


def test_many_connections_are_carried_at_once(switch: Switch) -> None:
    gathered = threading.Barrier(5, timeout=10)

    def wait_for_the_others(connection: socket.socket) -> None:
        threading.Thread(target=answer, args=(connection.dup(),), daemon=True).start()

    def answer(connection: socket.socket) -> None:
        with connection:
            gathered.wait()
            connection.sendall(b"together")

    switch.serve("10.77.0.1", wait_for_the_others)
    switch.point("10.77.0.1")

    async def story(forwards: Forwards) -> None:
        (forward,) = await forwards.ensure([(NAME, 7000)])
        heard = await asyncio.gather(*(hear(forward.local_port) for _ in range(5)))
        assert heard == [b"together"] * 5

    switch.run(story)


def test_a_far_side_that_refuses_hangs_up_on_the_user_and_nothing_else_happens(switch: Switch) -> None:
    switch.point("10.77.0.1")

    async def story(forwards: Forwards) -> None:
        (forward,) = await forwards.ensure([(NAME, 7001)])
        assert await asyncio.wait_for(hear(forward.local_port), 5) == b""
        switch.serve("10.77.0.1", saying(b"there"), port=7001)
        assert await hear(forward.local_port) == b"there"

    switch.run(story)


def test_a_switch_that_is_gone_hangs_up_on_the_user(switch: Switch) -> None:
    switch.point("10.77.0.1")

    async def story(forwards: Forwards) -> None:
        (forward,) = await forwards.ensure([(NAME, 7000)])
        network.remove_switch(switch.paths.switch)
        assert await asyncio.wait_for(hear(forward.local_port), 5) == b""

    switch.run(story)


def test_each_name_and_port_has_a_port_of_its_own_that_stays(switch: Switch) -> None:
    kept: list[Forward] = []

    async def first(forwards: Forwards) -> None:
        kept.extend(await forwards.ensure([(NAME, 1), (NAME, 2), ("b", 1)]))
        assert await forwards.ensure([(NAME, 2)]) == kept

    async def second(forwards: Forwards) -> None:
        assert list(await forwards.ensure()) == kept

    switch.run(first)
    assert len({forward.local_port for forward in kept}) == 3
    switch.run(second)


def test_a_port_somebody_has_is_not_waited_for() -> None:
    with listen(0) as first:
        first.listen()
        with listen(first.getsockname()[1]) as second:
            assert second.getsockname()[1] != first.getsockname()[1]
