"""Load images into a local cluster: read and judge all of them, keep them, and bring them to the hosts that run.

Nothing is changed before everything that was asked for is found good. From then on each step may be cut short and asked
for again.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from protokube.errors import InvalidRequest, Problem
from protokube.local.base.paths import Paths
from protokube.local.image.images import ARCHITECTURES
from protokube.local.loading import exports, kept
from protokube.local.loading.archive import judge
from protokube.local.loading.contents import Wrong
from protokube.local.loading.delivery import Delivery, Outcome, living, with_kubelet
from protokube.local.loading.kept import Kept
from protokube.local.loading.reading import read_archive
from protokube.providers.clients.local import LocalClient

Change = Literal["loaded", "replaced", "already there"]


class BadImages(InvalidRequest):
    """Everything that is wrong with what was asked for."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        count = len(problems)
        super().__init__(f"nothing was loaded: {count} {'problem' if count == 1 else 'problems'}")
        self.problems = tuple(problems)

    def __str__(self) -> str:
        return "\n".join([self.message, *(f"  {line}" for each in self.problems for line in str(each).splitlines())])


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """One archive that is good."""

    said: str
    """What the person asked for."""
    file: Path
    tool: str
    """That exported it; empty for a file."""
    size: int
    kept: Kept


def machine() -> str:
    """The architecture of this machine, as images call it."""
    return ARCHITECTURES.get(os.uname().machine, os.uname().machine)


@contextmanager
def found(said: Sequence[str], folder: Path) -> Iterator[list[Found]]:
    """Every archive, judged; what had to be exported lies in a draft in `folder` meanwhile. BadImages if any is bad."""
    problems: list[Problem] = []
    good: list[Found] = []
    with tempfile.TemporaryDirectory(prefix=".export-", dir=folder) as draft:
        for number, each in enumerate(dict.fromkeys(said)):
            try:
                good.append(_find(each, Path(draft) / f"{number}.tar"))
            except BadImages as bad:
                problems += bad.problems
            except Wrong as why:
                problems.append(Problem(path=each, message=str(why)))
        problems += contradictions(good)
        if problems:
            raise BadImages(problems)
        yield good


def _find(said: str, export: Path) -> Found:
    tool = ""
    file = Path(said)
    if not exports.is_file(said):
        tool, file = exports.export(said, machine(), export), export
    elif not file.exists():
        raise Wrong("there is no such file")
    elif not file.is_file():
        raise Wrong("not a file: a folder, a device or a pipe, and it has to be read twice")
    contents = read_archive(file)
    verdict = judge(contents, machine())
    if verdict.problems:
        raise BadImages([Problem(path=said, message=each) for each in verdict.problems])
    return Found(said=said, file=file, tool=tool, size=contents.size, kept=Kept(contents.sha256, verdict.names))


def contradictions(good: Sequence[Found]) -> list[Problem]:
    """One name in two archives of different content: which of them is meant? Pure."""
    first: dict[str, Found] = {}
    problems = []
    for each in good:
        for name in each.kept.names:
            other = first.setdefault(name, each)
            if other.kept.sha256 != each.kept.sha256:
                problems.append(
                    Problem(path=each.said, message=f"{name} is in {other.said} as well, with other content")
                )
    return problems


def changes(before: Sequence[Kept], good: Sequence[Found]) -> Mapping[str, Change]:
    """By name, what loading these does to what is kept. Pure."""
    owned = kept.owners(before)
    told: dict[str, Change] = {}
    for each in good:
        for name in each.kept.names:
            was = owned.get(name)
            told[name] = "loaded" if was is None else "already there" if was == each.kept.sha256 else "replaced"
    return told


def need_room(paths: Paths, good: Sequence[Found], hosts: int) -> None:
    """For the archives, and in each host for a copy and what is unpacked from it."""
    new = [each.size for each in good if not (paths.images / each.kept.file).exists()]
    kept.need_room(paths.images, sum(new) * (1 + 2 * hosts))


def need_kubelet(paths: Paths, admin: LocalClient) -> int:
    """How many hosts run it; Refused if none does."""
    return len(with_kubelet(paths, living(admin)))


def deliver(paths: Paths, admin: LocalClient, ctr: Path, good: Sequence[Found], seconds: float) -> list[Outcome]:
    """To every host that runs, of each content once."""
    archives = list({each.kept.sha256: each.kept for each in good}.values())
    return Delivery(paths, admin, ctr, archives, time.monotonic() + seconds).to_all()
