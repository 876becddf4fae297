"""The table of `docs/keys.md`: which secret lies where, for comparing it with a cluster that runs."""

from __future__ import annotations

import re
import stat
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "keys.md"
LARGEST = 64 << 20
"""Bytes; disks are larger, and are no files to look into."""


@dataclass(frozen=True, slots=True)
class Row:
    secret: str
    patterns: tuple[str, ...]
    mode: int
    there: str

    def files(self, root: Path, cluster: str) -> dict[str, list[Path]]:
        """What each pattern finds in the folder of a cluster."""
        found = {each: each.replace("/NAME/", f"/{cluster}/").replace("/HOST/", "/*/") for each in self.patterns}
        return {pattern: sorted(root.glob(glob)) for pattern, glob in found.items()}


def rows() -> list[Row]:
    """The rows of the first table."""
    found = []
    for line in PAGE.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 5 and re.fullmatch(r"0[0-7]{3}", cells[2]):
            patterns = tuple(re.findall(r"`([^`]+)`", cells[1]))
            found.append(Row(cells[0], patterns, int(cells[2], 8), cells[3].replace("`", "")))
    return found


def differences(root: Path, cluster: str, there: Collection[str]) -> list[str]:
    """Where the table is wrong about a cluster that has these kinds of secrets."""
    wrong = []
    for row in rows():
        for pattern, files in row.files(root, cluster).items():
            if row.there in there and not files:
                wrong.append(f"{pattern}: there is none")
            modes = {file: stat.S_IMODE(file.lstat().st_mode) for file in files}
            wrong += [f"{file} has mode {mode:04o}" for file, mode in modes.items() if mode != row.mode]
    return wrong


def missing(root: Path, cluster: str, secrets: Iterable[str]) -> list[str]:
    """Files of a cluster that hold one of these secrets and are in no row."""
    known = {file for row in rows() for files in row.files(root, cluster).values() for file in files}
    texts = [each.encode() for each in secrets]
    return [
        str(path)
        for path in sorted(root.rglob("*"))
        if path not in known and path.is_file() and not path.is_symlink() and path.stat().st_size <= LARGEST
        if any(text in path.read_bytes() for text in texts)
    ]
