"""The template of every host of a group; written by `up`, kept as long as the group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path, PurePosixPath
from typing import Any

from protokube.errors import InvalidRequest
from protokube.host.files import write_atomic

FOLDERS = ("etc", "srv")
"""Top folders below which a template may put files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """A host without name and address."""

    units: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Commands that init keeps running, by unit."""
    startable: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Units that run once a process inside starts them; an empty command is the built-in static pod runner."""
    path: str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    environment: Mapping[str, str] = field(default_factory=dict)
    shown: Sequence[str] = ()
    """Folders of the machine bind-mounted read-only at the same path inside."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Content by path inside the host."""
    zone: str = "local"
    master: bool = True

    @staticmethod
    def read(document: Any) -> Template:
        """Decode a template; raises InvalidRequest with every problem at once."""
        if not isinstance(document, dict):
            raise InvalidRequest("a template is a JSON object", saw=type(document).__name__)
        wrong = [
            f"{name}: there is no such field"
            for name in sorted(set(document) - {each.name for each in fields(Template)})
        ]
        wrong += [
            f"{name}: {want}" for name, (fits, want) in SHAPES.items() if name in document and not fits(document[name])
        ]
        if not wrong:
            files = document.get("files", {})
            wrong = [f"files: {path} is not below /etc or /srv" for path in files if not _inside(path)]
        if wrong:
            raise InvalidRequest("the template is invalid", saw="; ".join(wrong))
        return Template(**document)

    def write_files(self, folder: Path) -> None:
        """Write its files into the folder of a host that is not started yet."""
        for path, content in self.files.items():
            place = folder / PurePosixPath(path).relative_to("/")
            place.parent.mkdir(parents=True, exist_ok=True)
            write_atomic(place, content.encode(), 0o600, durable=False)


def _inside(path: str) -> bool:
    parts = PurePosixPath(path).parts
    return len(parts) > 2 and parts[0] == "/" and parts[1] in FOLDERS and ".." not in parts


def _texts(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(each, str) for each in value.values())


def _commands(value: Any) -> bool:
    return isinstance(value, dict) and all(_words(command) for command in value.values())


def _words(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(word, str) for word in value)


SHAPES = {
    "units": (_commands, "wants a list of words for each unit"),
    "startable": (_commands, "wants a list of words for each unit"),
    "path": (lambda value: isinstance(value, str), "wants text"),
    "environment": (_texts, "wants text for each variable"),
    "shown": (_words, "wants a list of folders"),
    "files": (_texts, "wants text for each path"),
    "zone": (lambda value: isinstance(value, str) and value != "", "wants a name"),
    "master": (lambda value: isinstance(value, bool), "wants true or false"),
}
