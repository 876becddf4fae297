"""Draw docs/architecture.svg: packages in rows, and which imports which, read off import-linter's own graph."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from pathlib import Path

import grimp

ROOT = Path(__file__).resolve().parent.parent
ROWS = ROOT / "docs" / "architecture.txt"
PACKAGE = "protokube"
ALONE = frozenset({"__main__", "fast_yaml", "nearest", "notes", "signals"})
"""Modules beside the packages."""
WIDTH, ROW, BOX, MARGIN, GAP = 1180, 92, 52, 20, 12
BY_ALL = "errors"
"""Imported by everything: arrows to it would tell nothing."""
PURE = frozenset({"spec", "config", "members", "records", "manifests", "addons", "errors"})
EDGES = frozenset({"providers", "host", "etcd", "store", "pki", "kube", "apiproxy", "binaries", "images"})

Imports = frozenset[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Box:
    name: str
    caption: str
    x: float
    y: float
    width: float

    @property
    def centre(self) -> float:
        return self.x + self.width / 2


def rows(text: str) -> list[dict[str, str]]:
    """Each row: captions by package."""
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    parts = [[part.split(":", 1) for part in line.split("|")] for line in lines]
    return [{name.strip(): caption.strip() for name, caption in row} for row in parts]


def imports() -> Imports:
    """Pairs of packages of which the first imports the second."""
    graph = grimp.build_graph(PACKAGE, cache_dir=None)
    found = set()
    for module in graph.modules:
        for imported in graph.find_modules_directly_imported_by(module):
            pair = (_package(module), _package(imported))
            if "" not in pair and pair[0] != pair[1]:
                found.add(pair)
    return frozenset(found)


def _package(module: str) -> str:
    name = module.split(".")[1] if "." in module else ""
    return "" if name in ALONE else name


def reduced(found: Imports) -> Imports:
    """Without the imports that follow from others: a picture of all of them would be black."""

    def reaches(start: str, end: str, without: tuple[str, str]) -> bool:
        seen, waiting = set[str](), [start]
        while waiting:
            name = waiting.pop()
            seen.add(name)
            waiting += [to for of, to in found if of == name and (of, to) != without and to not in seen]
        return end in seen

    return frozenset(pair for pair in found if not reaches(*pair, without=pair))


def boxes(captions: list[dict[str, str]]) -> dict[str, Box]:
    placed = {}
    for number, row in enumerate(captions):
        weights = [max(len(caption), len(name) + 4, 14) for name, caption in row.items()]
        room = WIDTH - 2 * MARGIN - GAP * (len(row) - 1)
        share = min(room / sum(weights), 9.0)
        x = (WIDTH - share * sum(weights) - GAP * (len(row) - 1)) / 2
        for weight, (name, caption) in zip(weights, row.items(), strict=True):
            placed[name] = Box(name, caption, x, MARGIN + number * ROW, share * weight)
            x += share * weight + GAP
    return placed


def draw(text: str, found: Imports) -> str:
    """The whole picture. ValueError if rows and imports do not fit."""
    captions = rows(text)
    if wrong := problems(captions, found):
        raise ValueError("; ".join(wrong))
    placed = boxes(captions)
    height = MARGIN * 2 + ROW * (len(captions) - 1) + BOX
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif">',
        "<title>Packages of protokube: each imports only those below it</title>",
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0 L8 4 L0 8 z" fill="#7a8699"/></marker></defs>',
    ]
    lines += [_arrow(placed[of], placed[to]) for of, to in sorted(reduced(found)) if to != BY_ALL]
    lines += [line for box in placed.values() for line in _drawn(box)]
    return "\n".join([*lines, "</svg>"]) + "\n"


def problems(captions: list[dict[str, str]], found: Imports) -> list[str]:
    """What of the rows is not so: a package that is missing or unknown, an import that does not lead down."""
    level = {name: number for number, row in enumerate(captions) for name in row}
    packages = {path.parent.name for path in (ROOT / "src" / PACKAGE).glob("*/__init__.py")} | {"errors"}
    wrong = [f"{name} is in no row" for name in sorted(packages - level.keys())]
    wrong += [f"there is no package {name}" for name in sorted(level.keys() - packages)]
    known = [pair for pair in sorted(found) if pair[0] in level and pair[1] in level]
    return wrong + [f"{of} imports {to}, which is not below it" for of, to in known if level[of] >= level[to]]


def _arrow(of: Box, to: Box) -> str:
    begin, end = of.y + BOX, to.y
    bend = (end - begin) / 2
    way = f"M{of.centre:.0f} {begin:.0f} C{of.centre:.0f} {begin + bend:.0f} {to.centre:.0f} {end - bend:.0f}"
    return f'<path d="{way} {to.centre:.0f} {end:.0f}" fill="none" stroke="#7a8699" marker-end="url(#tip)"/>'


def _drawn(box: Box) -> list[str]:
    colour = "#e8f2e4" if box.name in PURE else "#fdf0dc" if box.name in EDGES else "#e4ecf7"
    return [
        f'<rect x="{box.x:.0f}" y="{box.y:.0f}" width="{box.width:.0f}" height="{BOX}" rx="6" fill="{colour}" '
        'stroke="#44546a"/>',
        f'<text x="{box.centre:.0f}" y="{box.y + 21:.0f}" font-size="15" font-weight="bold" text-anchor="middle">'
        f"{escape(box.name)}</text>",
        f'<text x="{box.centre:.0f}" y="{box.y + 40:.0f}" font-size="12" text-anchor="middle">'
        f"{escape(box.caption)}</text>",
    ]


def picture() -> str:
    return draw(ROWS.read_text("utf-8"), imports())
