"""Long work, step by step, each with its time: on standard error, so that results stay alone on standard output."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import click


class Progress:
    """On a terminal a step shows while it runs; in a pipe there is one line when it is over."""

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
        """What is being waited for right now; on a terminal only, it is replaced by the next."""
        self._show(f"  …  {text}")

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
    """What the line will say in the end; the work may make it more exact."""

    def __init__(self, text: str) -> None:
        self.text = text
