"""What the agent of a master reads when it starts: its configuration, and where everything else is.

The file agent.json, which comes with the launch data. It has no secrets, because the cloud stores it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from protokube.errors import InvalidRequest
from protokube.launch.machine import MasterConfig, from_tree, to_tree

VERSION = 1
"""Of the document; greater after a change that earlier versions of protokube would misread."""
PKI = "/srv/kubernetes"
SHORTEST, LONGEST = 1.0, 300.0
"""Seconds between two publications of an agent: the latter is the longest that its report may be old."""
NEEDED = ("master", "store", "infrastructure", "units")
KINDS: Mapping[str, tuple[type | tuple[type, ...], str]] = {
    "version": (int, "a number"),
    "master": (dict, "an object"),
    "store": (str, "a URL"),
    "infrastructure": (dict, "an object"),
    "dns": (dict, "an object"),
    "units": (str, "a name"),
    "pki": (str, "a path"),
    "publishEvery": ((int, float), "seconds"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchDocument:
    """The content of agent.json."""

    master: MasterConfig
    store: str
    """The URL of the state store."""
    infrastructure: Mapping[str, Any]
    """The provider of volumes and machines, by its `kind`, and its settings."""
    units: str
    """The service manager: `local` or `systemd`."""
    dns: Mapping[str, Any] = field(default_factory=dict)
    """The provider of names and its settings; empty without one."""
    pki: str = PKI
    """The folder of keys and certificates."""
    publish_every: float | None = None
    """Seconds from one publication of the agent's status to the next at least; None for the agent's default."""

    def to_tree(self) -> dict[str, Any]:
        tree: dict[str, Any] = {
            "version": VERSION, "master": to_tree(self.master), "store": self.store,
            "infrastructure": dict(self.infrastructure), "dns": dict(self.dns), "units": self.units, "pki": self.pki,
        }  # fmt: skip
        return tree | ({"publishEvery": self.publish_every} if self.publish_every is not None else {})

    @classmethod
    def from_tree(cls, tree: Any, name: str = "agent.json") -> LaunchDocument:
        """InvalidRequest, with the path of what is wrong, unless it is a document that this protokube knows."""
        if not isinstance(tree, dict):
            raise InvalidRequest(f"{name} holds no JSON object", saw=type(tree).__name__, hint="write it again")
        version = tree.get("version", VERSION)
        if type(version) is int and version > VERSION:
            raise InvalidRequest(
                f"{name} was made by a newer version of protokube",
                saw=f"version {version}; this protokube reads up to {VERSION}",
                hint="install the newer version on this machine",
            )
        if missing := [each for each in NEEDED if each not in tree]:
            raise InvalidRequest(f"{name} lacks {', '.join(missing)}", hint="write it again")
        tree = {each: value for each, value in tree.items() if each != "dns" or value is not None}
        for each, value in tree.items():
            _check(name, each, value)
        every = tree.get("publishEvery")
        if every is not None and not SHORTEST <= every <= LONGEST:
            want = f"seconds, from {SHORTEST:g} to {LONGEST:g}"
            raise InvalidRequest(f"{name}: publishEvery: not such a time", saw=repr(every), want=want)
        return cls(
            master=from_tree(tree["master"]),
            store=tree["store"],
            infrastructure=tree["infrastructure"],
            units=tree["units"],
            dns=tree.get("dns", {}),
            pki=tree.get("pki", PKI),
            publish_every=None if every is None else float(every),
        )


def _check(name: str, each: str, value: Any) -> None:
    if each not in KINDS:
        raise InvalidRequest(f"{name}: {each}: no such field", want=", ".join(KINDS), hint="write it again")
    kind, words = KINDS[each]
    if not isinstance(value, kind) or isinstance(value, bool):
        raise InvalidRequest(f"{name}: {each}: not {words}", saw=repr(value)[:80], hint="write it again")


def read_launch_document(file: Path) -> LaunchDocument:
    """InvalidRequest if it cannot be read."""
    tree = read_tree(file, missing="it comes with the launch data of a master", broken="write it again")
    return LaunchDocument.from_tree(tree, str(file))


def read_tree(file: Path, *, missing: str, broken: str) -> Any:
    """The content of a JSON file; InvalidRequest with one of these hints if there is none."""
    try:
        return json.loads(file.read_text())
    except OSError as error:
        raise InvalidRequest(f"cannot read {file}: {error.strerror}", hint=missing) from error
    except (ValueError, RecursionError) as error:
        raise InvalidRequest(f"{file} is not JSON: {error}", hint=broken) from error
