"""Stop serving a volume: manifest away, etcd gone, unmounted everywhere. Never lazily.

A pod has mounts of its own. When an etcd does not end, the volume is soon unmounted here and still mounted there, and
this machine's table no longer shows that anything is left to do. So what is being left is noted in /run until no
process sees the device any more; until then no other volume of that etcd cluster is taken.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from protokube.agent import links, verified
from protokube.agent.world import Turn, World
from protokube.host import Failed, Mount, Unmount
from protokube.host.files import read_or_none, remove, write_atomic

FOLDER = "/run/protokube/leaving"


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


def leave(turn: Turn, volume: str, etcd_cluster: str, mount: Mount, why: str, step: str) -> None:
    """Stop etcd and unmount; finished only when no process sees the device any more."""
    major, minor = mount.number
    left = Leaving(
        volume=volume, etcd_cluster=etcd_cluster, point=str(mount.point), major=major, minor=minor, why=why, step=step
    )
    _note(turn.world, left)
    for link in links.pointing_into(turn.world, mount.point):
        links.remove(link)
        turn.report.done(step, f"stopped serving: {why}", volume)
    _unmount(turn, left)


def finish(turn: Turn) -> None:
    """Go on with what is unmounted here and not proven to be gone."""
    shown = {mount.number for mount in turn.world.disks.mounts()}
    for left in _noted(turn.world):
        if left.number in shown:
            continue  # it is still mounted here, and each step decides anew whether it has to go
        _unmount(turn, left)


def forget_kept(turn: Turn) -> None:
    """Once all steps have decided what to leave: what is mounted here and stays is not being left any more."""
    shown = {mount.number for mount in turn.world.disks.mounts()}
    for left in _noted(turn.world):
        if left.volume not in turn.leaving and left.number in shown:
            remove(_file(turn.world, left.volume))


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
        remove(_file(turn.world, left.volume))
        turn.report.done(left.step, f"let go: {left.why}", left.volume)


def _note(world: World, left: Leaving) -> None:
    file = _file(world, left.volume)
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_atomic(file, json.dumps(asdict(left), sort_keys=True).encode(), 0o600, durable=False)


def _noted(world: World) -> list[Leaving]:
    folder = world.inside(FOLDER)
    files = sorted(folder.iterdir()) if folder.is_dir() else ()
    return [left for file in files if (left := _decode(read_or_none(file))) is not None]


def _decode(data: bytes | None) -> Leaving | None:
    """A note that cannot be read is none: /run is this machine's own, and only a crash in the middle leaves half."""
    try:
        return Leaving(**json.loads(data)) if data is not None else None
    except (ValueError, TypeError):
        return None


def _file(world: World, volume: str) -> Path:
    return world.inside(FOLDER) / volume
