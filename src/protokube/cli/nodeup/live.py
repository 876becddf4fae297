"""What is shown while nodeup works: a line for each change, and on a terminal what is under way now."""

from __future__ import annotations

import shutil
import sys
import threading
import time
from contextlib import suppress

import click

from protokube.cli.render.nodeup import outcome_line
from protokube.nodeup.changes import Outcome

EVERY = 0.1
"""Seconds between two redraws of the line that says what is under way."""


class Live:
    """Implements Observer. Lines that stay go to stdout, the one that is redrawn to stderr, if both are a terminal."""

    def __init__(self, *, quiet: bool = False) -> None:
        """`quiet`: stdout is for data alone; what is waited for is told on stderr."""
        self._quiet = quiet
        self._redraws = not quiet and sys.stderr.isatty() and sys.stdout.isatty()
        self._under_way: dict[str, str] = {}
        self._done, self._drawn = 0, 0.0
        self._writing = threading.Lock()

    def began(self, key: str) -> None:
        with self._writing:
            self._under_way[key] = ""
            self._redraw()

    def said(self, key: str, text: str) -> None:
        with self._writing:
            if key in self._under_way:
                self._under_way[key] = text
                self._redraw()
            else:  # of the run as a whole
                self._line(f"{key}: {text}")

    def waits(self, key: str, why: str, seconds: float) -> None:
        with self._writing:
            self._under_way[key] = f"waits: {why}"
            self._line(f"waits    {key}: {why}; tried again in {seconds:g} s")

    def ended(self, outcome: Outcome) -> None:
        with self._writing:
            self._under_way.pop(outcome.key, None)
            self._done += 1
            if line := outcome_line(outcome):
                self._line(line)
            self._redraw()

    def close(self) -> None:
        """Leave nothing behind that would be redrawn."""
        with self._writing:
            self._clear()
            self._redraws = False

    def _line(self, text: str) -> None:
        self._clear()
        with suppress(BrokenPipeError):  # nobody reads it; the machine is provisioned all the same
            click.echo(text, err=self._quiet)
            (sys.stderr if self._quiet else sys.stdout).flush()
        self._drawn = 0.0

    def _clear(self) -> None:
        if self._redraws:
            with suppress(OSError):
                sys.stderr.write("\r\x1b[K")
                sys.stderr.flush()

    def _redraw(self) -> None:
        now = time.monotonic()
        if not self._redraws or now - self._drawn < EVERY:
            return
        self._drawn = now
        parts = [f"{key}: {text}" if text else key for key, text in self._under_way.items()]
        width = max(shutil.get_terminal_size().columns - 1, 20)
        with suppress(OSError):
            text = f"  …  {self._done} done; {', '.join(parts)}"
            sys.stderr.write(f"\r\x1b[K{text[:width]}")
            sys.stderr.flush()


class Unseen:
    """Implements Observer for a plan, whose result is all that is shown."""

    def began(self, key: str) -> None:
        pass

    def said(self, key: str, text: str) -> None:
        pass

    def waits(self, key: str, why: str, seconds: float) -> None:
        pass

    def ended(self, outcome: Outcome) -> None:
        pass
