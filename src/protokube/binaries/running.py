"""Run a long-running program: log its output, show its last line as progress, and kill it if we are interrupted."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from protokube.binaries.progress import ProgressReporter
from protokube.errors import TryLater

LAST_LINES = 12


class Runner:
    """Runs long-running programs; logs all output, reports the last line, and kills the process group on errors."""

    def __init__(self, log: Path, progress: ProgressReporter) -> None:
        self.log, self.progress = log, progress
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
                    self.progress.say(line.strip())
            except BaseException:
                for each in started:
                    with contextlib.suppress(ProcessLookupError):
                        os.killpg(each.pid, signal.SIGKILL)
                raise
        if child.returncode:
            raise TryLater(
                f"`{' '.join(command)}` failed", saw="\n".join(last), hint=f"its full output is in {self.log}"
            )


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
        # A process group of its own, so that all of it can be killed. Not a session of its own: with autogroup
        # scheduling, `nice` only counts within one session.
        process_group=0,
    )


@contextlib.contextmanager
def _interrupted_later() -> Iterator[None]:
    """Defer signals while a child is started: an interrupt before its pid is known would leave it running."""
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
