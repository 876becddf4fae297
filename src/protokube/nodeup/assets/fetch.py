"""Fetch one asset into a folder: from the first source that has its bytes, resumed across cuts, kills and sources.

What is hard is that nothing but the digest that we were given tells whether a file is right: not its length, not a
checksum file beside it, and not the source. A file gets its name, which is its digest, only after that was compared.
The partial file is named by the digest too, so that a later run resumes it, and locked, so that two runs do not mix.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from protokube.binaries.download import Absent, Unreachable
from protokube.binaries.mirrors import digest, meter
from protokube.errors import InvalidRequest, ProtokubeError, Refused, TryLater
from protokube.host.files import flush_folder
from protokube.nodeup.assets.attempts import Verdict, begin, shown
from protokube.nodeup.assets.sources import bundle_of, check_url, read_on
from protokube.nodeup.machine import Say
from protokube.nodeup.values import Asset

LONGEST = 4 * 3600.0
"""Seconds for one asset, however slow its sources are."""
LARGEST = 1 << 34
"""Bytes of an asset whose size is not known."""
SECONDS_OF_PACE, PACE = 60.0, 1 << 16
"""An attempt that receives fewer bytes in so many seconds ends, and another source is asked."""


@dataclass(frozen=True, slots=True)
class Time:
    """The clock of the pauses between attempts."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


class _TooLong(Exception):
    """More bytes came than the asset has."""


def file_name(asset: Asset) -> str:
    """Its name in a cache. InvalidRequest if it has no digest to be named by."""
    if not re.fullmatch(r"[0-9a-f]{64}", asset.sha256):
        want = "64 hexadecimal digits, lower case"
        raise InvalidRequest(f"{asset.name} has no sha256", saw=repr(asset.sha256), want=want)
    return f"sha256-{asset.sha256}"


def fetch(asset: Asset, folder: Path, say: Say, clock: Time | None = None) -> Path:
    """Have the asset in the folder. TryLater if a source may have it later; Refused if a person has to act."""
    urls = tuple(dict.fromkeys(asset.urls))
    for url in urls:
        check_url(url, asset.name)
    if not urls:
        raise InvalidRequest(f"{asset.name} has no source", want=f"URLs of the file of sha256 {asset.sha256}")
    target = folder / file_name(asset)
    partial = folder / f"{file_name(asset)}.part"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _locked(partial, asset.name, say):
            if _is(target, asset):
                partial.unlink()
                return target
            if not _is(partial, asset):
                _Fetching(asset, partial, urls, say, clock or Time()).run()
            with partial.open("rb") as file:
                os.fchmod(file.fileno(), 0o600)
                os.fsync(file.fileno())
            partial.rename(target)
            flush_folder(folder)
    except OSError as why:
        raise _disk(asset, folder, partial, why) from why
    return target


def _disk(asset: Asset, folder: Path, partial: Path, why: OSError) -> ProtokubeError:
    reason = why.strerror or str(why)
    if why.errno in (errno.ENOSPC, errno.EDQUOT):
        have = partial.stat().st_size if partial.exists() else 0
        saw = f"{reason}, after {have}{f' of {asset.size}' if asset.size else ''} bytes"
        return Refused(f"no room for {asset.name} in {folder}", saw=saw, hint="make room; the next run goes on there")
    return Refused(f"cannot keep {asset.name} in {folder}", saw=f"{reason}: {why.filename or folder}")


@contextmanager
def _locked(partial: Path, name: str, say: Say) -> Iterator[None]:
    """Hold the partial file, which exists then. Whoever held it before us may have given it its final name."""
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    while True:
        held = os.open(partial, flags, 0o600)
        try:
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                say(f"{name}: another process fetches it")
                fcntl.flock(held, fcntl.LOCK_EX)
            if _same(held, partial):
                yield
                return
        finally:
            os.close(held)


def _same(held: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(held), path.lstat())
    except FileNotFoundError:
        return False


def _is(path: Path, asset: Asset) -> bool:
    if not path.is_file() or path.is_symlink():
        return False
    size = path.stat().st_size
    return bool(size or asset.size == 0) and asset.size in (None, size) and digest(path) == asset.sha256


class _Fetching:
    """The attempts for one asset, one after another."""

    def __init__(self, asset: Asset, partial: Path, urls: tuple[str, ...], say: Say, clock: Time) -> None:
        self._asset, self._partial, self._say, self._clock = asset, partial, say, clock
        self._attempts = begin(urls, resumed=partial.stat().st_size > 0)
        self._end = clock.now() + LONGEST

    def run(self) -> None:
        """Return when the partial file is the asset."""
        while step := self._attempts.next(self._clock.now()):
            if self._clock.now() + step.pause >= self._end:
                raise self._failed(f"it took longer than {LONGEST / 3600:g} h")
            if step.pause:
                self._say(f"{self._asset.name}: next attempt in {step.pause:.0f} s")
                self._clock.sleep(step.pause)
            if step.afresh:
                self._empty()
            if self._attempt(step.url):
                return
        raise self._failed()

    def _attempt(self, url: str) -> bool:
        """Ask one source; whether the file is complete and right then."""
        had = self._size()
        try:
            self._receive(url)
        except Absent as why:
            self._attempts = self._attempts.absent(url, str(why))
        except _TooLong:
            self._wrong(url, f"it sends more than {self._asset.size or LARGEST} bytes")
        except Unreachable as why:
            self._attempts = self._attempts.cut(url, str(why), self._size() - had, self._clock.now())
        else:
            if (came := digest(self._partial)) == self._asset.sha256:
                return True
            self._wrong(url, f"its sha256 is {came}")
            return False
        self._say(f"{self._asset.name}: {self._attempts.reason(url)}")
        return False

    def _receive(self, url: str) -> None:
        tell = meter(f"{self._asset.name} from {_place(url)}", self._say)
        pace = _Pace(self._clock)
        limit = self._asset.size if self._asset.size is not None else LARGEST
        had, size, open_end, first = self._size(), self._asset.size, False, True

        def on_received(have: int, whole: int | None) -> None:
            nonlocal first, open_end
            if first and have == 0:  # the source sends all of it, whatever we had
                if had and size is not None and whole not in (None, size):
                    raise Unreachable(f"it sends {whole} bytes in place of the rest of {size}")
                self._attempts = self._attempts.emptied()
            if not first:
                self._attempts = self._attempts.sent(url)
            first, open_end = False, whole is None
            if have > limit:
                raise _TooLong
            pace.check(have)
            if self._clock.now() >= self._end:
                raise Unreachable("too slow")
            tell(have, whole)

        read_on(url, self._partial, on_received)
        if open_end and size is not None and self._size() < size:
            raise Unreachable(f"the connection ended after {self._size()} of {size} bytes")

    def _wrong(self, url: str, why: str) -> None:
        self._attempts = self._attempts.wrong(url, why)
        if self._attempts.source(url).verdict is Verdict.WRONG and (bundle := bundle_of(url)):
            self._empty()
            message = f"{bundle} was altered: {self._asset.name} in it is not what its index promises"
            raise Refused(message, saw=why, want=f"sha256 {self._asset.sha256}", hint="copy the bundle again")
        self._say(f"{self._asset.name}: {shown(url)}: {why}, and not {self._asset.sha256}")
        self._empty()

    def _empty(self) -> None:
        os.truncate(self._partial, 0)
        self._attempts = self._attempts.emptied()

    def _size(self) -> int:
        return self._partial.stat().st_size

    def _failed(self, late: str = "") -> ProtokubeError:
        asset, saw = self._asset, "; ".join(filter(None, [self._attempts.reasons(), late]))
        if not self._size():
            self._partial.unlink()
        want = f"sha256 {asset.sha256}"
        if self._attempts.may_help_later():
            return TryLater(f"cannot download {asset.name}", saw=saw, want=want, hint="the next run resumes it")
        hint = "correct the mirrors, or name others; a checksum beside a file proves nothing"
        return Refused(f"no source has the right {asset.name}", saw=saw, want=want, hint=hint)


class _Pace:
    """Ends an attempt that receives next to nothing, but is never silent."""

    def __init__(self, clock: Time) -> None:
        self._clock, self._since, self._had = clock, clock.now(), -1

    def check(self, have: int) -> None:
        if self._had < 0:
            self._had = have
        if have - self._had >= PACE:
            self._since, self._had = self._clock.now(), have
        elif self._clock.now() - self._since > SECONDS_OF_PACE:
            raise Unreachable(f"it sent only {have - self._had} bytes in {SECONDS_OF_PACE:.0f} s")


def _place(url: str) -> str:
    parts = urlsplit(url)
    return parts.netloc.rpartition("@")[2] or parts.path
