"""Fetch files from the official place or from mirrors of it, one after the other, each compared with its checksum.

A mirror that does not answer, stops in the middle or sends something else is left for the next; what arrived whole is
not fetched again.
"""

from __future__ import annotations

import hashlib
import platform
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from protokube.binaries.download import Absent, Heard, Unreachable, fetch, text
from protokube.binaries.telling import Teller
from protokube.errors import InvalidRequest, ProtokubeError, Refused, TryLater

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "ppc64le": "ppc64le", "s390x": "s390x"}
TRIES = 20
"""Of one mirror for one file, as long as each of them brings something new."""
MEGABYTE = 1_000_000
DIGEST = re.compile(r"([0-9a-f]{64})(\s|$)")

Promised = Callable[[str], str]
"""The checksum of a file, by the mirror that is asked."""


class WrongContent(Exception):
    """What came is not what the checksum promised."""


class Failed(Exception):
    """No mirror had it; why, by mirror."""

    def __init__(self, failures: Mapping[str, Exception]) -> None:
        super().__init__("; ".join(f"{mirror}: {why}" for mirror, why in failures.items()))
        self.failures = failures

    @property
    def absent(self) -> bool:
        """Whether all of them answered that there is no such file."""
        return all(isinstance(why, Absent) for why in self.failures.values())

    def explained(self, what: str, hint: str) -> ProtokubeError:
        """The error for a person, by who has to act; not for what is absent."""
        if any(isinstance(why, WrongContent) for why in self.failures.values()):
            return Refused(f"{what} is not what its checksum promises", saw=str(self), hint=hint)
        return TryLater(f"cannot download {what}", saw=str(self), hint=hint)


def architecture(product: str) -> str:
    """This machine's, as releases call it."""
    machine = platform.machine()
    if machine not in ARCHITECTURES:
        raise Refused(f"{product} has no programs for {machine}", want=", ".join(ARCHITECTURES))
    return ARCHITECTURES[machine]


def from_any(order: Sequence[str], place: str, target: Path, promised: Promised, teller: Teller) -> str:
    """Fetch one file; the mirror that had it. Raises Failed."""
    failures: dict[str, Exception] = {}
    for mirror in order:
        try:
            _from_one(f"{mirror}/{place}", target, promised(mirror), _meter(f"{target.name} from {mirror}", teller))
        except (Absent, Unreachable, WrongContent) as why:
            failures[mirror] = why
            teller.say(f"{target.name}: {mirror}: {why}")
        else:
            return mirror
    raise Failed(failures)


def digest_at(url: str, name: str = "") -> str:
    """The checksum that lies at an address: alone, or with a name behind it among others."""
    told = text(url)
    lines = [line for line in told.splitlines() if not name or line.split()[1:] in ([name], [f"*{name}"])]
    found = DIGEST.match(lines[0].lower()) if lines else None
    if not found:  # a page that asks for a password, for example
        raise Unreachable(f"{url} holds no checksum{f' of {name}' * bool(name)}: {told[:40]!r}")
    return found[1]


def checked(mirror: str, example: str) -> str:
    """A place to download from, as the user names it."""
    try:
        parts = urlsplit(mirror)
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise InvalidRequest(
            f"{mirror!r} is no place to download from",
            want=f"a URL such as {example}",
            hint="a folder of this machine is named with --from",
        )
    return mirror.rstrip("/")


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


def _from_one(url: str, target: Path, promised: str, heard: Heard) -> None:
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


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
