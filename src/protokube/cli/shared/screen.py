"""Output of rendered text: redrawn in place on a terminal, one line per change in a pipe.

On a terminal, lines that are too long are truncated: a wrapped line would count as two when the cursor moves back up.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Sequence
from typing import Any, TextIO

import click

UP, CLEAR = "\x1b[{}F", "\x1b[J"


class Screen:
    """A text that is shown repeatedly, as it changes."""

    def __init__(self, out: TextIO | None = None, *, redraw: bool | None = None) -> None:
        self.out = out or sys.stdout
        self.redraws = self.out.isatty() if redraw is None else redraw
        self._height = 0

    def show(self, lines: Sequence[str], *, last: bool = False) -> None:
        """Replace the text shown before; for a terminal only. With `last`, nothing is truncated."""
        columns, rows = shutil.get_terminal_size()
        shown = list(lines) if last else [line[:columns] for line in fit(lines, rows - 1)]
        back = UP.format(self._height) if self._height else ""
        click.echo(back + CLEAR + "\n".join(map(paint, shown)), file=self.out, color=True)
        self._height = len(shown)

    def tell(self, lines: Sequence[str]) -> None:
        """Append lines; nothing is redrawn."""
        for line in lines:
            click.echo(line, file=self.out)
        self.out.flush()


def fit(lines: Sequence[str], rows: int) -> list[str]:
    """Truncate to the height of the terminal: keep the first line and the end, which says what is waited for."""
    if len(lines) > rows:
        lines = [line for line in lines if line]
    rows = max(rows, 2)
    return [*lines] if len(lines) <= rows else [lines[0], *lines[-(rows - 1) :]]


def paint(line: str) -> str:
    """Highlight headings, and what needs a person; not with NO_COLOR."""
    if os.environ.get("NO_COLOR"):
        return line
    if line.startswith(("needs a person", "broken")):
        return click.style(line, fg="red", bold=True)
    if line.endswith(":") and not line.startswith(" "):
        return click.style(line, bold=True)
    if line.partition(" ")[0].isupper() and line.isupper():
        return click.style(line, dim=True)
    return line


def show_painted(lines: Sequence[str]) -> None:
    """Print once to standard output; without colours in a pipe."""
    for line in lines:
        click.echo(paint(line))


def show_data(tree: Any, output: str) -> None:
    if output == "yaml":
        import yaml

        click.echo(yaml.safe_dump(tree, sort_keys=False, allow_unicode=True), nl=False)
    else:
        click.echo(json.dumps(tree, indent=2, ensure_ascii=False))
