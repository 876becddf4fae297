"""Log lines on standard output: as bytes, since a terminal of another encoding must not end the command."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence

from protokube.cli.render.logs import Prefixes, Shown, as_json, as_text
from protokube.local.logs.following import Line
from protokube.local.logs.targets import Trail

BATCH = 500
"""Lines that are written at once."""


class Output:
    """Lines in one form: text with or without a prefix, or JSON."""

    def __init__(self, trails: Sequence[Trail], output: str) -> None:
        self._json = output == "json"
        self._terminal = sys.stdout.isatty()
        places = [place for trail in trails for place in trail.places]
        coloured = self._terminal and not os.environ.get("NO_COLOR")
        self._prefixes = Prefixes(sources=len({each.source for each in places}) > 1, coloured=coloured)
        self._prefixes.expect((each.host, each.source) for each in places)
        self._prefixed = len(set(places)) > 1 or any(each.target.kind == "component" for each in trails)

    def write(self, lines: Iterable[Line]) -> bool:
        """Whether there was any."""
        batch: list[str] = []
        anything = False
        for line in lines:
            anything = True
            batch.append(self._form(Shown(line.at, line.place.host, line.place.source, line.text)))
            if len(batch) == BATCH:
                self._flush(batch)
        self._flush(batch)
        return anything

    def _form(self, line: Shown) -> str:
        if self._json:
            return as_json(line)
        return as_text(line, self._prefixes.of(line) if self._prefixed else "", terminal=self._terminal)

    def _flush(self, batch: list[str]) -> None:
        if batch:
            sys.stdout.buffer.write("".join(f"{each}\n" for each in batch).encode(errors="replace"))
            sys.stdout.buffer.flush()
            batch.clear()
