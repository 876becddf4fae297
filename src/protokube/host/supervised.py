"""Supervised background threads: none of them fails silently.

Each thread repeats its work. An exception is logged once and kept as its trouble, and the work is retried with an
exponential back-off: 1 s, 2 s, 4 s and so on. The work must keep its own state consistent across an exception. Work
that hangs is reported and left alone, since a second thread must not run beside it. If a thread ends all the same, the
next call of `trouble` restarts it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

log = logging.getLogger("protokube.agent")
FIRST, LONGEST = 1.0, 60.0
"""Back-off after a failure in seconds: the first and the longest."""
REPORTED = 600.0
"""Seconds for which the error of an unsupervised thread is reported."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why a thread makes no progress; the text stays the same as long as the cause does."""

    name: str
    text: str
    hangs: bool = False
    """The work hangs and may recover by itself; otherwise it raised an unexpected error."""


class Supervised:
    """One thread: each call of `work` does one step and returns the seconds until the next."""

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
        self._stop, self._hurry = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None
        self._started = 0.0
        self._since: float | None = None
        self._error = ""
        self.failures = 0
        """Consecutive failures."""

    def start(self) -> None:
        self._started, self._since = self._clock(), None
        self._thread = threading.Thread(target=self._run, name=self.name, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._hurry.set()

    def soon(self) -> None:
        """Do the next step now instead of after its pause. A back-off after a failure is not cut short."""
        self._hurry.set()

    def trouble(self) -> Trouble | None:
        """What is wrong now. Restarts a thread that has ended, at most once a minute."""
        if self._thread is None or self._stop.is_set():
            return None
        now, since = self._clock(), self._since
        if not self._thread.is_alive():
            if now - self._started >= self._longest:
                self.start()
            return Trouble(self.name, f"thread {self.name} ended: {self._error or 'for an unknown reason'}")
        if since is not None and self._silent_after is not None and now - since > self._silent_after:
            text = f"thread {self.name} has not come back for more than {self._silent_after:.0f} s"
            return Trouble(self.name, text, hangs=True)
        if self._error:
            return Trouble(self.name, f"thread {self.name} failed and is tried again: {self._error}")
        return None

    def _run(self) -> None:
        pause = self._first
        while not self._paused(pause):
            pause = self.once()

    def _paused(self, seconds: float) -> bool:
        """Wait for the next step; return whether there is none."""
        if self._error:
            return self._stop.wait(seconds)
        self._hurry.wait(seconds)
        self._hurry.clear()
        return self._stop.is_set()

    def once(self) -> float:
        """One step of the work, with its errors handled; returns the seconds until the next."""
        self._since = self._clock()
        try:
            pause = self._work()
        except BaseException as error:  # noqa: BLE001 (the thread must survive every error)
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
    """All supervised threads, and the errors of other threads of the process."""

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
        """For `threading.excepthook`: unsupervised threads are not restarted, but their errors are reported."""
        name = ended.thread.name if ended.thread is not None else "unknown"
        text = f"{ended.exc_type.__name__}: {ended.exc_value}"
        log.error("thread %s ended: unexpected error, please report it", name, exc_info=ended.exc_value)
        self._ended[name] = (text, self._clock())
