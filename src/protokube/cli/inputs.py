"""What commands read: files, directories and standard input."""

from __future__ import annotations

import sys
from pathlib import Path

from protokube.errors import InvalidSpec, Problem, Refused

ENDINGS = (".yaml", ".yml", ".json")


def read_specs(names: tuple[str, ...]) -> list[tuple[str, str]]:
    """Each file's name and text; a directory stands for the documents in it, `-` for standard input."""
    texts: list[tuple[str, str]] = []
    for name in names:
        if name == "-":
            texts.append(("<stdin>", sys.stdin.read()))
            continue
        path = Path(name)
        found = sorted(each for each in path.iterdir() if each.suffix in ENDINGS) if path.is_dir() else [path]
        if not found:
            raise Refused(f"{name} holds no document", want=f"files ending in {', '.join(ENDINGS)}")
        texts += [(str(each), _read(each)) for each in found]
    return texts


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except UnicodeDecodeError as error:
        message = f"{path} is not UTF-8 text: {error.reason} at byte {error.start}"
        raise InvalidSpec([Problem(path="", message=message)]) from error
    except OSError as error:
        raise Refused(f"cannot read {path}: {error.strerror}", hint="check the name and the permissions") from error
