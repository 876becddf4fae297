"""Certificates of this master: its own as a client of etcd, and those of the members it holds."""

from __future__ import annotations

from collections.abc import Sequence

from protokube.agent.world import Turn

STEP = "keys"
CLIENT = "protokube-etcd-client"
CHECK_EVERY = 600.0
"""Seconds between two looks at what is in order; a third of the shortest life is far longer."""


def sync(turn: Turn) -> None:
    if turn.wanted.etcd:
        ensure(turn, [CLIENT])


def ensure(turn: Turn, names: Sequence[str]) -> None:
    """Have these certificates, fresh enough; TryLater if they cannot be issued now."""
    world = turn.world
    what, now = f"keys {' '.join(names)}", world.clock.monotonic()
    if world.memory.confirmed(what, tuple(names), now, CHECK_EVERY):
        return
    for each in world.keys.sync(names):
        turn.report.done(STEP, each)
    world.memory.confirm(what, tuple(names), now)


def ensure_shared(turn: Turn) -> None:
    """Have the keys that all masters share; TryLater if they cannot be had now."""
    world = turn.world
    now = world.clock.monotonic()
    if world.memory.confirmed("shared keys", True, now, CHECK_EVERY):
        return
    for each in world.keys.sync_shared():
        turn.report.done(STEP, each)
    world.memory.confirm("shared keys", True, now)
