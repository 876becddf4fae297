"""Every kind of fault, by name, and those that the cluster is known to survive."""

from __future__ import annotations

from soak.chaos.fault import Fault
from soak.chaos.faults_cloud import (
    AgentClock,
    ApiDown,
    SilentDns,
    StoreAway,
    StoreReadOnly,
    StrippedTags,
    SwappedTags,
    WrongName,
)
from soak.chaos.faults_disks import Full, HungDisk, IoErrors, LostDisk, ReadOnly, TwoBlank
from soak.chaos.faults_hosts import (
    Freeze,
    FreezeAgent,
    FreezeEtcd,
    Kill,
    KillAgent,
    KillEtcd,
    Partition,
    PowerOff,
    Sleeper,
)
from soak.chaos.faults_images import Clone, OlderCopy
from soak.chaos.faults_members import RemovedMember
from soak.chaos.machine_clock import MachineClock

KINDS: dict[str, type[Fault]] = {
    each.kind: each
    for each in (
        Kill, Freeze, FreezeEtcd, FreezeAgent, KillEtcd, KillAgent, Partition, PowerOff, Sleeper,
        LostDisk, ReadOnly, IoErrors, HungDisk, Full, TwoBlank, OlderCopy, Clone,
        ApiDown, SilentDns, WrongName, StoreAway, StoreReadOnly, StrippedTags, SwappedTags, AgentClock,
        RemovedMember,
    )
}  # fmt: skip

OF_THE_MACHINE: dict[str, type[Fault]] = {MachineClock.kind: MachineClock}
"""Faults that affect the whole machine: only in a section of their own."""

SURVIVED = (
    "kill", "freeze", "freeze-etcd", "freeze-agent", "kill-etcd", "kill-agent", "partition", "power-off", "sleeper",
    "lost-disk", "full", "read-only", "io-errors", "hung-disk", "two-blank", "api-down", "silent-dns",
    "store-away", "store-read-only", "swapped-tags", "stripped-tags", "clone", "older-copy", "agent-clock",
    "removed-member",
)  # fmt: skip
"""What every build has to survive: the end-to-end tests run these. Add a kind here once it is fixed."""
