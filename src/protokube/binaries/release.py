"""Official releases of Kubernetes, from the official URL or from mirrors.

Every binary has a checksum file next to it: `/v1.34.1/bin/linux/amd64/kubelet` and `kubelet.sha256`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue

from protokube.binaries.download import Absent, Unreachable, text
from protokube.binaries.kubernetes import KUBERNETES, PROGRAMS
from protokube.binaries.mirrors import Failed, architecture, checked, digest_at, from_any
from protokube.binaries.product import VERSION
from protokube.binaries.progress import ProgressReporter
from protokube.errors import InvalidRequest, TryLater

OFFICIAL = "https://dl.k8s.io/release"
OTHER_WAYS = (
    "name a folder that holds the programs with --from, or a mirror with --mirror, "
    f"or set {KUBERNETES.chosen}; --build makes it from Go modules, or what Debian has from its source"
)
SECONDS_TO_LOOK = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Within:
    """What a look at the mirrors found."""

    mirrors: tuple[str, ...]
    """The one that answered first, then the others."""
    newest: str
    """The newest patch release of the series that was asked for; empty if the mirror has no list of these."""


def look(series: str, mirrors: Sequence[str], seconds: float = SECONDS_TO_LOOK) -> Within:
    """Whether releases can be downloaded now. TryLater, after `seconds` at most, if no mirror answers.

    A name server that does not answer cannot be interrupted, so each mirror is asked in a thread of its own, which is
    abandoned if it takes too long.
    """
    order = [checked(each, OFFICIAL) for each in mirrors or (OFFICIAL,)]
    answers: SimpleQueue[tuple[str, str | Unreachable]] = SimpleQueue()
    for mirror in order:
        threading.Thread(target=_ask, args=(mirror, series, seconds, answers), daemon=True, name="look").start()
    end, failures = time.monotonic() + seconds, dict[str, Unreachable]()
    while len(failures) < len(order):
        try:
            mirror, answer = answers.get(timeout=max(end - time.monotonic(), 0))
        except Empty:
            failures |= {each: Unreachable("no answer") for each in order if each not in failures}
            break
        if not isinstance(answer, Unreachable):
            return Within(mirrors=(mirror, *(each for each in order if each != mirror)), newest=answer)
        failures[mirror] = answer
    saw = "; ".join(f"{mirror}: {why}" for mirror, why in failures.items())
    raise TryLater("releases of Kubernetes cannot be downloaded", saw=saw, hint=OTHER_WAYS)


def _ask(mirror: str, series: str, seconds: float, answers: SimpleQueue[tuple[str, str | Unreachable]]) -> None:
    try:
        answers.put((mirror, _newest(mirror, series, seconds)))
    except Unreachable as why:
        answers.put((mirror, why))


def _newest(mirror: str, series: str, seconds: float) -> str:
    url = f"{mirror}/stable-{series}.txt"
    try:
        newest = text(url, seconds)
    except Absent:  # the mirror answers, and holds no such lists
        return ""
    if not VERSION.match(newest) or not newest.removeprefix("v").startswith(f"{series}."):
        raise Unreachable(f"{url} holds no version of {series}: {newest[:40]!r}")  # for example an HTML login page
    return newest.removeprefix("v")


def download_release(version: str, folder: Path, mirrors: Sequence[str], progress: ProgressReporter) -> None:
    """Download all binaries of a version into the folder and verify their checksums."""
    order = [checked(each, OFFICIAL) for each in mirrors or (OFFICIAL,)]
    place = f"v{version}/bin/linux/{architecture(KUBERNETES.name)}"
    for name in PROGRAMS:
        with progress.step(f"{name} {version}"):
            good = _fetch(order, f"{place}/{name}", version, folder / name, progress)
        order.sort(key=lambda mirror: mirror != good)  # from now on, try the mirror that worked first


def _fetch(order: Sequence[str], place: str, version: str, target: Path, progress: ProgressReporter) -> str:
    try:
        return from_any(order, place, target, lambda mirror: digest_at(f"{mirror}/{place}.sha256"), progress)
    except Failed as why:
        if not why.absent:
            raise why.explained(f"{target.name} {version}", OTHER_WAYS) from why
        message = f"there is no {target.name} of Kubernetes {version}"
        raise InvalidRequest(message, saw=str(why), hint=_nearest(version, order)) from why


def _nearest(version: str, mirrors: Iterable[str]) -> str:
    """Suggest the version that was probably meant, from the mirrors' lists of stable releases."""
    series = version.rpartition(".")[0] if "-" not in version else ".".join(version.split(".")[:2])
    for question, answer in ((f"stable-{series}", f"the newest of {series}"), ("stable", "the newest")):
        for mirror in mirrors:
            try:
                newest = text(f"{mirror}/{question}.txt")
            except (Absent, Unreachable):
                continue
            if VERSION.match(newest):
                return f"did you mean {newest.removeprefix('v')}, {answer}?"
    return "check the version"
