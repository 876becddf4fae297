"""Run a program that takes long: its output goes to a file, its last line to the screen, and it does not outlive us."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from protokube.binaries.telling import Teller
from protokube.errors import TryLater

LAST_LINES = 12


class Runner:
    """Runs what takes long; all of its output is in a file, the last line is told, and none of it outlives us."""

    def __init__(self, log: Path, teller: Teller) -> None:
        self.log, self.teller = log, teller
        log.write_bytes(b"")

    def __call__(self, command: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None) -> None:
        last: deque[str] = deque(maxlen=LAST_LINES)
        with self.log.open("a", encoding="utf-8") as log, contextlib.ExitStack() as stack:
            started: list[subprocess.Popen[str]] = []
            try:
                with _interrupted_later():
                    child = stack.enter_context(_started(command, folder, environment))
                    started.append(child)
                assert child.stdout
                for line in child.stdout:
                    log.write(line)
                    last.append(line.rstrip())
                    self.teller.say(line.strip())
            except BaseException:
                for each in started:
                    with contextlib.suppress(ProcessLookupError):
                        os.killpg(each.pid, signal.SIGKILL)
                raise
        if child.returncode:
            raise TryLater(f"`{' '.join(command)}` failed", saw="\n".join(last), hint=f"all it said is in {self.log}")


def _started(command: Sequence[str], folder: Path, environment: Mapping[str, str] | None) -> subprocess.Popen[str]:
    return subprocess.Popen(  # noqa: S603
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        # A group of its own: all of it can be ended. No session of its own: a kernel that shares the processors among
        # sessions would not know how nice it is to whoever started us.
        process_group=0,
    )


@contextlib.contextmanager
def _interrupted_later() -> Iterator[None]:
    """A child is being made: who were interrupted now would not know whom to end. The interruption comes afterwards."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    numbers = [
        number for number in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(number) is signal.default_int_handler
    ]
    for number in numbers:
        signal.signal(number, lambda which, _frame: came.append(which))
    try:
        yield
    finally:
        for number in numbers:
            signal.signal(number, signal.default_int_handler)
    if came:
        raise KeyboardInterrupt
