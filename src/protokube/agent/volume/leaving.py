"""Stop serving a volume: manifest away, etcd gone, unmounted everywhere. Never lazily.

A pod has mounts of its own. When an etcd does not end, the volume is soon unmounted here and still mounted there, and
this machine's table no longer shows that anything is left to do. So what is being left is noted in /run until no
process sees the device any more; until then no other volume of that etcd cluster is taken.

To stop etcd needs no note: a full /run must not keep an old holder serving. The volume then stays mounted here, and the
next round finds the same reason to leave it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from protokube.agent import links
from protokube.agent.volume import verified
from protokube.agent.volume.runnotes import PARENT, RunNotes
from protokube.agent.world import Turn, World
from protokube.host import Failed, Mount, Unmount

NOTES = RunNotes("leaving")


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaving:
    """A volume that this machine lets go of."""

    volume: str
    etcd_cluster: str
    """"" where nobody can tell."""
    point: str
    major: int
    minor: int
    why: str
    step: str

    @property
    def number(self) -> tuple[int, int]:
        return self.major, self.minor


def leave(
    turn: Turn,
    volume: str,
    etcd_cluster: str,
    mount: Mount,
    why: str,
    step: str,
    note: Callable[[], None] | None = None,
) -> None:
    """Stop etcd and unmount; finished only when no process sees the device any more.

    `note` writes down what nobody could find out again later.
    """
    major, minor = mount.number
    left = Leaving(
        volume=volume, etcd_cluster=etcd_cluster, point=str(mount.point), major=major, minor=minor, why=why, step=step
    )
    unwritten = _write_notes(turn, left, note)
    for link in links.pointing_into(turn.world, mount.point):
        links.remove(link)
        turn.report.done(step, f"stopped serving: {why}", volume)
    if unwritten:
        turn.leaving[volume] = etcd_cluster
        turn.waiting(step, volume, f"not unmounted yet, although {why}: {PARENT} cannot be written: {unwritten}")
    else:
        _unmount(turn, left)


def _write_notes(turn: Turn, left: Leaving, note: Callable[[], None] | None) -> str:
    """Why they could not be written; "" if they were."""
    try:
        if note is not None:
            note()
        NOTES.write_document(turn.world, left.volume, asdict(left))
    except OSError as error:
        return (error.strerror or str(error)).lower()
    return ""


def finish(turn: Turn) -> None:
    """Go on with what is unmounted here and not proven to be gone."""
    for left in _noted(turn.world):
        if not _is_mounted_here(turn.world, left):  # else each step decides anew whether it has to go
            _unmount(turn, left)


def forget_kept(turn: Turn) -> None:
    """Once all steps have decided what to leave: what is mounted here and stays is not being left any more."""
    for left in _noted(turn.world):
        if left.volume not in turn.leaving and _is_mounted_here(turn.world, left):
            NOTES.forget(turn.world, left.volume)


def _unmount(turn: Turn, left: Leaving) -> None:
    turn.leaving[left.volume] = left.etcd_cluster
    result = turn.world.disks.run(Unmount(point=Path(left.point), number=left.number))
    if result is None:
        turn.waiting(left.step, left.volume, f"being unmounted, since {left.why}")
    elif isinstance(result, Failed):
        turn.waiting(left.step, left.volume, f"cannot be unmounted yet, although {left.why}: {result.why}")
    else:
        del turn.leaving[left.volume]
        verified.forget(turn.world, left.volume)
        NOTES.forget(turn.world, left.volume)
        turn.report.done(left.step, f"let go: {left.why}", left.volume)


def _is_mounted_here(world: World, left: Leaving) -> bool:
    return any(mount.number == left.number for mount in world.disks.mounts())


def _noted(world: World) -> list[Leaving]:
    """A note that cannot be read is none: /run is this machine's own."""
    documents = [NOTES.read_document(world, volume) for volume in NOTES.volumes(world)]
    return [left for each in documents if (left := _decode(each)) is not None]


def _decode(document: dict[str, Any] | None) -> Leaving | None:
    try:
        return Leaving(**document) if document is not None else None
    except TypeError:
        return None
