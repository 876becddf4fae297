"""Tasks and machines for tests of nodeup."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from protokube.errors import Refused
from protokube.nodeup.changes import Outcome
from protokube.nodeup.facts import Facts
from protokube.nodeup.machine import Machine, Ran, Say
from protokube.nodeup.values import Command

DEBIAN = Facts(distribution="debian", distribution_version="12", systemd=252)
OURS = (str(os.geteuid()), str(os.getegid()))
"""Owner and group that a test may give a file, also without root."""


def a_task(name: str, *after: str) -> Command:
    """A task that claims no path; its key is `command NAME`, and it comes after the commands named."""
    return Command(name=name, run=("true",), check=("false",), after=tuple(f"command {each}" for each in after))


def no_commands(
    words: Sequence[str], *, seconds: float = 0, environment: dict[str, str] | None = None, say: Say | None = None
) -> Ran:
    raise Refused(f"this machine runs no commands: {' '.join(words)}")


def a_root(folder: Path, facts: Facts = DEBIAN) -> Machine:
    """The root of an image, with the accounts that every system has."""
    (folder / "etc").mkdir(parents=True, exist_ok=True)
    for name, mode, text in (
        (
            "passwd",
            0o644,
            "root:x:0:0:root:/root:/bin/bash\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
        ),
        ("group", 0o644, "root:x:0:\nnogroup:x:65534:\n"),
        ("shadow", 0o640, "root:*:19000:0:99999:7:::\nnobody:*:19000:0:99999:7:::\n"),
        ("gshadow", 0o640, "root:*::\nnogroup:!::\n"),
    ):
        (folder / "etc" / name).write_text(text)
        (folder / "etc" / name).chmod(mode)
    return Machine(facts=facts, run=no_commands, root=folder)


def silent(_: str) -> None:
    """Nobody hears of progress."""


@dataclass
class Heard:
    """An observer that remembers."""

    lines: list[str] = field(default_factory=list)
    waited: list[tuple[str, float]] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)

    def began(self, key: str) -> None:
        self.lines.append(f"began {key}")

    def said(self, key: str, text: str) -> None:
        self.lines.append(f"{key}: {text}")

    def waits(self, key: str, why: str, seconds: float) -> None:
        self.lines.append(f"waits {key}: {why}")
        self.waited.append((key, seconds))

    def ended(self, outcome: Outcome) -> None:
        self.lines.append(f"{outcome.result} {outcome.key}")
        self.outcomes.append(outcome)


def results(outcomes: Sequence[Outcome]) -> Mapping[str, str]:
    """The results by the last word of the key."""
    return {outcome.key.rpartition(" ")[2]: str(outcome.result) for outcome in outcomes}


class Booted(Machine):
    """A machine whose kernel and files lie below a folder: for what tasks do only where a kernel runs."""

    __slots__ = ()

    @property
    def boots(self) -> bool:
        return True

    def path(self, inside: str) -> Path:
        return self.root / inside.lstrip("/")

    def resolved(self, inside: str) -> Path:
        return self.path(inside)
