"""Load images into a local cluster: validate all of them, store them, and import them on the running hosts.

Nothing is changed before all images are valid. From then on each step is idempotent and can be repeated after an
interruption.
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
from protokube.images import exports
from protokube.images.archive import judge
from protokube.images.build import ARCHITECTURES
from protokube.images.contents import ImageProblem
from protokube.images.reading import read_archive
from protokube.local.base.paths import Paths
from protokube.local.loading import image_store
from protokube.local.loading.delivery import Delivery, Outcome, living, with_kubelet
from protokube.local.loading.image_store import Kept
from protokube.providers.clients.local import LocalClient

Change = Literal["loaded", "replaced", "already there"]


class BadImages(InvalidRequest):
    """All problems of all requested images."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        count = len(problems)
        super().__init__(f"nothing was loaded: {count} {'problem' if count == 1 else 'problems'}")
        self.problems = tuple(problems)

    def __str__(self) -> str:
        return "\n".join([self.message, *(f"  {line}" for each in self.problems for line in str(each).splitlines())])


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """One valid archive."""

    argument: str
    """The file or image name as the user gave it."""
    file: Path
    tool: str
    """The tool that exported it; empty for a file."""
    size: int
    kept: Kept


def machine() -> str:
    """The architecture of this machine, as images name it."""
    return ARCHITECTURES.get(os.uname().machine, os.uname().machine)


@contextmanager
def found(arguments: Sequence[str], folder: Path) -> Iterator[list[Found]]:
    """Validate all archives; exported ones are in `folder` while the context lasts. BadImages if any is invalid."""
    problems: list[Problem] = []
    good: list[Found] = []
    with tempfile.TemporaryDirectory(prefix=".export-", dir=folder) as draft:
        for number, each in enumerate(dict.fromkeys(arguments)):
            try:
                good.append(_find(each, Path(draft) / f"{number}.tar"))
            except BadImages as bad:
                problems += bad.problems
            except ImageProblem as why:
                problems.append(Problem(path=each, message=str(why)))
        problems += contradictions(good)
        if problems:
            raise BadImages(problems)
        yield good


def _find(argument: str, export: Path) -> Found:
    tool = ""
    file = Path(argument)
    if not exports.is_file(argument):
        tool, file = exports.export(argument, machine(), export), export
    elif not file.exists():
        raise ImageProblem("there is no such file")
    elif not file.is_file():
        raise ImageProblem("not a file: a folder, a device or a pipe, and it has to be read twice")
    contents = read_archive(file)
    verdict = judge(contents, machine())
    if verdict.problems:
        raise BadImages([Problem(path=argument, message=each) for each in verdict.problems])
    return Found(argument=argument, file=file, tool=tool, size=contents.size, kept=Kept(contents.sha256, verdict.names))


def contradictions(good: Sequence[Found]) -> list[Problem]:
    """Problems for every name that two archives have with different content. Pure."""
    first: dict[str, Found] = {}
    problems = []
    for each in good:
        for name in each.kept.names:
            other = first.setdefault(name, each)
            if other.kept.sha256 != each.kept.sha256:
                problems.append(
                    Problem(path=each.argument, message=f"{name} is in {other.argument} as well, with other content")
                )
    return problems


def changes(before: Sequence[Kept], good: Sequence[Found]) -> Mapping[str, Change]:
    """By name, how loading these archives changes the stored images. Pure."""
    owned = image_store.owners(before)
    result: dict[str, Change] = {}
    for each in good:
        for name in each.kept.names:
            was = owned.get(name)
            result[name] = "loaded" if was is None else "already there" if was == each.kept.sha256 else "replaced"
    return result


def need_room(paths: Paths, good: Sequence[Found], hosts: int) -> None:
    """Check disk space for the archives, and on each host for a copy and its unpacked content."""
    new = [each.size for each in good if not (paths.images / each.kept.file).exists()]
    image_store.need_room(paths.images, sum(new) * (1 + 2 * hosts))


def need_kubelet(paths: Paths, admin: LocalClient) -> int:
    """How many hosts run the kubelet; Refused if none does."""
    return len(with_kubelet(paths, living(admin)))


def deliver(
    paths: Paths, admin: LocalClient, ctr: Path, archives: Sequence[Kept], seconds: float, *, only_missing: bool = False
) -> list[Outcome]:
    """Import on every running host, each distinct archive once."""
    distinct = list({each.sha256: each for each in archives}.values())
    return Delivery(paths, admin, ctr, distinct, time.monotonic() + seconds, only_missing).to_all()
