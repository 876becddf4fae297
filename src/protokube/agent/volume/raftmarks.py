"""Record the log position of each served member in the state store, at most once a minute: its raft mark.

The mark reveals an older copy of a disk before etcd starts on it. So it must never be ahead of the disk: it is read
from the write-ahead log itself, and recorded only after an fsync of that log. etcd's own status is no source: it
includes entries that are still in memory.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from protokube.agent.cache import Confirmed, StepCache, is_recent
from protokube.agent.etcd import generations
from protokube.agent.round import MountedVolume, Round
from protokube.errors import Refused, TryLater
from protokube.etcd.wal import UnreadableLog
from protokube.launch.machine import EtcdCluster
from protokube.members.identity import Identity
from protokube.members.raftmark import LogPosition, RaftMark, decode, encode, raised
from protokube.members.start_values import Data, Start
from protokube.store import NotThere, Stored, layout

STEP = "raft mark"
EVERY = 60.0


@dataclass(slots=True)
class RaftMarksCache(StepCache):
    written: dict[str, Confirmed[RaftMark]] = field(default_factory=dict)
    """By volume: the mark that was last written. A write compares with the mark in the store, and never lowers it."""


def wal_folder(disk: MountedVolume) -> Path:
    return folder_at(disk.point, disk.etcd)


def folder_at(point: Path, etcd: EtcdCluster) -> Path:
    """The directory of etcd's write-ahead log on a volume with this mount point."""
    return point / etcd.pod.data_dir.lstrip("/") / "member" / "wal"


def sync(round_: Round) -> None:
    for disk in round_.mounted:
        match round_.decisions.get(disk.volume):
            case Start(fresh=False) if disk.data is Data.PRESENT and disk.volume in round_.settled:
                try:
                    _one(round_, disk)
                except (TryLater, Refused) as why:
                    # Nothing waits for it: a running member goes on without a newer mark.
                    round_.report.warn(STEP, f"its log position is not recorded: {why.message}", disk.name, why.hint)
            case _:
                pass


def read(round_: Round, key: str, generation: str, position: LogPosition) -> RaftMark | None:
    """The mark of the member with this log; None if there is none that can be decoded. Raises what the store raises."""
    stored = _stored(round_, _path(round_, key, generation, position))
    return decode(stored.data.decode(errors="replace").strip()) if stored else None


def reset(round_: Round, key: str, generation: str, position: LogPosition) -> None:
    """Record the position of an older copy that a person accepted: the only operation that lowers a mark."""
    _write(round_, key, _mark(generation, position), lower=True)


def acknowledge(
    round_: Round, key: str, generation: str, position: LogPosition, *, acknowledged: int, copied_epoch: int
) -> None:
    """Record an index that this member acknowledged and that the log on the mounted disk lacks.

    Term and commit stay unchanged: the original disk, which has the entry, may not know yet that it is committed.
    """
    mark = RaftMark(
        generation=generation, cluster_id=position.cluster_id, member_id=position.member_id, term=0, commit=0,
        acknowledged=acknowledged, copied_epoch=copied_epoch,
    )  # fmt: skip
    _write(round_, key, mark)


def _one(round_: Round, disk: MountedVolume) -> None:
    written, now = round_.edges.cache.of(RaftMarksCache).written, round_.edges.clock.monotonic()
    known = written.get(disk.volume)
    if known is not None and is_recent(known.when, now, EVERY):
        return
    assert isinstance(disk.identity, Identity)
    folder = wal_folder(disk)
    try:
        position = round_.edges.background.run(f"raft mark {disk.volume}", lambda: round_.edges.logs.flushed(folder))
    except (OSError, UnreadableLog) as error:
        raise TryLater(f"etcd's log could not be flushed and read: {error}") from error
    if position is None:
        return  # a later round collects it
    mark = _mark(disk.identity.generation, position)
    if known is None or known.value != mark:
        _write(round_, disk.etcd.key, mark)
    written[disk.volume] = Confirmed(mark, now)


def _mark(generation: str, position: LogPosition) -> RaftMark:
    return RaftMark(
        generation=generation,
        cluster_id=position.cluster_id,
        member_id=position.member_id,
        term=position.term,
        commit=position.commit,
    )


def _write(round_: Round, key: str, mark: RaftMark, *, lower: bool = False) -> None:
    path = _path(round_, key, mark.generation, mark)
    stored = _stored(round_, path)
    known = decode(stored.data.decode(errors="replace").strip()) if stored else None
    wanted = mark if lower else raised(known, mark)
    if wanted == known:
        return
    data = f"{encode(wanted)}\n".encode()
    if stored is None:
        generations.create_record(round_, key, path, data)
    else:
        round_.edges.store.replace(path, data, stored.version)


def _path(round_: Round, key: str, generation: str, of: LogPosition | RaftMark) -> str:
    return layout.etcd_raft_mark(round_.wanted.cluster, key, generation, of.cluster_id, of.member_id)


def _stored(round_: Round, path: str) -> Stored | None:
    try:
        return round_.edges.store.read(path)
    except NotThere:
        return None
