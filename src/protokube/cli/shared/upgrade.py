"""Bring a changed configuration to the masters of a local cluster: programs and images first, then stage by stage.

Before other programs serve etcd's data, a snapshot lies in the store and was started with the old and the new one. The
configuration is written to the store only after that, so a command that fails before has changed nothing.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from protokube.cli.shared.images import bring_images, images_of
from protokube.cli.shared.protecting import check_etcd, protect
from protokube.cli.shared.rollout import author, follow_local
from protokube.cli.shared.templates import follows, kubelets_follow, one_at_a_time
from protokube.errors import Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from protokube.cli.shared.inputs import Texts
    from protokube.cli.shared.progress import Progress
    from protokube.config.complete import Config
    from protokube.launch.machine import EtcdCluster, MasterConfig
    from protokube.launch.revisions import Revision
    from protokube.launch.rollout import Rollout
    from protokube.local.base.paths import Paths
    from protokube.providers.clients.local import LocalClient
    from protokube.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """What the plan was made on: a change of it meanwhile ends the command."""

    record: Rollout
    revision: Revision
    """The one in force."""
    base: Revision
    """The last one that all masters ran; another one than `revision` only while a rollout goes on or has stopped."""

    @property
    def unfinished(self) -> bool:
        return self.base.number != self.revision.number


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The configuration to bring to the masters, and what it was made from."""

    config: Config
    wanted: MasterConfig
    texts: Texts
    source: str = ""
    etcdctl: Path | None = None
    """None: the one that is kept for the image."""
    images: Mapping[str, Path] = field(default_factory=dict)
    """Archives by image name; empty where masters have no container runtime."""
    note: str = ""
    make_hosts: Callable[[MasterConfig], None] | None = None
    """Have the cloud make new hosts for this configuration; needed where those that run cannot take it."""


def deliver(
    progress: Progress, paths: Paths, store: Store, admin: LocalClient, planned: Planned | None, target: Target,
    timeout: float,
) -> Revision:  # fmt: skip
    """Put the configuration in force; where masters run, wait until all of them run it. Returns the last revision."""
    from protokube.launch import prepare
    from protokube.launch.revisions import with_versions
    from protokube.launch.rollout import State
    from protokube.store.configuration import put_config

    if planned is None or not prepare.is_closed(store, target.wanted):
        put_config(store, target.config, target.texts)
        revision = make_revision(store, target, target.wanted, target.texts, note=target.note)
        roll_out(progress, paths, store, revision, timeout, running=False, planned=planned, target=target)
        use_addons(store, target.wanted)
        return revision
    base = with_versions(planned.base)
    if planned.record.state is State.DONE and images_of(base) != images_of(target.wanted):
        same = same_programs(base, target.wanted)
        check_etcd(paths, admin, replace(base, etcd=tuple(same)))  # a command that was killed may not have done so
    snapshots = _make_ready(progress, paths, store, admin, planned, target)
    put_config(store, target.config, target.texts)

    def roll(revision: Revision, planned_on: Rollout) -> Rollout:
        record = roll_out(
            progress, paths, store, revision, timeout, running=True, planned=replace(planned, record=planned_on),
            target=target,
        )  # fmt: skip
        check_etcd(paths, admin, revision.master)
        return record

    revision = stage_by_stage(store, planned, target, snapshots, roll)
    use_addons(store, target.wanted)  # last: an API server of the former version may not know them
    return revision


def same_programs(before: MasterConfig, after: MasterConfig) -> list[EtcdCluster]:
    """The etcd clusters whose programs stay: what is wrong with others, this change may correct."""
    images = {each.key: each.pod.image for each in after.etcd}
    return [each for each in before.etcd if images.get(each.key) == each.pod.image]


def stage_by_stage(
    store: Store, planned: Planned, target: Target, snapshots: Mapping[str, str],
    roll: Callable[[Revision, Rollout], Rollout],
) -> Revision:  # fmt: skip
    """One revision for each stage; `roll` brings it to all masters before the next one is made. Returns the last."""
    from protokube.launch.revisions import with_versions
    from protokube.launch.versions import stages

    base, record = with_versions(planned.base), planned.record
    steps = without_returns(planned.revision.master, stages(base, target.wanted))
    for number, stage in enumerate(steps, start=1):
        last = number == len(steps)
        more = f", {target.note}" if target.note else ""
        revision = make_revision(
            store,
            target,
            stage,
            target.texts if last else texts_of_stage(planned.base, base, stage, target),
            note=target.note if last else f"stage {number} of {len(steps)}{more}{follows(stage, target.wanted)}",
            snapshots=snapshots if number == 1 else {},
        )
        record = roll(revision, record)
    return revision


def without_returns(present: MasterConfig, steps: tuple[MasterConfig, ...]) -> tuple[MasterConfig, ...]:
    """Without stages that would replace the machines of the revision in force by others of the former kind."""
    from protokube.launch.change import needs_other_machine

    if needs_other_machine(present, steps[-1]):
        return steps
    return tuple(each for each in steps if not needs_other_machine(each, steps[-1]))


def use_addons(store: Store, wanted: MasterConfig) -> None:
    """Have agents apply the add-ons of this configuration, if the store has them: `rollout undo` returns to them."""
    from protokube.store import NotThere
    from protokube.store.addons import name_current, read_addons

    if not wanted.addons:
        return
    try:
        read_addons(store, wanted.cluster, wanted.addons)
    except NotThere:
        return
    name_current(store, wanted.cluster, wanted.addons)


def texts_of_stage(before: Revision, base: MasterConfig, stage: MasterConfig, target: Target) -> Texts:
    """A stage with the old components is the old configuration with another etcd, so it has the old text.

    The versions that the text names become those of the stage.
    """
    from protokube.cli.shared.completing import matching_text

    if (stage.kubernetes, stage.components) != (base.kubernetes, base.components):
        return target.texts
    source = before.source or f"revision {before.number}"
    return [(source, matching_text(before.spec, stage.etcd[0].version, stage.kubernetes))]


def _make_ready(
    progress: Progress, paths: Paths, store: Store, admin: LocalClient, planned: Planned, target: Target
) -> dict[str, str]:
    """Whatever must be true before the first master restarts; where etcd gets other programs, its snapshots."""
    from protokube.launch.revisions import with_versions
    from protokube.local import bringup

    base = with_versions(planned.base)
    if images_of(base) != images_of(target.wanted) and (blind := bringup.blind_hosts(admin)):
        raise Refused(
            f"{', '.join(blind)} cannot get other programs: an earlier version of protokube created them",
            hint="run `protokube up` with the versions that run now, so that new hosts get them; then have these "
            "replaced, one after the other, by `protokube drill kill-master`",
        )
    if target.images:
        with progress.step("images") as step:
            step.text = bring_images(paths, admin, target.images)
    return protect(progress, paths, store, admin, planned.record, planned.revision, base, target.wanted, target.etcdctl)


def make_revision(
    store: Store, target: Target, wanted: MasterConfig, texts: Texts, *, note: str = "",
    snapshots: Mapping[str, str] | None = None,
) -> Revision:  # fmt: skip
    """The revision for this configuration: the one in force if it is the same, else a new one.

    A new one, too, if the one in force does not name the snapshots, or says that kubelets follow, which were declined
    meanwhile: a revision never changes.
    """
    from protokube.launch import revisions
    from protokube.store.configuration import spec_text

    digest, snapshots = revisions.digest_of(wanted), dict(snapshots or {})
    known = revisions.in_force(store, wanted.cluster)
    if known is not None and others_since(store, wanted, known[0].wanted + 1):
        known = None  # hosts that were made for a later one leave for none but a later one still
    if known is not None and kubelets_follow(known[1].note) and not kubelets_follow(note):
        known = None
    if known is not None and known[1].digest == digest and snapshots.items() <= known[1].snapshots.items():
        return known[1]
    return revisions.create_revision(
        store,
        wanted.cluster,
        lambda number: revisions.Revision(
            number=number, digest=digest, author=author(), at=time.time(), master=replace(wanted, revision=number),
            spec=spec_text(texts), source=target.source, kubernetes=wanted.kubernetes, etcd=wanted.etcd[0].version,
            note=note, snapshots=snapshots,
        ),
    )  # fmt: skip


def others_since(store: Store, wanted: MasterConfig, number: int) -> bool:
    """Whether a revision from this number on needs other hosts than the wanted one does.

    Also one that was never put in force: a command may have been killed after it had hosts made for it.
    """
    from protokube.launch.change import needs_other_machine
    from protokube.launch.revisions import by_number

    known = by_number(store, wanted.cluster).items()
    return any(needs_other_machine(each.master, wanted) for given, each in known if given >= number)


def roll_out(
    progress: Progress, paths: Paths, store: Store, revision: Revision, timeout: float, *, running: bool,
    target: Target, planned: Planned | None = None,
) -> Rollout:  # fmt: skip
    """Put the revision in force; where masters run, wait until all of them run it.

    The cloud makes hosts for it before that: from then on, those that cannot take it end, one after the other.
    """
    from protokube.launch.revisions import is_put_in_force, need_unchanged, put_in_force, read_rollout
    from protokube.launch.rollout import State

    with one_at_a_time(paths):
        known = read_rollout(store, revision.master.cluster)
        if planned and known and not is_put_in_force(known, revision.number):
            need_unchanged(known, planned.record)  # before templates change: nobody would change them back
        if planned and others_since(store, revision.master, planned.base.number):
            if target.make_hosts is None:
                raise Refused(
                    f"revision {revision.number} needs hosts that this command cannot make",
                    hint="`protokube up --kubelet` adds kubelets",
                )
            target.make_hosts(revision.master)
        record = put_in_force(
            store, revision.master.cluster, revision, running=running, at=time.time(), by=author(),
            planned_on=planned.record if planned else None,
        )  # fmt: skip
    if record.state is State.DONE:
        return record
    name = f"revision {revision.number}{f', {revision.note}' if revision.note else ''}"
    with progress.step(name) as step:
        record = follow_local(progress, paths, store, revision, timeout)
        step.text = f"all masters run {name}"
    return record
