"""Where a name leads, asked in threads that can be left behind: a resolver that hangs stops nothing else."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Sequence

from protokube.errors import TryLater

PATIENCE = 5.0
MOST = 4
"""Questions that may hang at once; then none is asked until one comes back."""


def ask_the_system(name: str) -> Sequence[str]:
    """The machine's own way to resolve, hosts file included."""
    found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    return sorted({str(place[0]) for *_, place in found})


class Resolver:
    """Asks for one name."""

    def __init__(self, name: str, ask: Callable[[str], Sequence[str]] = ask_the_system) -> None:
        self._name, self._ask = name, ask
        self._under_way: list[threading.Thread] = []

    async def addresses(self, patience: float = PATIENCE) -> Sequence[str]:
        """TryLater if there is no answer in time, or the answer is that there is none."""
        self._under_way = [each for each in self._under_way if each.is_alive()]
        if len(self._under_way) >= MOST:
            raise TryLater(f"the resolver hangs: {MOST} questions were never answered")
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
            if answer.done():  # given up meanwhile
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
    except RuntimeError:  # the loop ended while we were asking
        return
