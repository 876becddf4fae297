"""Format tables, durations and sizes. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

GAP = "  "


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Lines with aligned columns; an empty cell is a dash. Without rows, no lines."""
    cells = [[each or "-" for each in row] for row in rows]
    if not cells:
        return []
    lines = [list(header), *cells]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    return [GAP.join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines]


def lasting(seconds: float) -> str:
    """A duration as one number and its unit: `0.4 s`, `12 s`, `3 min`, `5 h`, `2 d`."""
    if seconds < 0.95:
        return f"{max(seconds, 0.0):.1f} s"
    for size, unit, until in ((1, "s", 120), (60, "min", 7200), (3600, "h", 172800)):
        if seconds < until:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds / 86400:.0f} d"


def exactly(seconds: float) -> str:
    """A duration with hundredths of a second, as drills report it."""
    return f"{seconds:.2f} s"


def size(count: int) -> str:
    """A size in bytes with its unit: `20 GiB`, `96 KiB`; empty for 0."""
    if count <= 0:
        return ""
    number = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if number < 1024:
            return f"{number:.0f} {unit}"
        number /= 1024
    return f"{number:.0f} TiB"


def several(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"
