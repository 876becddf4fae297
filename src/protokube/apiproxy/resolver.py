"""Look a name up in threads that can be abandoned: a resolver that hangs blocks nothing else."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Sequence

from protokube.errors import TryLater

PATIENCE = 5.0
MOST = 4
"""Lookups that may hang at once; no further one is started until one returns."""


def system_lookup(name: str) -> Sequence[str]:
    """Resolve with the system's resolver, hosts file included."""
    found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    return sorted({str(place[0]) for *_, place in found})


class Resolver:
    """Looks up one name."""

    def __init__(self, name: str, ask: Callable[[str], Sequence[str]] = system_lookup) -> None:
        self._name, self._ask = name, ask
        self._under_way: list[threading.Thread] = []

    async def addresses(self, patience: float = PATIENCE) -> Sequence[str]:
        """The addresses of the name. TryLater if the lookup fails or times out."""
        self._under_way = [each for each in self._under_way if each.is_alive()]
        if len(self._under_way) >= MOST:
            raise TryLater(f"the resolver hangs: {MOST} lookups have not returned")
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Sequence[str]] = loop.create_future()

        def ask() -> None:
            try:
                found = self._ask(self._name)
            except (OSError, UnicodeError) as error:
                why = (getattr(error, "strerror", None) or str(error)).lower()
                _later(loop, lambda: settle(TryLater(why)))
            else:
                _later(loop, lambda: settle(found))

        def settle(what: Sequence[str] | TryLater) -> None:
            if answer.done():  # timed out meanwhile
                return
            if isinstance(what, TryLater):
                answer.set_exception(what)
            else:
                answer.set_result(what)

        thread = threading.Thread(target=ask, daemon=True, name=f"resolving {self._name}")
        self._under_way.append(thread)
        thread.start()
        try:
            return await asyncio.wait_for(answer, patience)
        except TimeoutError:
            raise TryLater(f"the resolver did not answer within {patience:g} s") from None


def _later(loop: asyncio.AbstractEventLoop, do: Callable[[], None]) -> None:
    try:
        loop.call_soon_threadsafe(do)
    except RuntimeError:  # the loop ended during the lookup
        return
