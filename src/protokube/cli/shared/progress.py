"""Progress of long work, one line per step with its duration. On stderr, so that stdout has the result alone."""

from __future__ import annotations

import shutil
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import click

SILENCE = 1.5
"""Seconds without output after which a step that still runs is shown again."""
TICK = 0.25


class Progress:
    """On a terminal, show a step while it runs; in a pipe, print a line when it is done, and while it takes long."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self._live = not quiet and sys.stderr.isatty()
        self.began = time.monotonic()
        self._lock = threading.Lock()
        self._running: list[Step] = []
        self._shown, self._shown_at = "", self.began
        self._ended = threading.Event()
        self._ticker: threading.Thread | None = None

    @contextmanager
    def step(self, text: str) -> Iterator[Step]:
        step = Step(text)
        began = time.monotonic()
        self._begin(step)
        try:
            yield step
        except BaseException:
            self._finish()
            self._end(click.style("  ✗", fg="red") + f"  {step.text}")
            raise
        self._finish()
        self._end(click.style("  ✓", fg="green") + f"  {step.text:<60} {time.monotonic() - began:6.2f} s")

    def say(self, text: str) -> None:
        """Show what is waited for now: on a terminal until the next text replaces it, in a pipe if it takes long."""
        with self._lock:
            self._show(f"  …  {text}")

    def note(self, text: str) -> None:
        """Print a line that stays."""
        self._end(f"     {text}")

    def _begin(self, step: Step) -> None:
        with self._lock:
            self._running.append(step)
            self._show(f"  …  {step.text}")
        if self._ticker is None and not self._quiet:
            self._ended.clear()
            self._ticker = threading.Thread(target=self._tick, name="progress", daemon=True)
            self._ticker.start()

    def _finish(self) -> None:
        with self._lock:
            self._running.pop()
            self._shown = f"  …  {self._running[-1].text}" if self._running else ""
            over = not self._running
        if over and self._ticker is not None:
            self._ended.set()
            self._ticker.join()
            self._ticker = None

    def _tick(self) -> None:
        """Show how long it has taken so far whenever nothing was shown for a while."""
        while not self._ended.wait(TICK):
            with self._lock:
                now = time.monotonic()
                if not self._running or now - self._shown_at < SILENCE:
                    continue
                line = f"{self._shown}  ({now - self._running[-1].began:.0f} s)"
                self._shown_at = now
                try:
                    self._draw(line) if self._live else click.echo(line, err=True)
                except (OSError, ValueError):  # nobody reads it any more; the command itself finds out
                    return

    def _show(self, line: str) -> None:
        self._shown = line
        if self._live:
            self._draw(line)
            self._shown_at = time.monotonic()

    @staticmethod
    def _draw(line: str) -> None:
        width = shutil.get_terminal_size().columns
        sys.stderr.write(f"\r\x1b[K{line[: max(width - 1, 20)]}")
        sys.stderr.flush()

    def _end(self, text: str) -> None:
        if self._quiet:
            return
        with self._lock:
            if self._live:
                sys.stderr.write("\r\x1b[K")
            click.echo(text, err=True)
            self._shown_at = time.monotonic()


class Step:
    """The text of the final line; the work may set a more exact one."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.began = time.monotonic()
