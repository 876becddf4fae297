"""Which links enable a unit: the [Install] section of its file, as systemctl reads it. Pure.

Only for the root of an image: on a running machine systemd makes the links itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from protokube.nodeup.units.names import NAME


@dataclass(frozen=True, slots=True, kw_only=True)
class Install:
    """An [Install] section."""

    links: tuple[str, ...] = ()
    """Paths below /etc/systemd/system: `multi-user.target.wants/kubelet.service`."""
    also: tuple[str, ...] = ()
    """Units that are enabled with it."""


def read(name: str, contents: Iterable[str]) -> Install:
    """From the text of a unit's file and its drop-ins."""
    lists: dict[str, list[str]] = {}
    for key, value in entries(contents):
        if value:
            lists.setdefault(key, []).extend(value.split())
        else:
            lists[key] = []  # an empty assignment resets a list
    links = [f"{target}.wants/{name}" for target in lists.get("WantedBy", ())]
    links += [f"{target}.requires/{name}" for target in lists.get("RequiredBy", ())]
    links += [alias for alias in lists.get("Alias", ()) if alias != name]
    safe = tuple(dict.fromkeys(each for each in links if all(NAME.fullmatch(part) for part in bare(each))))
    return Install(links=safe, also=tuple(each for each in lists.get("Also", ()) if NAME.fullmatch(each)))


def bare(link: str) -> tuple[str, ...]:
    return tuple(part.removesuffix(".wants").removesuffix(".requires") for part in link.split("/"))


def entries(contents: Iterable[str]) -> Iterable[tuple[str, str]]:
    """Assignments of [Install], with continued lines joined."""
    for content in contents:
        section = ""
        for line in content.replace("\\\n", " ").splitlines():
            text = line.strip()
            if not text or text[0] in "#;":
                continue
            if text.startswith("[") and text.endswith("]"):
                section = text[1:-1]
            elif section == "Install" and "=" in text:
                key, _, value = text.partition("=")
                yield key.strip(), value.strip()
