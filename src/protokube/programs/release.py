"""Kubernetes' own releases, from the official place or from mirrors of it, one after the other.

Every program has its checksum beside it: `/v1.34.1/bin/linux/amd64/kubelet` and `kubelet.sha256`. A mirror that does
not answer, stops in the middle or sends something else is left for the next; what arrived whole is not fetched again.
"""

from __future__ import annotations

import hashlib
import platform
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from protokube.errors import InvalidRequest, ProtokubeError, Refused, TryLater
from protokube.programs.download import Absent, Heard, Unreachable, fetch, text
from protokube.programs.kubernetes import CHOSEN, PROGRAMS, VERSION
from protokube.programs.telling import Teller

OFFICIAL = "https://dl.k8s.io/release"
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "ppc64le": "ppc64le", "s390x": "s390x"}
TRIES = 20
"""Of one mirror for one file, as long as each of them brings something new."""
MEGABYTE = 1_000_000
OTHER_WAYS = (
    "name a folder that holds the programs with --from, or a mirror with --mirror, "
    f"or set {CHOSEN}; on Debian, --build makes the version that Debian has"
)


class WrongContent(Exception):
    """What came is not what the checksum promised."""


def download_release(version: str, folder: Path, mirrors: Sequence[str], teller: Teller) -> None:
    """Put all programs of a version into the folder, each with the right checksum."""
    order = [_checked(each) for each in mirrors or (OFFICIAL,)]
    place = f"v{version}/bin/linux/{architecture()}"
    for name in PROGRAMS:
        with teller.step(f"{name} {version}"):
            good = _from_any(order, f"{place}/{name}", version, folder / name, teller)
        order.sort(key=lambda mirror: mirror != good)  # whoever answered is asked first from now on


def architecture() -> str:
    """This machine's, as Kubernetes calls it."""
    machine = platform.machine()
    if machine not in ARCHITECTURES:
        raise Refused(f"Kubernetes has no programs for {machine}", want=", ".join(ARCHITECTURES))
    return ARCHITECTURES[machine]


def _from_any(order: Sequence[str], place: str, version: str, target: Path, teller: Teller) -> str:
    """Fetch one program; the mirror that had it."""
    failures: dict[str, Exception] = {}
    for mirror in order:
        try:
            _from_one(f"{mirror}/{place}", target, _meter(f"{target.name} from {mirror}", teller))
        except (Absent, Unreachable, WrongContent) as why:
            failures[mirror] = why
            teller.say(f"{target.name}: {mirror}: {why}")
        else:
            return mirror
    raise _explained(target.name, version, failures)


def _meter(what: str, teller: Teller) -> Heard:
    """Tells how far a download is, megabyte by megabyte."""
    said = ""

    def heard(have: int, whole: int | None) -> None:
        nonlocal said
        of = f" of {whole / MEGABYTE:.0f}" if whole else ""
        if said != (line := f"{what}: {have / MEGABYTE:.0f}{of} MB"):
            teller.say(line)
            said = line

    return heard


def _from_one(url: str, target: Path, heard: Heard) -> None:
    promised = _promised(url)
    if target.exists() and _digest(target) == promised:
        return
    partial = target.with_name(f"{target.name}.part")
    for _ in range(TRIES):
        had = partial.stat().st_size if partial.exists() else 0
        try:
            fetch(url, partial, heard)
        except Unreachable:
            if not partial.exists() or partial.stat().st_size <= had:
                raise
            continue
        if (came := _digest(partial)) == promised:
            partial.rename(target)
            return
        partial.unlink()
        if not had:
            raise WrongContent(f"its sha256 is {came}, and not {promised} as promised")
        # what we continued was the beginning of something else: now from the start
    raise Unreachable(f"it stopped {TRIES} times in the middle")


def _promised(url: str) -> str:
    said = text(f"{url}.sha256")
    found = re.match(r"([0-9a-f]{64})(\s|$)", said.lower())
    if not found:  # a page that asks for a password, for example
        raise Unreachable(f"{url}.sha256 holds no checksum: {said[:40]!r}")
    return found[1]


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _explained(name: str, version: str, failures: Mapping[str, Exception]) -> ProtokubeError:
    """The error for a person, by who has to act."""
    saw = "; ".join(f"{mirror}: {why}" for mirror, why in failures.items())
    kinds = {type(why) for why in failures.values()}
    if kinds == {Absent}:
        return InvalidRequest(f"there is no {name} of Kubernetes {version}", saw=saw, hint=_nearest(version, failures))
    if WrongContent in kinds:
        return Refused(f"{name} {version} is not what its checksum promises", saw=saw, hint=OTHER_WAYS)
    return TryLater(f"cannot download {name} {version}", saw=saw, hint=OTHER_WAYS)


def _nearest(version: str, mirrors: Mapping[str, Exception]) -> str:
    """The version that was probably meant, as the mirrors know them."""
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


def _checked(mirror: str) -> str:
    try:
        parts = urlsplit(mirror)
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise InvalidRequest(
            f"{mirror!r} is no place to download from",
            want=f"a URL such as {OFFICIAL}",
            hint="a folder of this machine is named with --from",
        )
    return mirror.rstrip("/")
