"""Progress of long work, one line per step with its duration. On stderr, so that stdout has the result alone."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import click


class Progress:
    """On a terminal, show a step while it runs; in a pipe, print one line when it is done."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self._live = not quiet and sys.stderr.isatty()
        self.began = time.monotonic()

    @contextmanager
    def step(self, text: str) -> Iterator[Step]:
        step = Step(text)
        began = time.monotonic()
        self._show(f"  …  {text}")
        try:
            yield step
        except BaseException:
            self._end(click.style("  ✗", fg="red") + f"  {step.text}")
            raise
        self._end(click.style("  ✓", fg="green") + f"  {step.text:<60} {time.monotonic() - began:6.2f} s")

    def say(self, text: str) -> None:
        """Show what is waited for now; on a terminal only, until the next text replaces it."""
        self._show(f"  …  {text}")

    def note(self, text: str) -> None:
        """Print a line that stays."""
        self._end(f"     {text}")

    def _show(self, text: str) -> None:
        if self._live:
            width = shutil.get_terminal_size().columns
            sys.stderr.write(f"\r\x1b[K{text[: max(width - 1, 20)]}")
            sys.stderr.flush()

    def _end(self, text: str) -> None:
        if self._quiet:
            return
        if self._live:
            sys.stderr.write("\r\x1b[K")
        click.echo(text, err=True)


class Step:
    """The text of the final line; the work may set a more exact one."""

    def __init__(self, text: str) -> None:
        self.text = text
