"""What is shown while nodeup works: a line for each change, and on a terminal what is under way now."""

from __future__ import annotations

import shutil
import sys
import threading
import time
from contextlib import suppress
from typing import TextIO

import click

from protokube.cli.render.nodeup import outcome_line, plain
from protokube.nodeup.changes import Outcome

EVERY = 0.1
"""Seconds between two redraws of the line that says what is under way."""
WAITING = "waiting for "
"""How a task begins to say that somebody else holds it up."""


class Live:
    """Implements Observer. Lines that stay go to stdout, the one that is redrawn to stderr, if both are a terminal."""

    def __init__(
        self, *, quiet: bool = False, out: TextIO | None = None, err: TextIO | None = None, every: float = EVERY
    ) -> None:
        """`quiet`: stdout is for data alone; lines go to stderr."""
        self._err = err or sys.stderr
        self._out = self._err if quiet else out or sys.stdout
        self._every = every
        self._redraws = not quiet and self._err.isatty() and self._out.isatty()
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
                before, self._under_way[key] = self._under_way[key], text
                self._redraw()
                if (
                    text.startswith(WAITING) and text != before and not self._redraws
                ):  # a console shows why nothing goes on
                    self._line(f"waits    {key}: {text}")
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
        with suppress(OSError):  # nobody reads it, or its disk is full; the machine is provisioned all the same
            click.echo(plain(text), file=self._out)
            self._out.flush()
        self._drawn = 0.0

    def _clear(self) -> None:
        if self._redraws:
            with suppress(OSError):
                self._err.write("\r\x1b[K")
                self._err.flush()

    def _redraw(self) -> None:
        now = time.monotonic()
        if not self._redraws or now - self._drawn < self._every:
            return
        self._drawn = now
        parts = [f"{key}: {text}" if text else key for key, text in self._under_way.items()]
        width = max(shutil.get_terminal_size().columns - 1, 20)
        with suppress(OSError):
            text = plain(f"  …  {self._done} done; {', '.join(parts)}")
            self._err.write(f"\r\x1b[K{text[:width]}")
            self._err.flush()


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
