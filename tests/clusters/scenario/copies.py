"""Snapshots of the disks of a scenario, and etcd's log on them, as far as the model of etcd has one."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

from clusters.scenario.disks import Platter
from clusters.scenario.etcd import Db, EtcdModel
from protokube.etcd.wal import UnreadableLog
from protokube.host import Content
from protokube.members.identity import FILE, Identity, decode
from protokube.members.raftmark import LogPosition

COPIES = count(1)


class ModelLogs:
    """Implements Logs: the model keeps no log, so its position is that of the state it has."""

    def __init__(self, models: Iterable[EtcdModel]) -> None:
        self.models = tuple(models)

    def position(self, folder: Path) -> LogPosition:
        key = Path((folder.parent / "db").read_text())
        db = next((model.dbs[key] for model in self.models if key in model.dbs), None)
        if db is None:
            raise UnreadableLog(f"nothing is known of {key}")
        sequence = db.state.sequence
        return LogPosition(cluster_id=db.cluster, member_id=db.member, term=1, commit=sequence, last_index=sequence)

    flushed = position


@dataclass(frozen=True)
class DiskCopy:
    """All of a file system, as it was."""

    folder: Path
    uuid: str | None
    dbs: tuple[dict[str, Db], ...]
    """By model of etcd."""

    @property
    def identity(self) -> Identity | None:
        file = self.folder / FILE
        found = decode(file.read_bytes()) if file.exists() else None
        return found if isinstance(found, Identity) else None


def copy_disk(platter: Platter, models: Iterable[EtcdModel]) -> DiskCopy:
    assert platter.folder is not None, f"there is no file system on {platter.volume}"
    folder = platter.base.parent / "copies" / f"{platter.volume}-{next(COPIES)}"
    shutil.copytree(platter.folder, folder, symlinks=True)
    return DiskCopy(folder, platter.uuid, tuple(model.copies(platter.folder) for model in models))


def put_back(platter: Platter, copied: DiskCopy, models: Iterable[EtcdModel]) -> None:
    platter.wipe()
    platter.content, platter.uuid = Content.EXT4, copied.uuid
    platter.folder = platter.base / f"{platter.volume}-{next(platter.folders)}"
    shutil.copytree(copied.folder, platter.folder, symlinks=True)
    for model, dbs in zip(models, copied.dbs, strict=True):
        model.put_back(platter.folder, {place: replace(db, old_copy=True) for place, db in dbs.items()})
