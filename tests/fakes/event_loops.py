"""End what a test ran in an event loop so that no socket stays open.

An open one is found by the garbage collector later, in the middle of some other test, which then fails for it.
"""

from __future__ import annotations

import asyncio

TURNS = 8
"""Of the loop, which takes a new connection over, and closes a socket, some turns after it was told to."""


async def close_server(server: asyncio.Server) -> None:
    """A connection that was accepted a moment ago would be lost in a server that is closed by then."""
    for listener in server.sockets:
        asyncio.get_running_loop().remove_reader(listener.fileno())
    await settle()
    server.close()


async def end_tasks(*, cancel: bool) -> None:
    """All others, and those that these begin."""
    while tasks := asyncio.all_tasks() - {asyncio.current_task()}:
        for task in tasks:
            if cancel:
                task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    await settle()


async def settle() -> None:
    for _ in range(TURNS):
        await asyncio.sleep(0)
