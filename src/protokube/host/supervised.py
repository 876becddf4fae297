"""Long-lived work beside the rounds: none of it ends in silence.

Each piece of work has a thread that repeats it. Whatever it raises is logged once and kept as its trouble, and it is
tried again after 1 s, 2 s, 4 s and so on: what it keeps between two tries is its own, so it has to leave that in order.
Work that does not come back is reported and left alone: a second thread of it would be one too many. Should a thread
end all the same, whoever asks for troubles starts it again.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

log = logging.getLogger("protokube.agent")
FIRST, LONGEST = 1.0, 60.0
"""Seconds until work that failed is tried again: at first, and at most."""
REPORTED = 600.0
"""Seconds for which an error of a thread that is not supervised is reported."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why a piece of work does not go on; the same words for as long as it is the same trouble."""

    name: str
    text: str
    hangs: bool = False
    """It may come back by itself; else it is a bug, of ours or of a far side."""


class Supervised:
    """One piece of work: each call does a part of it, and returns the seconds until the next."""

    def __init__(
        self,
        name: str,
        work: Callable[[], float],
        *,
        first: float = 0.0,
        silent_after: float | None = None,
        longest: float = LONGEST,
        changed: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name, self._work, self._first = name, work, first
        self._silent_after, self._longest = silent_after, longest
        self._changed, self._clock = changed, clock
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._started = 0.0
        self._since: float | None = None
        self._error = ""
        self.failures = 0
        """Running."""

    def start(self) -> None:
        self._started, self._since = self._clock(), None
        self._thread = threading.Thread(target=self._run, name=self.name, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()

    def trouble(self) -> Trouble | None:
        """What is wrong now; a thread that is gone is started again, at most once a minute."""
        if self._thread is None or self._stop.is_set():
            return None
        now, since = self._clock(), self._since
        if not self._thread.is_alive():
            if now - self._started >= self._longest:
                self.start()
            return Trouble(self.name, f"thread {self.name} ended: {self._error or 'nobody knows why'}")
        if since is not None and self._silent_after is not None and now - since > self._silent_after:
            text = f"thread {self.name} has not come back for more than {self._silent_after:.0f} s"
            return Trouble(self.name, text, hangs=True)
        if self._error:
            return Trouble(self.name, f"thread {self.name} failed and is tried again: {self._error}")
        return None

    def _run(self) -> None:
        pause = self._first
        while not self._stop.wait(pause):
            pause = self.once()

    def once(self) -> float:
        """One part of the work, whatever comes of it; the seconds until the next."""
        self._since = self._clock()
        try:
            pause = self._work()
        except BaseException as error:  # noqa: BLE001 (the thread must live on, whatever it was)
            return self._failed(error)
        finally:
            self._since = None
        if self._error:
            log.info("%s: goes on after %d failures", self.name, self.failures)
            self._error, self.failures = "", 0
            self._changed()
        return pause

    def _failed(self, error: BaseException) -> float:
        text = f"{type(error).__name__}: {error}"
        if text != self._error:
            log.error("%s: unexpected error, please report it", self.name, exc_info=error)
            self._error = text
            self._changed()
        self.failures += 1
        return float(min(FIRST * 2 ** min(self.failures - 1, 16), self._longest))


class Workers:
    """All of them, and what other threads of the process ended by."""

    def __init__(self, workers: Iterable[Supervised] = (), clock: Callable[[], float] = time.monotonic) -> None:
        self._workers, self._clock = tuple(workers), clock
        self._ended: dict[str, tuple[str, float]] = {}

    def start(self) -> None:
        for each in self._workers:
            each.start()

    def stop(self) -> None:
        for each in self._workers:
            each.stop()

    def troubles(self) -> Sequence[Trouble]:
        found = [trouble for each in self._workers if (trouble := each.trouble()) is not None]
        now = self._clock()
        recent = [(name, text) for name, (text, when) in self._ended.copy().items() if now - when < REPORTED]
        return [*found, *(Trouble(name, f"thread {name} ended: {text}") for name, text in recent)]

    def note_ended(self, ended: threading.ExceptHookArgs) -> None:
        """For `threading.excepthook`: threads for one thing each are not started again, but do not end unnoticed."""
        name = ended.thread.name if ended.thread is not None else "unknown"
        text = f"{ended.exc_type.__name__}: {ended.exc_value}"
        log.error("thread %s ended: unexpected error, please report it", name, exc_info=ended.exc_value)
        self._ended[name] = (text, self._clock())
