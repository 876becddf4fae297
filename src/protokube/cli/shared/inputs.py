"""Read specs from files, directories and standard input."""

from __future__ import annotations

import sys
from pathlib import Path

from protokube.errors import InvalidSpec, Problem, Refused, Where

ENDINGS = (".yaml", ".yml", ".json")
Texts = list[tuple[str, str]]
"""Name and content of each file."""


def read_specs(names: tuple[str, ...]) -> Texts:
    """Each file's name and text; a directory stands for the documents in it, `-` for standard input."""
    texts: Texts = []
    for name in names:
        if name == "-":
            texts.append(("<stdin>", text_of(sys.stdin.buffer.read(), "<stdin>")))
            continue
        try:
            texts += [(str(each), text_of(each.read_bytes(), str(each))) for each in _files(Path(name))]
        except OSError as error:
            what, hint = error.filename or name, "check the name and the permissions"
            raise Refused(f"cannot read {what}: {error.strerror}", hint=hint) from error
    return texts


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    found = sorted(each for each in path.iterdir() if each.suffix in ENDINGS and not each.is_dir())
    if not found:
        raise Refused(f"{path} holds no document", want=f"files ending in {', '.join(ENDINGS)}")
    return found


def text_of(data: bytes, name: str) -> str:
    """Decode as UTF-8, independent of the locale."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        where = Where(name, data.count(b"\n", 0, error.start) + 1)
        message = f"not UTF-8 text: {error.reason} at byte {error.start} of the file"
        raise InvalidSpec([Problem(path="", message=message, hint="save it as UTF-8", where=where)]) from error
