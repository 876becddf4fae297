"""Certificates of this master: its own as a client of etcd, and those of the members it holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from protokube.agent.world import Turn
from protokube.manifests.etcd import PKI
from protokube.pki import ending
from protokube.pki.renewal import look_every

STEP = "keys"
CLIENT = "protokube-etcd-client"
CHECK_EVERY = 600.0
"""Seconds between two looks at what is in order; more often only where lives are short."""
AUTHORITIES, SHARED, FOLDERS = "authorities", "shared keys", "folders of components"


def sync(turn: Turn) -> None:
    if turn.wanted.etcd:
        warn(turn)
        ensure(turn, [CLIENT])


def ensure(turn: Turn, names: Sequence[str]) -> None:
    """Have these certificates, fresh enough; TryLater if they cannot be issued now."""
    lasts = min(CHECK_EVERY, look_every(turn.wanted.certificate_lifetime))
    _look(turn, _called(names), lasts, lambda: turn.world.keys.sync(names))


def ensure_shared(turn: Turn) -> None:
    """Have the keys that all masters share; TryLater if they cannot be had now."""
    _look(turn, SHARED, CHECK_EVERY, turn.world.keys.sync_shared)


def give(turn: Turn, folders: Callable[[], Mapping[str, Sequence[str]]], names: Sequence[str]) -> None:
    """Have in each component's own folder the files it uses, as the last look at these certificates left them."""
    memory, now = turn.world.memory, turn.world.clock.monotonic()
    looked = (memory.checked.get(SHARED), memory.checked.get(_called(names)))
    if not memory.confirmed(FOLDERS, looked, now, CHECK_EVERY):
        for component, files in folders().items():  # to find them in all flags is not for every round
            for each in turn.world.keys.give(component, files):
                turn.report.done(STEP, each)
        memory.confirm(FOLDERS, looked, now)


def warn(turn: Turn) -> None:
    """Tell of every authority that ends within a year."""
    world = turn.world
    told, now = sorted({each["authority"] for each in turn.wanted.certificates.values()}), world.clock.monotonic()
    if not world.memory.confirmed(AUTHORITIES, told, now, CHECK_EVERY):
        world.memory.authorities = ending.ends(world.inside(PKI), told)
        world.memory.confirm(AUTHORITIES, told, now)
    today = world.clock.now()
    for name, end in world.memory.authorities.items():
        if text := ending.words(name, end, today):
            say = turn.report.needs_a_person if ending.is_urgent(end, today) else turn.report.warn
            say(STEP, text, hint=ending.HINT)


def _called(names: Sequence[str]) -> str:
    return f"keys {' '.join(names)}"


def _look(turn: Turn, what: str, lasts: float, sync: Callable[[], Sequence[str]]) -> None:
    world = turn.world
    now = world.clock.monotonic()
    if not world.memory.confirmed(what, True, now, lasts):
        for each in sync():
            turn.report.done(STEP, each)
        world.memory.confirm(what, True, now)
    if lasts < CHECK_EVERY:  # else the next round that comes anyway is soon enough
        turn.within(world.memory.confirmed_for(what, now, lasts))
