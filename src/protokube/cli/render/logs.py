"""Log lines as text and as data, and the list of the logs there are. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from protokube.cli.render.table import lasting, several, table

COLOURS = (36, 33, 32, 35, 34, 91)
CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
"""What would move a terminal's cursor or change its colours; a tab stays."""


class Shown(NamedTuple):
    """One line as it is shown: when it was logged, if that is known, and by whom."""

    at: float | None
    host: str
    source: str
    text: str


class Prefixes:
    """A column in front of each line that says where it comes from; it grows with the longest name so far."""

    def __init__(self, *, sources: bool, coloured: bool) -> None:
        self._sources, self._coloured = sources, coloured
        self._colours: dict[str, int] = {}
        self._width = 0

    def expect(self, places: Iterable[tuple[str, str]]) -> None:
        for host, source in places:
            self._width = max(self._width, len(self._label(host, source)))

    def of(self, line: Shown) -> str:
        label = self._label(line.host, line.source)
        self._width = max(self._width, len(label))
        text = f"{label.ljust(self._width)} | "
        if not self._coloured:
            return text
        colour = self._colours.setdefault(label, COLOURS[len(self._colours) % len(COLOURS)])
        return f"\x1b[{colour}m{text}\x1b[0m"

    def _label(self, host: str, source: str) -> str:
        return "/".join(filter(None, (host, source))) if self._sources or not host else host


def as_text(line: Shown, prefix: str, *, terminal: bool) -> str:
    """On a terminal without control characters: what a program logs must not command it."""
    return prefix + (CONTROLS.sub("\ufffd", line.text) if terminal else line.text)


def as_json(line: Shown) -> str:
    """One object in one line."""
    at = None if line.at is None else datetime.fromtimestamp(line.at, UTC).isoformat(timespec="microseconds")
    tree = {"time": at, "host": line.host or None, "log": line.source, "line": line.text}
    return json.dumps(tree, ensure_ascii=False)


def render_list(tree: Mapping[str, Any], now: float) -> list[str]:
    """What `protokube logs` can be asked for."""

    def row(each: Mapping[str, Any]) -> tuple[str, str, str]:
        hosts: Sequence[str] = each["hosts"]
        where = ", ".join(hosts) if len(hosts) < 2 else several(len(hosts), "host")
        last = each["lastWrite"]
        return each["name"], where, "" if last is None else f"{lasting(max(now - last, 0.0))} ago"

    return [
        *table(("LOG", "HOST", "LAST LINE"), [row(each) for each in tree["logs"]]),
        "",
        f"`protokube logs NAME` shows one; a host alone ({', '.join(tree['hosts']) or 'none runs'}) is its agent,",
        "HOST/LOG one log of one host. -f follows it.",
    ]
