"""Faults of hosts and their processes: killed, frozen, disconnected, or asleep while others take over."""

from __future__ import annotations

import signal
from contextlib import suppress
from dataclasses import dataclass
from typing import ClassVar

from clusters.real import until
from protokube.errors import ProtokubeError
from soak.chaos.fault import Fault
from soak.chaos.field import Field, send

ONE_ROUND = 30.0
"""Seconds within which a host that wakes up after a takeover must have stopped its etcd, on a busy machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kill(Fault):
    """Kill a host; its group starts another."""

    kind: ClassVar[str] = "kill"

    def apply(self, field: Field) -> None:
        field.kill_host(field.host_of(self.member))


@dataclass(frozen=True, slots=True, kw_only=True)
class Freeze(Fault):
    """Stop every process of a host for a while; the cloud does not notice."""

    kind: ClassVar[str] = "freeze"
    shortest: ClassVar[float] = 3.0
    longest: ClassVar[float] = 15.0

    def apply(self, field: Field) -> None:
        field.saved[self] = field.host_of(self.member)
        field.admin.call("freeze_host", host=field.saved[self])

    def undo(self, field: Field) -> None:
        if host := field.saved.pop(self, ""):
            with suppress(ProtokubeError):  # killed meanwhile by another fault
                field.admin.call("thaw_host", host=host)


@dataclass(frozen=True, slots=True, kw_only=True)
class FreezeEtcd(Fault):
    """Stop only etcd of a host."""

    kind: ClassVar[str] = "freeze-etcd"
    shortest: ClassVar[float] = 3.0
    longest: ClassVar[float] = 15.0

    def apply(self, field: Field) -> None:
        pids = field.saved[self] = field.etcd_of(field.host_of(self.member))
        send(pids, signal.SIGSTOP)

    def undo(self, field: Field) -> None:
        send(field.saved.pop(self, ()), signal.SIGCONT)


@dataclass(frozen=True, slots=True, kw_only=True)
class FreezeAgent(Fault):
    """Stop only the agent of a host."""

    kind: ClassVar[str] = "freeze-agent"
    shortest: ClassVar[float] = 3.0
    longest: ClassVar[float] = 15.0

    def apply(self, field: Field) -> None:
        pids = field.saved[self] = field.agent_of(field.host_of(self.member))
        send(pids, signal.SIGSTOP)

    def undo(self, field: Field) -> None:
        send(field.saved.pop(self, ()), signal.SIGCONT)


@dataclass(frozen=True, slots=True, kw_only=True)
class KillEtcd(Fault):
    """Kill only etcd of a host."""

    kind: ClassVar[str] = "kill-etcd"

    def apply(self, field: Field) -> None:
        send(field.etcd_of(field.host_of(self.member)), signal.SIGKILL)


@dataclass(frozen=True, slots=True, kw_only=True)
class KillAgent(Fault):
    """Kill only the agent of a host."""

    kind: ClassVar[str] = "kill-agent"

    def apply(self, field: Field) -> None:
        send(field.agent_of(field.host_of(self.member)), signal.SIGKILL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition(Fault):
    """Pull the cable of a host."""

    kind: ClassVar[str] = "partition"
    shortest: ClassVar[float] = 3.0
    longest: ClassVar[float] = 15.0

    def apply(self, field: Field) -> None:
        field.saved[self] = field.host_of(self.member)
        field.admin.call("cut_host", host=field.saved[self], down=True)

    def undo(self, field: Field) -> None:
        if host := field.saved.pop(self, ""):
            with suppress(ProtokubeError):  # its cable ended with the host
                field.admin.call("cut_host", host=host, down=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerOff(Fault):
    """Kill every host at once."""

    kind: ClassVar[str] = "power-off"
    aimed: ClassVar[bool] = False

    def apply(self, field: Field) -> None:
        field.admin.call("power_off")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sleeper(Fault):
    """Freeze a host, declare it dead, and let it wake up when another host serves its volume."""

    kind: ClassVar[str] = "sleeper"
    shortest: ClassVar[float] = 8.0
    longest: ClassVar[float] = 20.0
    alone: ClassVar[bool] = True

    def apply(self, field: Field) -> None:
        host = field.saved[self] = field.host_of(self.member)
        field.admin.call("freeze_host", host=host)
        field.admin.call("declare_dead", host=host, kill=False)

    def undo(self, field: Field) -> None:
        if host := field.saved.pop(self, ""):
            try:
                field.admin.call("thaw_host", host=host)
                until(lambda: not field.etcd_of(host), f"{host} stops its etcd after it woke up", ONE_ROUND)
            finally:
                field.kill_host(host)
