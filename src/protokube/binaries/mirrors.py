"""Download files from the official URL or from mirrors, tried in order, and verify each file's checksum.

If a mirror does not answer, breaks off or sends wrong content, the next one is tried. A complete file is not
downloaded again.
"""

from __future__ import annotations

import hashlib
import platform
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from protokube.binaries.download import Absent, OnReceived, Unreachable, fetch, text
from protokube.binaries.progress import ProgressReporter
from protokube.errors import InvalidRequest, ProtokubeError, Refused, TryLater

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "ppc64le": "ppc64le", "s390x": "s390x"}
TRIES = 20
"""Attempts per mirror and file that receive few bytes, as long as each receives some."""
FEW = 1 << 16
MEGABYTE = 1_000_000
DIGEST = re.compile(r"([0-9a-f]{64})(\s|$)")

Promised = Callable[[str], str]
"""Returns the expected checksum of a file, given the mirror."""


class WrongContent(Exception):
    """The checksum of a download does not match."""


class Failed(Exception):
    """All mirrors failed; has the cause per mirror."""

    def __init__(self, failures: Mapping[str, Exception]) -> None:
        super().__init__("; ".join(f"{mirror}: {why}" for mirror, why in failures.items()))
        self.failures = failures

    @property
    def absent(self) -> bool:
        """Whether every mirror replied that there is no such file."""
        return all(isinstance(why, Absent) for why in self.failures.values())

    def explained(self, what: str, hint: str) -> ProtokubeError:
        """The error for the user, by who has to act. Not for absent files."""
        if any(isinstance(why, WrongContent) for why in self.failures.values()):
            return Refused(f"{what} is not what its checksum promises", saw=str(self), hint=hint)
        return TryLater(f"cannot download {what}", saw=str(self), hint=hint)


def architecture(product: str) -> str:
    """The architecture of this machine, as releases name it."""
    machine = platform.machine()
    if machine not in ARCHITECTURES:
        raise Refused(f"{product} has no programs for {machine}", want=", ".join(ARCHITECTURES))
    return ARCHITECTURES[machine]


def from_any(order: Sequence[str], place: str, target: Path, promised: Promised, progress: ProgressReporter) -> str:
    """Download one file; return the mirror that had it. Raises Failed."""
    failures: dict[str, Exception] = {}
    for mirror in order:
        try:
            _from_one(
                f"{mirror}/{place}", target, promised(mirror), meter(f"{target.name} from {mirror}", progress.say)
            )
        except (Absent, Unreachable, WrongContent) as why:
            failures[mirror] = why
            progress.say(f"{target.name}: {mirror}: {why}")
        else:
            return mirror
    raise Failed(failures)


def digest_at(url: str, name: str = "") -> str:
    """The checksum at a URL: the only one in the file, or the one listed for `name`."""
    content = text(url)
    lines = [line for line in content.splitlines() if not name or line.split()[1:] in ([name], [f"*{name}"])]
    found = DIGEST.match(lines[0].lower()) if lines and (name or len(lines) == 1) else None
    if not found:  # for example an HTML login page
        raise Unreachable(f"{url} holds no checksum{f' of {name}' * bool(name)}: {content[:40]!r}")
    return found[1]


def checked(mirror: str, example: str) -> str:
    """Validate the URL of a mirror that the user gave; returns it without a trailing slash."""
    try:
        parts = urlsplit(mirror)
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise InvalidRequest(
            f"{mirror!r} is not a URL to download from",
            want=f"a URL such as {example}",
            hint="a folder of this machine is named with --from",
        )
    return mirror.rstrip("/")


def meter(what: str, say: Callable[[str], None]) -> OnReceived:
    """Report the progress of a download, once per megabyte."""
    shown = ""

    def on_received(have: int, whole: int | None) -> None:
        nonlocal shown
        of, share = (f" of {whole / MEGABYTE:.0f}", f", {have * 100 // whole} %") if whole else ("", "")
        if shown != (line := f"{what}: {have / MEGABYTE:.0f}{of} MB{share}"):
            say(line)
            shown = line

    return on_received


def _from_one(url: str, target: Path, promised: str, on_received: OnReceived) -> None:
    if target.exists() and digest(target) == promised:
        return
    partial = target.with_name(f"{target.name}.part")
    tries = 0
    while tries < TRIES:
        had = partial.stat().st_size if partial.exists() else 0
        try:
            fetch(url, partial, on_received)
        except Unreachable:
            grown = partial.stat().st_size - had if partial.exists() else 0
            if grown <= 0:
                raise
            tries += grown < FEW
            continue
        if (came := digest(partial)) == promised:
            partial.rename(target)
            return
        partial.unlink()
        if not had:
            raise WrongContent(f"its sha256 is {came}, and not {promised} as promised")
        tries += 1
        # the partial file that we resumed was of different content: start over
    raise Unreachable(f"it stopped {TRIES} times in the middle")


def digest(path: Path) -> str:
    """The sha256 of a file, as lower-case hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
