"""Signals as something to read.

What a Python handler calls may be what the main thread was just in the middle of: a handler that sets the event its
thread waits for takes the lock that the wait holds, and both stand still for ever. Here handlers do nothing; the
numbers come through a pipe.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager

log = logging.getLogger("protokube.signals")


def readable(numbers: Iterable[int], *, blocking: bool) -> int:
    """A handle from which the number of each of these signals can be read; to be asked for in the main thread."""
    reader, writer = os.pipe2(os.O_CLOEXEC)
    os.set_blocking(writer, False)
    os.set_blocking(reader, blocking)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    for number in numbers:
        signal.signal(number, lambda _number, _frame: None)
    return reader


def arrived(reader: int) -> list[int]:
    """The signals that came, each once, however often it did."""
    return sorted(set(os.read(reader, 4096)))


def on_signals(callbacks: Mapping[int, Callable[[], None]]) -> None:
    """Have each signal call back, from a thread of its own; to be asked for in the main thread."""
    reader = readable(callbacks, blocking=True)

    def listen() -> None:
        while True:
            for number in arrived(reader):
                try:
                    callbacks.get(number, lambda: None)()
                except Exception:
                    log.exception("signal %d: unexpected error, please report it", number)

    threading.Thread(target=listen, daemon=True, name="signals").start()


@contextmanager
def ending_like_ctrl_c() -> Iterator[None]:
    """A polite end, or a terminal that is closed, is a KeyboardInterrupt: long work undoes or ends what it began."""
    numbers = [each for each in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(each) is signal.SIG_DFL]
    for each in numbers:  # whoever ignores one of them, as nohup does, means it
        signal.signal(each, signal.default_int_handler)
    try:
        yield
    finally:
        for each in numbers:
            signal.signal(each, signal.SIG_DFL)
