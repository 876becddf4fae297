"""Bring a changed configuration to the masters of a local cluster: programs and images first, then stage by stage.

Before other programs serve etcd's data, a snapshot lies in the store and was started with the old and the new one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from protokube.cli.up.change import make_revision, roll_out
from protokube.errors import Refused, TryLater

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from protokube.cli.shared.inputs import Texts
    from protokube.cli.shared.progress import Progress
    from protokube.cli.up.change import Former
    from protokube.config.complete import Config
    from protokube.launch.machine import MasterConfig
    from protokube.launch.revisions import Revision
    from protokube.local.base.paths import Paths
    from protokube.local.etcd_choice import Etcd
    from protokube.providers.clients.local import LocalClient
    from protokube.store import Store

SECONDS_FOR_IMAGES = 600.0
SURVEY = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The configuration to bring to the masters, and what it was made from."""

    config: Config
    wanted: MasterConfig
    texts: Texts
    source: Path | None
    etcd: Etcd
    images: Mapping[str, Path]
    """Archives by image name; empty where masters have no container runtime."""


def deliver(
    progress: Progress, paths: Paths, store: Store, admin: LocalClient, former: Former | None, target: Target,
    timeout: float,
) -> Revision:  # fmt: skip
    """Put the configuration in force; where masters run, wait until all of them run it. Returns the last revision."""
    from protokube.launch import prepare
    from protokube.launch.versions import stages

    if former is None or not prepare.is_closed(store, target.wanted):
        revision = make_revision(store, target.config, target.wanted, target.texts, target.source)
        roll_out(progress, paths, store, revision, timeout, running=False)
        return revision
    base = former.base.master
    steps = stages(base, target.wanted)
    snapshots = _make_ready(progress, paths, store, admin, base, target)
    for number, stage in enumerate(steps, start=1):
        last = number == len(steps)
        # A stage before the last one with the old Kubernetes is the old configuration with another etcd.
        texts = target.texts if last or stage.kubernetes != base.kubernetes else former.base_texts
        note = "" if last else f"stage {number} of {len(steps)}"
        revision = make_revision(
            store, target.config, stage, texts, target.source, note=note, snapshots=snapshots if number == 1 else None
        )
        roll_out(progress, paths, store, revision, timeout, running=True)
        check_etcd(paths, admin, revision.master)
    return revision


def _make_ready(
    progress: Progress, paths: Paths, store: Store, admin: LocalClient, base: MasterConfig, target: Target
) -> dict[str, str]:
    """Whatever must be true before the first master restarts; where etcd gets other programs, its snapshots."""
    from protokube.launch.versions import raised
    from protokube.local import bringup

    if images_of(base) != images_of(target.wanted) and (blind := bringup.blind_hosts(admin)):
        raise Refused(
            f"{', '.join(blind)} cannot get other programs: an earlier version of protokube created them",
            hint="have them replaced, one after the other: `protokube drill kill-master` does that",
        )
    if target.images:
        with progress.step("images") as step:
            step.text = bring_images(paths, admin, target.images)
    snapshots = {}
    for key in raised(base, target.wanted):
        with progress.step(f"snapshot of etcd {key}") as step:
            snapshots[key], step.text = _protect(paths, store, admin, base, target, key)
    return snapshots


def images_of(wanted: MasterConfig) -> set[str]:
    return {each.pod.image for each in wanted.etcd} | {each.image for each in wanted.components}


def bring_images(paths: Paths, admin: LocalClient, images: Mapping[str, Path]) -> str:
    """Import what hosts that run do not have, and keep it for hosts to come, with what they were created with.

    A host that is replaced in the middle needs both.
    """
    from protokube.cli.render.table import several
    from protokube.local.base.paths import RUNTIME_CONFIG
    from protokube.local.bringup import CACHE
    from protokube.local.loading import image_store
    from protokube.local.loading.delivery import living
    from protokube.local.loading.load import deliver, found
    from protokube.local.node.containerd import RuntimeConfig
    from protokube.local.node.kubehost import ctr

    configs = [paths.host(row["name"]) / str(RUNTIME_CONFIG).lstrip("/") for row in living(admin)]
    created = [_full_names(RuntimeConfig.read(file).images) for file in configs if file.exists()]
    new = {name: file for name, file in _full_names(images).items() if any(name not in each for each in created)}
    if not new:
        return "the hosts have all images"
    former = {name: file for each in created for name, file in each.items()}
    with image_store.locked(paths.images, SECONDS_FOR_IMAGES):
        kept = image_store.owners(image_store.read_index(paths.images))
        with found([file for name, file in {**former, **new}.items() if name not in kept], paths.images) as good:
            image_store.keep(paths.images, [(each.file, each.kept) for each in good])
        wanted = [each for each in image_store.read_index(paths.images) if each.names.keys() & new.keys()]
        outcomes = deliver(paths, admin, ctr(CACHE), wanted, SECONDS_FOR_IMAGES, only_missing=True)
    if failed := [f"{each.host}: {each.why}" for each in outcomes if each.state in ("refused", "failed")]:
        raise TryLater("not every host has the new images", saw="; ".join(failed), hint="run it again")
    return f"{several(len(wanted), 'image')} on {several(len(outcomes), 'host')}"


def _full_names(images: Mapping[str, Path] | Mapping[str, str]) -> dict[str, str]:
    """Archives by the names under which the kubelet asks for their images."""
    from protokube.images.names import BadName, normalise

    try:
        return {normalise(name): str(file) for name, file in images.items()}
    except BadName as why:
        raise Refused(str(why), hint="correct the image in the spec") from why


def _protect(
    paths: Paths, store: Store, admin: LocalClient, base: MasterConfig, target: Target, key: str
) -> tuple[str, str]:
    """Where the snapshot is, and a sentence about it."""
    from protokube.cli.render.table import size
    from protokube.local import bringup
    from protokube.local.snapshots import protect

    old, new = base.etcd_cluster(key), target.wanted.etcd_cluster(key)
    assert old is not None
    assert new is not None
    assert target.etcd.etcdctl is not None
    made = protect(
        store, paths, key, urls=bringup.endpoints(admin, old), old=old.pod.image, new=new.pod.image,
        etcdctl=target.etcd.etcdctl,
    )  # fmt: skip
    versions = " and ".join(made.versions)
    return made.path, f"snapshot of etcd {key}: {size(made.size)}, restored and started with {versions}"


def check_etcd(paths: Paths, admin: LocalClient, master: MasterConfig) -> None:
    """Refused if a member runs another version than its revision has: its image does not hold what its name says."""
    from protokube.local import bringup
    from protokube.spec.version import parse

    wrong = []
    for etcd in (each for each in master.etcd if each.version):
        client = bringup.etcd_client(paths, bringup.endpoints(admin, etcd))
        try:
            statuses = client.survey(SURVEY)
        finally:
            client.close()
        wanted = parse(etcd.version)
        wrong += [f"{name} {each.version}" for name, each in statuses.items() if parse(each.version) != wanted]
    if wrong:
        raise Refused(
            f"revision {master.revision} is everywhere, but not its version of etcd", saw=", ".join(wrong),
            want=", ".join(sorted({each.version for each in master.etcd})), hint="see which image the members run",
        )  # fmt: skip
