"""Files and folders stay small enough for a reader."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent.parent / "src" / "protokube"
LINES, MODULES = 300, 20


def test_no_source_file_is_longer_than_a_reader_follows() -> None:
    lengths = {str(file.relative_to(SOURCE)): len(file.read_text().splitlines()) for file in SOURCE.rglob("*.py")}

    assert len(lengths) > 400
    assert {name: length for name, length in lengths.items() if length > LINES} == {}


def test_no_folder_holds_more_modules_than_one_looks_over() -> None:
    files = [file for file in SOURCE.rglob("*.py") if file.name != "__init__.py"]
    counts = Counter(str(file.parent.relative_to(SOURCE)) for file in files)

    assert {folder: count for folder, count in counts.items() if count > MODULES} == {}


def test_every_package_says_what_it_is_for() -> None:
    silent = [str(file.parent.relative_to(SOURCE)) for file in SOURCE.rglob("__init__.py")
              if not file.read_text().lstrip().startswith('"""')]  # fmt: skip

    assert silent == []
