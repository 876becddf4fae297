"""Write numbered keys to etcd sequentially, and record which were acknowledged, and when.

A write without a reply may or may not have taken effect, so its number is not reused; only acknowledged writes must be
there afterwards. A single writer detects a split history: the revisions of its writes must increase.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, Self

from protokube.errors import ProtokubeError
from protokube.etcd import KeyValue

EVERY = 0.01
AFTER_A_FAILURE = 0.02


@dataclass(frozen=True, slots=True)
class Write:
    """One attempt."""

    number: int
    sent: float
    answered: float
    """When the reply arrived, or when the attempt failed."""
    revision: int
    """0 if it was not acknowledged."""


@dataclass(frozen=True, slots=True)
class Gap:
    """A period without an acknowledged write."""

    began: float
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteLog:
    """All attempts, in order."""

    prefix: str
    began: float
    ended: float
    writes: tuple[Write, ...]

    @property
    def acknowledged(self) -> tuple[Write, ...]:
        return tuple(each for each in self.writes if each.revision)

    @property
    def longest_gap(self) -> Gap:
        """Between two acknowledgements, from the start to the first one, or from the last one to the end."""
        times = [self.began, *(each.answered for each in self.acknowledged), self.ended]
        gaps = [Gap(before, after - before) for before, after in itertools.pairwise(times)]
        return max(gaps, key=lambda gap: gap.seconds)


def key_of(prefix: str, number: int) -> str:
    """The key of a write; keys sort by number."""
    return f"{prefix}{number:08d}"


def value_of(number: int) -> str:
    return f"write {number}"


def lost(log: WriteLog, found: Mapping[str, str]) -> tuple[int, ...]:
    """Numbers of acknowledged writes that are missing or have another value."""
    return tuple(
        each.number for each in log.acknowledged if found.get(key_of(log.prefix, each.number)) != value_of(each.number)
    )


def unexplained(log: WriteLog, found: Mapping[str, str]) -> tuple[str, ...]:
    """Keys below our prefix that we never wrote."""
    sent = {key_of(log.prefix, each.number) for each in log.writes}
    return tuple(sorted(set(found) - sent))


def regressions(log: WriteLog) -> tuple[int, ...]:
    """Numbers of acknowledged writes whose revision did not increase: the replies are from two histories."""
    pairs = itertools.pairwise(log.acknowledged)
    return tuple(after.number for before, after in pairs if after.revision <= before.revision)


def as_found(pairs: Sequence[KeyValue]) -> dict[str, str]:
    return {each.key: each.value for each in pairs}


class Put(Protocol):
    """Something that stores keys: etcd, or the Kubernetes API."""

    def put(self, key: str, value: str, lease: int = 0, /) -> int:
        """Write a key; return its revision. Raises ProtokubeError if it is not acknowledged."""


class Writer:
    """Writes in a background thread until it is stopped."""

    def __init__(
        self,
        etcd: Put,
        prefix: str,
        *,
        lease: int = 0,
        every: float = EVERY,
        after_a_failure: float = AFTER_A_FAILURE,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._etcd, self._prefix, self._lease, self._now = etcd, prefix, lease, now
        self._every, self._after_a_failure = every, after_a_failure
        self._writes: list[Write] = []
        self._began = now()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="writer", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    def stop(self) -> WriteLog:
        """Wait for the last write to end, and return the log."""
        self._stop.set()
        self._thread.join()
        return self.log()

    def log(self) -> WriteLog:
        return WriteLog(prefix=self._prefix, began=self._began, ended=self._now(), writes=tuple(self._writes))

    @property
    def count(self) -> int:
        """Attempts so far."""
        return len(self._writes)

    def _run(self) -> None:
        number = 0
        while not self._stop.is_set():
            number += 1
            done = self._write(number)
            self._writes.append(done)
            spent = self._now() - done.sent
            self._stop.wait(max(self._every - spent, 0.0) if done.revision else self._after_a_failure)

    def _write(self, number: int) -> Write:
        sent = self._now()
        try:
            revision = self._etcd.put(key_of(self._prefix, number), value_of(number), self._lease)
        except ProtokubeError:
            revision = 0
        return Write(number, sent, self._now(), revision)
