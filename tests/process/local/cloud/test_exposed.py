"""Exposed ports, as far as they need no switch."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import threading
from collections.abc import Sequence
from pathlib import Path

from protokube.kube.services import Address, ServiceName
from protokube.local.base.db import IN_MEMORY, Database
from protokube.local.base.paths import Paths
from protokube.local.cloud.exposed import Exposures
from protokube.local.cloud.ports import pump

CLIENTS = 40
"""More than a pool of threads has by default."""


def test_clients_that_wait_for_a_hanging_api_server_do_not_delay_the_daemons_other_work(tmp_path: Path) -> None:
    answers = threading.Event()

    def hang(_: ServiceName) -> Sequence[Address]:
        answers.wait(30)
        return []

    async def story() -> None:
        exposures = Exposures(Paths.at(tmp_path), Database(IN_MEMORY), hang)
        port = (await exposures.expose("default/web:80"))["local_port"]
        writers = [(await asyncio.open_connection("127.0.0.1", port))[1] for _ in range(CLIENTS)]
        await asyncio.sleep(0.2)
        try:
            await asyncio.wait_for(asyncio.to_thread(lambda: None), 5)
        finally:
            answers.set()
            for writer in writers:
                writer.close()
            exposures.close()

    asyncio.run(story())


def test_a_side_that_the_kernel_gave_up_is_an_end_and_no_error() -> None:
    async def story() -> None:
        reader = asyncio.StreamReader()
        reader.feed_data(b"before")
        reader.set_exception(OSError(errno.EHOSTUNREACH, os.strerror(errno.EHOSTUNREACH)))
        ours, theirs = socket.socketpair()
        _, writer = await asyncio.open_connection(sock=ours)

        await pump(reader, writer)

        theirs.settimeout(10)
        assert theirs.recv(1) == b""
        theirs.close()
        writer.close()

    asyncio.run(story())
