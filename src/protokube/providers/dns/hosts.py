"""Names in the hosts file of this machine, for clusters without a zone.

Pods bind-mount the file, so it is rewritten in place: after a rename they would keep the old one for ever. In place
also means that other programs may write at the same time. Our own writers take a lock on the file; after each write the
file is read again by its path, and if another program has changed it, we retry a few times.
"""

from __future__ import annotations

import fcntl
import os
import random
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from protokube.errors import Refused, TryLater
from protokube.providers.dns import BadRecord
from protokube.providers.dns.batch import carried_out, check, together
from protokube.records import Change, Record
from protokube.records.hostsfile import parse_hosts, render_hosts
from protokube.records.names import inside, normalise

TRIES = 10
LOCK_SECONDS = 2.0


class HostsDns:
    """Implements DnsProvider over one hosts file."""

    def __init__(self, zone: str, path: Path = Path("/etc/hosts")) -> None:
        self._zone = normalise(zone)
        self._path = path

    @property
    def zone(self) -> str:
        return self._zone

    def read(self, names: Collection[str]) -> Sequence[Record]:
        wanted = {normalise(name) for name in names}
        return tuple(record for record in self.list_records() if record.name in wanted)

    def list_records(self) -> Sequence[Record]:
        return tuple(record for record in parse_hosts(self._text()) if inside(record.name, self._zone))

    def apply(self, batch: Sequence[Change]) -> None:
        check(self._zone, batch)
        for change in batch:
            if change.after and change.after.name.startswith("*"):
                raise BadRecord(f"cannot write {change.after.name}", saw="a hosts file has no wildcards")
            if change.after and change.after.type == "CNAME":
                raise BadRecord(f"cannot write {change.after.name}", saw="a hosts file has no aliases (CNAME)")
        for attempt in range(TRIES):
            with self._locked() as handle:
                before = _content(handle)
                if attempt and _already(before, batch):
                    return
                records = carried_out({record.key: record for record in parse_hosts(before)}, batch)
                after = render_hosts(before, records.values())
                if after != before:
                    _rewrite(handle, before, after)
                if self._text() == after:
                    return
            time.sleep(random.uniform(0.001, 0.02))  # noqa: S311 - jitter, to get out of step with the other writer
        raise TryLater(f"something else keeps rewriting {self._path}", hint=f"find it with `fuser -v {self._path}`")

    def split(self, units: Iterable[Iterable[Change]]) -> Sequence[Sequence[Change]]:
        return together(units)

    def _text(self) -> str:
        try:
            return _decoded(self._path.read_bytes())
        except FileNotFoundError:
            return ""
        except OSError as error:
            raise self._explained(error) from error

    @contextmanager
    def _locked(self) -> Iterator[int]:
        """The open file, which no other writer of ours has. The kernel drops the lock of a killed process."""
        try:
            handle = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise self._explained(error) from error
        try:
            deadline = time.monotonic() + LOCK_SECONDS
            while not _lock_now(handle):
                if time.monotonic() > deadline:
                    raise TryLater(f"{self._path} stays locked", hint=f"find who has it with `fuser -v {self._path}`")
                time.sleep(0.003)
            yield handle
        except OSError as error:
            raise self._explained(error) from error
        finally:
            os.close(handle)

    def _explained(self, error: OSError) -> Refused | TryLater:
        kind = Refused if isinstance(error, PermissionError | IsADirectoryError) else TryLater
        return kind(f"cannot use {self._path}", saw=error.strerror or str(error))


def _already(text: str, batch: Sequence[Change]) -> bool:
    """Whether an earlier attempt of this batch is in the file, though another program wrote too."""
    now = {record.key: record for record in parse_hosts(text)}
    return all(now.get(change.key) == change.after for change in batch)


def _lock_now(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _content(handle: int) -> str:
    with open(handle, "rb", closefd=False) as file:
        return _decoded(file.read())


def _rewrite(handle: int, before: str, after: str) -> None:
    """One write, then truncate. A crash between the two leaves blank lines behind, never half of an old line."""
    data = _encoded(after)
    padded = data.ljust(len(_encoded(before)), b"\n")
    written = 0
    while written < len(padded):
        written += os.pwrite(handle, padded[written:], written)
    os.ftruncate(handle, len(data))
    os.fsync(handle)


def _decoded(data: bytes) -> str:
    """A hosts file may hold any bytes; those that are not UTF-8 are written back unchanged."""
    return data.decode("utf-8", "surrogateescape")


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
