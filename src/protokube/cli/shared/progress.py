"""Progress of long work, one line per step with its duration. On stderr, so that stdout has the result alone.

While a step lasts, something is printed each second, so that nobody wonders whether it goes on: on a terminal its
duration so far, in a pipe a dot.
"""

from __future__ import annotations

import shutil
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import click

EVERY = 1.0
"""Seconds of silence during a step."""


class Progress:
    """On a terminal, show a step while it runs; in a pipe, print one line when it is done, and more while it lasts."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self._live = not quiet and sys.stderr.isatty()
        self.began = time.monotonic()
        self._text, self._dotted, self._printed = "", "", self.began
        self._going_on: list[threading.Event] = []
        """The steps that last, the innermost one last: that one alone is shown."""
        self._writing = threading.Lock()

    @contextmanager
    def step(self, text: str) -> Iterator[Step]:
        step = Step(text)
        began, outer = time.monotonic(), self._text
        self._show(f"  …  {text}")
        try:
            with self._shown_again(began):
                yield step
        except BaseException:
            self._end(click.style("  ✗", fg="red") + f"  {step.text}", outer)
            raise
        self._end(click.style("  ✓", fg="green") + f"  {step.text:<60} {time.monotonic() - began:6.2f} s", outer)

    @contextmanager
    def _shown_again(self, began: float) -> Iterator[None]:
        ended = threading.Event()
        beating = threading.Thread(target=self._beat, args=(ended, began), daemon=True)
        self._going_on.append(ended)
        if not self._quiet:
            beating.start()
        try:
            yield
        finally:
            self._going_on.remove(ended)
            ended.set()
            if not self._quiet:
                beating.join()

    def _beat(self, ended: threading.Event, began: float) -> None:
        while not ended.wait(EVERY / 4):
            with self._writing:
                now = time.monotonic()
                if now - self._printed < EVERY or self._going_on[-1:] != [ended]:
                    continue
                self._printed = now
                with suppress(OSError, ValueError):  # whoever reads it is gone; the step tells that at its end
                    if self._live:
                        self._redraw(f"{self._text}, {now - began:.0f} s")
                    else:
                        self._dot()

    def say(self, text: str) -> None:
        """Show what is waited for now; on a terminal only, until the next text replaces it."""
        self._show(f"  …  {text}")

    def note(self, text: str) -> None:
        """Print a line that stays."""
        self._end(f"     {text}", self._text)

    def _show(self, text: str) -> None:
        with self._writing:
            changed, self._text = text != self._text, text
            if self._live and changed:
                self._redraw(text)
                self._printed = time.monotonic()

    def _redraw(self, text: str) -> None:
        width = shutil.get_terminal_size().columns
        sys.stderr.write(f"\r\x1b[K{text[: max(width - 1, 20)]}")
        sys.stderr.flush()

    def _dot(self) -> None:
        if self._dotted != self._text:
            click.echo(("\n" if self._dotted else "") + f"{self._text} ", nl=False, err=True)
            self._dotted = self._text
        click.echo(".", nl=False, err=True)

    def _end(self, text: str, goes_on: str) -> None:
        """Print a line that stays; `goes_on`: what is shown from then on."""
        if self._quiet:
            return
        with self._writing:
            self._text = goes_on
            if self._live:
                sys.stderr.write("\r\x1b[K")
            elif self._dotted:
                click.echo(err=True)
            self._dotted = ""
            click.echo(text, err=True)
            self._printed = time.monotonic()


class Step:
    """The text of the final line; the work may set a more exact one."""

    def __init__(self, text: str) -> None:
        self.text = text
