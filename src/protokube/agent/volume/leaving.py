"""Stop serving a volume: remove the manifest, wait for etcd to stop, unmount in all mount namespaces. Never lazily.

A pod has its own mount namespace. If etcd does not exit, the volume is unmounted on the host but still mounted in the
pod, and the host's mount table no longer shows it. So the volume is noted in /run until no process sees the device any
more; until then no other volume of that etcd cluster is attached.

Stopping etcd needs no note: a full /run must not keep an old holder serving. The volume then stays mounted on the host,
and the next round finds the same reason to unmount it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from protokube.agent import links
from protokube.agent.edges import Edges
from protokube.agent.round import Round
from protokube.agent.volume import verified
from protokube.agent.volume.runnotes import PARENT, RunNotes
from protokube.host import Failed, Mount, Unmount

NOTES = RunNotes("leaving")


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaving:
    """A volume that this machine stops serving and unmounts."""

    volume: str
    etcd_cluster: str
    """"" if unknown."""
    point: str
    major: int
    minor: int
    why: str
    step: str

    @property
    def number(self) -> tuple[int, int]:
        return self.major, self.minor


def leave(
    round_: Round,
    volume: str,
    etcd_cluster: str,
    mount: Mount,
    why: str,
    step: str,
    note: Callable[[], None] | None = None,
) -> None:
    """Stop etcd and unmount; finished only when no process sees the device any more.

    `note` records facts that cannot be observed again after the unmount.
    """
    major, minor = mount.number
    left = Leaving(
        volume=volume, etcd_cluster=etcd_cluster, point=str(mount.point), major=major, minor=minor, why=why, step=step
    )
    unwritten = _write_notes(round_, left, note)
    for link in links.pointing_into(round_.edges, mount.point):
        links.remove(link)
        round_.report.done(step, f"stopped serving: {why}", volume)
    if unwritten:
        round_.leaving[volume] = etcd_cluster
        round_.waiting(step, volume, f"not unmounted yet, although {why}: {PARENT} cannot be written: {unwritten}")
    else:
        _unmount(round_, left)


def _write_notes(round_: Round, left: Leaving, note: Callable[[], None] | None) -> str:
    """Write the notes; returns the error, or "" on success."""
    try:
        if note is not None:
            note()
        NOTES.write_document(round_.edges, left.volume, asdict(left))
    except OSError as error:
        return (error.strerror or str(error)).lower()
    return ""


def finish(round_: Round) -> None:
    """Continue with volumes that are unmounted on the host, but may still be mounted elsewhere."""
    for left in _noted(round_.edges):
        if not _is_mounted_here(round_.edges, left):  # otherwise each step decides again whether to unmount it
            _unmount(round_, left)


def forget_kept(round_: Round) -> None:
    """After all steps have decided: delete the notes of volumes that stay mounted here."""
    for left in _noted(round_.edges):
        if left.volume not in round_.leaving and _is_mounted_here(round_.edges, left):
            NOTES.forget(round_.edges, left.volume)


def _unmount(round_: Round, left: Leaving) -> None:
    round_.leaving[left.volume] = left.etcd_cluster
    result = round_.edges.disks.run(Unmount(point=Path(left.point), number=left.number))
    if result is None:
        round_.waiting(left.step, left.volume, f"being unmounted, since {left.why}")
    elif isinstance(result, Failed):
        round_.waiting(left.step, left.volume, f"cannot be unmounted yet, although {left.why}: {result.why}")
    else:
        del round_.leaving[left.volume]
        verified.forget(round_.edges, left.volume)
        NOTES.forget(round_.edges, left.volume)
        round_.report.done(left.step, f"let go: {left.why}", left.volume)


def _is_mounted_here(edges: Edges, left: Leaving) -> bool:
    return any(mount.number == left.number for mount in edges.disks.mounts())


def _noted(edges: Edges) -> list[Leaving]:
    """A note that cannot be decoded is ignored: only this machine writes to /run."""
    documents = [NOTES.read_document(edges, volume) for volume in NOTES.volumes(edges)]
    return [left for each in documents if (left := _decode(each)) is not None]


def _decode(document: dict[str, Any] | None) -> Leaving | None:
    try:
        return Leaving(**document) if document is not None else None
    except TypeError:
        return None
