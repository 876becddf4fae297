"""What every host of a group is made from; `up` writes it, and it lasts as long as the group."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path, PurePosixPath
from typing import Any

from protokube.errors import InvalidRequest
from protokube.host.files import write_atomic

FOLDERS = ("etc", "srv")
"""Where a template may put files: folders of the host's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """A host before it has a name and an address."""

    units: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """What its init keeps running, by the name of the unit."""
    startable: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """What runs once somebody inside asked for it; no words at all means the built-in static pod runner."""
    path: str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    environment: Mapping[str, str] = field(default_factory=dict)
    shown: Sequence[str] = ()
    """Folders of the machine that are seen inside, read-only, at the same place."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Content by path inside the host."""
    zone: str = "local"
    master: bool = True

    def encode(self) -> str:
        return json.dumps(asdict(self), sort_keys=True)

    @staticmethod
    def read(told: Any) -> Template:
        """InvalidRequest with everything that is wrong with it."""
        if not isinstance(told, dict):
            raise InvalidRequest("a template is a JSON object", saw=type(told).__name__)
        wrong = [
            f"{name}: there is no such field" for name in sorted(set(told) - {each.name for each in fields(Template)})
        ]
        wrong += [f"{name}: {want}" for name, (fits, want) in SHAPES.items() if name in told and not fits(told[name])]
        if not wrong:
            wrong = [f"files: {path} is not below /etc or /srv" for path in told.get("files", {}) if not _inside(path)]
        if wrong:
            raise InvalidRequest("the template cannot be carried out", saw="; ".join(wrong))
        return Template(**told)

    def write_files(self, folder: Path) -> None:
        """Into the folders of a host that is not started yet."""
        for path, content in self.files.items():
            place = folder / PurePosixPath(path).relative_to("/")
            place.parent.mkdir(parents=True, exist_ok=True)
            write_atomic(place, content.encode(), 0o600, durable=False)


def _inside(path: str) -> bool:
    parts = PurePosixPath(path).parts
    return len(parts) > 2 and parts[0] == "/" and parts[1] in FOLDERS and ".." not in parts


def _texts(told: Any) -> bool:
    return isinstance(told, dict) and all(isinstance(value, str) for value in told.values())


def _commands(told: Any) -> bool:
    return isinstance(told, dict) and all(_words(command) for command in told.values())


def _words(told: Any) -> bool:
    return isinstance(told, list) and all(isinstance(word, str) for word in told)


SHAPES = {
    "units": (_commands, "wants a list of words for each unit"),
    "startable": (_commands, "wants a list of words for each unit"),
    "path": (lambda told: isinstance(told, str), "wants text"),
    "environment": (_texts, "wants text for each variable"),
    "shown": (_words, "wants a list of folders"),
    "files": (_texts, "wants text for each path"),
    "zone": (lambda told: isinstance(told, str) and told != "", "wants a name"),
    "master": (lambda told: isinstance(told, bool), "wants true or false"),
}
