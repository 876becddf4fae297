"""Guard etcd's data while its programs change: a rehearsed snapshot before, the versions of its members after.

What the members have agreed on decides, not what a revision wanted: a rollout that stopped may have raised the data.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from protokube.errors import Refused, TryLater

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from protokube.cli.shared.progress import Progress
    from protokube.etcd import Status
    from protokube.launch.machine import EtcdCluster, MasterConfig
    from protokube.launch.revisions import Revision
    from protokube.launch.rollout import Rollout
    from protokube.local.base.paths import Paths
    from protokube.providers.clients.local import LocalClient
    from protokube.store import Store

SURVEY, SECONDS, EVERY = 2.0, 30.0, 0.5
"""Seconds for one question to all members, for all of them to answer, and between two attempts."""


def protect(
    progress: Progress, paths: Paths, store: Store, admin: LocalClient, record: Rollout, present: Revision,
    base: MasterConfig, wanted: MasterConfig, etcdctl: Path | None,
) -> dict[str, str]:  # fmt: skip
    """Where the snapshots are of the etcd clusters whose version goes up: new ones, or those of a step under way."""
    from protokube.launch.versions import raised

    found = {}
    for key in raised(base, wanted):
        with progress.step(f"snapshot of etcd {key}") as step:
            old, new = base.etcd_cluster(key), wanted.etcd_cluster(key)
            assert old is not None
            assert new is not None
            known = kept(record, present, old, new, agreed := agreed_version(paths, admin, old))
            found[key], step.text = known or _take(paths, store, admin, old, new, agreed, etcdctl)
    return {key: path for key, path in found.items() if path}


def kept(
    record: Rollout, present: Revision, old: EtcdCluster, new: EtcdCluster, agreed: str
) -> tuple[str, str] | None:  # fmt: skip
    """The snapshot of a step that is under way already, and a sentence about it; None if one is to be taken.

    Once the members have agreed on the new version, all of them run it, and there is nothing to rehearse. A step that
    stopped before that begins anew, with the data of now.
    """
    from protokube.launch.rollout import State
    from protokube.launch.versions import may_run, version_of

    running, path = present.master.etcd_cluster(new.key), present.snapshots.get(new.key, "")
    if record.state is State.DONE or running is None or version_of(running) != version_of(new):
        return None
    if not may_run(old, agreed):
        return path, f"etcd {new.key}: its members have agreed on {agreed} already, so none is needed"
    if path and record.state is State.ROLLING:
        return path, f"etcd {new.key}: the snapshot of revision {present.number}, which is being rolled out"
    return None


def agreed_version(paths: Paths, admin: LocalClient, etcd: EtcdCluster) -> str:
    from protokube.local import bringup

    client = bringup.etcd_client(paths, bringup.endpoints(admin, etcd))
    try:
        return client.cluster_version()
    finally:
        client.close()


def _take(
    paths: Paths, store: Store, admin: LocalClient, old: EtcdCluster, new: EtcdCluster, agreed: str,
    etcdctl: Path | None,
) -> tuple[str, str]:  # fmt: skip
    """Where the snapshot is, and a sentence about it."""
    from protokube.cli.render.table import size
    from protokube.launch.versions import rehearsed
    from protokube.local import bringup
    from protokube.local.base import programs
    from protokube.local.snapshots import protect

    etcdctl = etcdctl or programs.find(paths.programs, new.pod.image, "etcdctl")
    if etcdctl is None:
        raise Refused(
            f"there is no etcdctl of {new.pod.image} on this machine",
            hint="`protokube up` with a spec that names this version keeps it here",
        )
    images = rehearsed(old, new, agreed)
    if new.pod.image not in images:
        raise Refused(
            f"{new.pod.image} cannot read the data of etcd {new.key}", saw=f"its members have agreed on {agreed}",
            hint="keep the version that runs",
        )  # fmt: skip
    urls = bringup.endpoints(admin, old)
    made = protect(store, paths, new.key, urls=urls, images=images, etcdctl=etcdctl)
    versions = " and ".join(made.versions)
    return made.path, f"snapshot of etcd {new.key}: {size(made.size)}, restored and started with {versions}"


def check_etcd(paths: Paths, admin: LocalClient, master: MasterConfig, seconds: float = SECONDS) -> None:
    """Refused if a member runs another version than its revision has: its image does not hold what its name says.

    TryLater unless every member answers.
    """
    from protokube.local import bringup

    for etcd in (each for each in master.etcd if each.version):
        client = bringup.etcd_client(paths, bringup.endpoints(admin, etcd))
        end = time.monotonic() + seconds
        try:
            while silent(etcd, statuses := client.survey(SURVEY)) and time.monotonic() < end:
                time.sleep(EVERY)
        finally:
            client.close()
        compare(master.revision, etcd, statuses)


def silent(etcd: EtcdCluster, statuses: Mapping[str, Status]) -> list[str]:
    return sorted({each.name for each in etcd.members} - statuses.keys())


def compare(revision: int, etcd: EtcdCluster, statuses: Mapping[str, Status]) -> None:
    from protokube.spec.version import parse

    wanted = parse(etcd.version)
    if wrong := [f"{name} {each.version}" for name, each in statuses.items() if parse(each.version) != wanted]:
        raise Refused(
            f"revision {revision} is everywhere, but not its version of etcd", saw=", ".join(wrong),
            want=etcd.version, hint="see which image the members run",
        )  # fmt: skip
    if missing := silent(etcd, statuses):
        raise TryLater(
            f"not every member of etcd {etcd.key} says which version it runs", saw=f"no answer of {', '.join(missing)}",
            hint="`protokube status` shows why; then run it again",
        )  # fmt: skip
