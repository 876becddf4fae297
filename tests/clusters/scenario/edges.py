"""The small far sides of a scenario: time, the service manager, certificates, a store and a zone that can fail.

Nothing here is ours to test. Each can be broken by its attributes, and every call of an agent to any of them can be the
last thing that agent does: see `Fuse`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from protokube.errors import ProtokubeError, Refused, TryLater
from protokube.providers.clients.memory import MemoryCloud
from protokube.providers.dns.memory import MemoryDns
from protokube.providers.machines import Machine
from protokube.providers.volumes import Volume
from protokube.records import Change
from protokube.store import Store, Stored, Unsure, Version

T = TypeVar("T")


class AgentDied(BaseException):
    """The agent's process ended here. No `except Exception` of ours may catch it: nothing of it runs on."""


@dataclass
class FakeClock:
    """Time moves only by hand."""

    seconds: float = 1000.0
    wall: float = 1.8e9

    def advance(self, seconds: float) -> None:
        self.seconds += seconds
        self.wall += seconds


@dataclass
class HostClock:
    """The time as one machine has it: its wall clock may be wrong, its monotonic one began somewhere else."""

    common: FakeClock
    wrong_by: float = 0.0
    slept: float = 0.0
    """Seconds of a pause that its monotonic clock did not count, as when a virtual machine is suspended."""

    def now(self) -> float:
        return self.common.wall + self.wrong_by

    def monotonic(self) -> float:
        return self.common.seconds - self.slept


@dataclass
class Fuse:
    """Lets something happen in the middle of a round of one agent: at one of its calls to its edges.

    Each call passes twice: before it is carried out, and before its answer arrives.
    """

    left: int = -1
    """So many passages from now; never, if negative."""
    call: str = ""
    """Only passages of calls of this name count, `attach` or `dns.read`; "" counts all."""
    action: Callable[[], None] = lambda: None

    def set(self, passages: int, action: Callable[[], None], call: str = "") -> None:
        self.left, self.action, self.call = passages, action, call

    def burn(self, edge: str, call: str) -> None:
        if self.left < 0 or (self.call and self.call not in (call, f"{edge}.{call}")):
            return
        self.left -= 1
        if self.left < 0:
            self.action()


class Fused:
    """An edge whose calls burn a fuse."""

    def __init__(self, inner: Any, fuse: Fuse, edge: str) -> None:
        self._inner, self._fuse, self._edge = inner, fuse, edge

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._inner, name)
        if not callable(value):
            return value
        fuse, edge = self._fuse, self._edge

        def call(*args: Any, **named: Any) -> Any:
            if fuse.left < 0:
                return value(*args, **named)
            fuse.burn(edge, name)
            result = value(*args, **named)
            fuse.burn(edge, name)
            return result

        return call


class Inline:
    """Implements Background: the work is done at once."""

    def run(self, _name: str, work: Callable[[], T]) -> T | None:
        return work()


@dataclass
class MemoryUnits:
    """Implements Units."""

    started: set[str] = field(default_factory=set)
    silent: bool = False
    asked: int = 0
    running: float = 0.0
    """Seconds for which all of them have been running."""
    restarted: list[str] = field(default_factory=list)

    def running_for(self, unit: str) -> float | None:
        return self.running if unit in self.started else None

    def restart(self, unit: str) -> None:
        self.restarted.append(unit)
        self.running = 0.0

    def ensure_started(self, unit: str) -> bool:
        self.asked += 1
        if self.silent:
            raise TryLater("the service manager does not answer")
        if unit in self.started:
            return False
        self.started.add(unit)
        return True


@dataclass
class MemoryKeys:
    """Implements Keys: issues whatever is asked for, once."""

    issued: set[str] = field(default_factory=set)
    failing: str = ""

    def sync(self, names: Sequence[str]) -> Sequence[str]:
        if self.failing:
            raise TryLater(self.failing)
        new = [name for name in names if name not in self.issued]
        self.issued.update(new)
        return [f"issued {name}: there was none" for name in new]

    def sync_shared(self) -> Sequence[str]:
        return self.sync(["shared"])

    def give(self, component: str, names: Sequence[str]) -> Sequence[str]:
        return self.sync([f"{component}/{name}" for name in names])


class ShakyCloud(MemoryCloud):
    """A cloud that can also refuse to attach a volume, and whose lists can lie."""

    def __init__(self, *, zonal: bool = False) -> None:
        super().__init__(zonal=zonal)
        self.refused: dict[str, str] = {}
        self.left_out: set[str] = set()
        """Volumes that lists lack."""
        self.nobodys: set[str] = set()
        """Volumes that lists show as attached to nobody."""
        self.stale: list[Volume] | None = None
        """What lists say, whatever happened since."""
        self.unanswered: dict[str, ProtokubeError] = {}
        """By volume: what comes of asking for exactly this one."""
        self.attach_answers_lost = False
        """Volumes are attached, and who asked for it does not learn so."""

    def listed(self) -> list[Volume]:
        found = super().listed() if self.stale is None else self.stale
        shown = [each for each in found if each.id not in self.left_out]
        return [replace(each, attached_to=None) if each.id in self.nobodys else each for each in shown]

    def look_up(self, volume: str) -> Volume | None:
        if volume in self.unanswered:
            raise self.unanswered[volume]
        return super().look_up(volume)

    def tell_the_truth(self) -> None:
        self.left_out, self.nobodys, self.stale = set(), set(), None

    def attach(self, volume: str, machine: Machine) -> None:
        if volume in self.refused:
            raise Refused(self.refused[volume])
        super().attach(volume, machine)
        if self.attach_answers_lost:
            raise TryLater(f"the answer to attaching {volume} was lost")


class ShakyDns(MemoryDns):
    """A zone that can also carry out a change and lose the answer."""

    answers_lost = False

    def apply(self, batch: Sequence[Change]) -> None:
        super().apply(batch)
        if self.answers_lost:
            raise TryLater(f"the answer of the DNS server of {self.zone} was lost")

    def addresses(self, name: str) -> tuple[str, ...]:
        """What it would answer, without being asked: for the test itself, and for resolvers."""
        record = self._records.get((name, "A"))
        return record.values if record else ()

    def text(self, name: str) -> str:
        record = self._records.get((name, "TXT"))
        return record.values[0] if record else ""


class ShakyStore:
    """Implements Store over another one; it can be away, or lose its answers."""

    def __init__(self, inner: Store) -> None:
        self.inner = inner
        self.url, self.guards = inner.url, inner.guards
        self.down = self.read_only = self.answers_lost = False
        self.reads = self.writes = 0

    def read(self, path: str) -> Stored:
        self._reach()
        self.reads += 1
        return self.inner.read(path)

    def list_paths(self, under: str = "") -> Sequence[str]:
        self._reach()
        return self.inner.list_paths(under)

    def create(self, path: str, data: bytes) -> Version:
        self._reach(writing=True)
        self.writes += 1
        return self._answer(self.inner.create(path, data))

    def replace(self, path: str, data: bytes, seen: Version) -> Version:
        self._reach(writing=True)
        self.writes += 1
        return self._answer(self.inner.replace(path, data, seen))

    def put(self, path: str, data: bytes) -> bool:
        self._reach(writing=True)
        self.writes += 1
        return self.inner.put(path, data)

    def close(self) -> None:
        self.inner.close()

    def _reach(self, *, writing: bool = False) -> None:
        if self.down or (writing and self.read_only):
            raise TryLater(f"cannot reach {self.url}")

    def _answer(self, version: Version) -> Version:
        if self.answers_lost:
            raise Unsure(f"no answer from {self.url}; it may have been written")
        return version
