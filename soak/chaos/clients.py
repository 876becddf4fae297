"""Clients that call registers continuously, each through one member, and record the result of every call.

They pause only between two calls. So during a pause every call has a reply or is unknown, and the history can be cut.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Self

from protokube.etcd.tls import TlsFiles
from soak.chaos.history import Kind, Operation, Result, Value
from soak.chaos.registers import SECONDS, NoReply, NotDone, Registers

PER_MEMBER = 2
KEYS = tuple(f"/chaos/register-{number}" for number in range(5))
BETWEEN, AFTER_A_FAILURE = 0.05, 0.2
"""Seconds between two calls of one client: slow enough to leave CPU time for the cluster on two cores."""
KINDS = (Kind.READ, Kind.READ, Kind.WRITE, Kind.CAS)


@dataclass(frozen=True, slots=True)
class Intent:
    """A call before it is made."""

    kind: Kind
    key: str
    new: Value = None
    expected: Value = None


class Client(threading.Thread):
    """One client thread."""

    def __init__(self, name: str, registers: Registers, seed: str, running: threading.Event) -> None:
        super().__init__(name=name, daemon=True)
        self._registers, self._random = registers, random.Random(seed)
        self._running, self._over = running, threading.Event()
        self._lock = threading.Lock()
        self._operations: list[Operation] = []
        self._last: dict[str, Value] = dict.fromkeys(KEYS)
        self._number = 0
        self.idle = threading.Event()
        self.last_ok = time.monotonic()
        """When a call was last answered."""

    def run(self) -> None:
        while not self._over.is_set():
            if not self._running.is_set():
                self.idle.set()
                self._running.wait(0.1)
                continue
            self.idle.clear()
            if not self._running.is_set():  # `pause` may have seen us idle between the two checks
                continue
            result = self.call(self._choose())
            self._over.wait(AFTER_A_FAILURE if result is not Result.OK else self._random.uniform(0, 2 * BETWEEN))
        self.idle.set()

    def stop(self) -> None:
        self._over.set()
        self.join(2 * SECONDS + 1)
        self._registers.close()

    def take(self) -> list[Operation]:
        """The operations recorded since the last call."""
        with self._lock:
            taken, self._operations = self._operations, []
        return taken

    def call(self, intent: Intent) -> Result:
        """Make one call and record it."""
        begun = Operation(
            client=self.name, key=intent.key, kind=intent.kind, new=intent.new, expected=intent.expected,
            invoked=time.monotonic(), result=Result.UNKNOWN,
        )  # fmt: skip
        try:
            done = self._make(begun)
        except NotDone:
            done = replace(begun, returned=time.monotonic(), result=Result.FAIL)
        except NoReply:
            done = begun
        if done.result is Result.OK:
            self.last_ok = done.returned
            self._last[done.key] = done.held
        with self._lock:
            self._operations.append(done)
        return done.result

    def _make(self, begun: Operation) -> Operation:
        swapped = False
        if begun.kind is Kind.READ:
            found = self._registers.get(begun.key)
        elif begun.kind is Kind.WRITE:
            found = self._registers.write(begun.key, begun.new or "")
        else:
            swapped, found = self._registers.swap(begun.key, begun.expected, begun.new or "")
        seen = None if begun.kind is Kind.WRITE or swapped else found.value
        return replace(
            begun, returned=time.monotonic(), result=Result.OK, seen=seen, swapped=swapped, revision=found.revision
        )

    def _choose(self) -> Intent:
        kind, key = self._random.choice(KINDS), self._random.choice(KEYS)
        if kind is Kind.READ:
            return Intent(kind, key)
        self._number += 1
        return Intent(kind, key, new=f"{self.name}-{self._number}", expected=self._last[key])


class Clients:
    """All clients; a context in which they run."""

    def __init__(self, endpoints: Mapping[str, str], tls: TlsFiles, seed: int) -> None:
        self._running = threading.Event()
        self._clients = [
            Client(f"{member}.{number}", Registers(member, url, tls), f"{seed} {member} {number}", self._running)
            for member, url in endpoints.items()
            for number in range(PER_MEMBER)
        ]

    @property
    def last_ok(self) -> float:
        return max(each.last_ok for each in self._clients)

    @property
    def paused(self) -> bool:
        return not self._running.is_set()

    def pause(self) -> None:
        """Returns when no call is under way."""
        self._running.clear()
        for each in self._clients:
            assert each.idle.wait(10 * SECONDS), f"client {each.name} does not come to rest"

    def resume(self) -> None:
        for each in self._clients:
            each.idle.clear()
            each.last_ok = time.monotonic()
        self._running.set()

    def read_everything(self) -> None:
        """Read every key through every member while no other call is in flight: this shows lost writes."""
        for each in self._clients[::PER_MEMBER]:
            for key in KEYS:
                each.call(Intent(Kind.READ, key))

    def take(self) -> list[Operation]:
        return [operation for each in self._clients for operation in each.take()]

    def __enter__(self) -> Self:
        for each in self._clients:
            each.start()
        self.resume()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._running.clear()
        for each in self._clients:
            each.stop()
