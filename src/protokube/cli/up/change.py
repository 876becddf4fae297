"""A changed spec for a cluster that runs: the plan that `up` shows, and the revision that it puts in force."""

from __future__ import annotations

import json
import shutil
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import click

from protokube.cli.shared.rollout import author, groups_of, still_old
from protokube.errors import InvalidSpec, Refused

if TYPE_CHECKING:
    from pathlib import Path

    from protokube.cli.shared.inputs import Texts
    from protokube.cli.shared.progress import Progress
    from protokube.config.complete import Config
    from protokube.launch.machine import MasterConfig
    from protokube.launch.plan import ChangePlan
    from protokube.launch.revisions import Revision
    from protokube.launch.rollout import Rollout
    from protokube.local.base.paths import Paths
    from protokube.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Former:
    """The configuration in force, before this `up`."""

    record: Rollout
    revision: Revision
    config: Config
    newest: int
    """The greatest number that was given."""
    base: Revision
    """The last one that all masters ran; another one than `revision` only while a rollout goes on or has stopped."""

    @property
    def base_texts(self) -> Texts:
        return [(self.base.source or f"revision {self.base.number}", self.base.spec)]


def find_former(store: Store, cluster: str) -> Former | None:
    """None for a new cluster. Its configuration is completed again, to know the reason for each value."""
    from protokube.cli.shared.completing import complete_revision
    from protokube.launch.revisions import in_force, numbers, running_revision

    found = in_force(store, cluster)
    base = running_revision(store, cluster)
    if found is None or base is None:
        return None
    record, revision = found
    newest = max(numbers(store, cluster))
    return Former(record=record, revision=revision, config=complete_revision(revision), newest=newest, base=base)


def refuse_renamed(source: Path, cluster: str) -> None:
    """Refused if this file brought up another cluster, which still exists: its new name would create a second one."""
    from protokube.errors import ProtokubeError
    from protokube.launch.revisions import in_force
    from protokube.local.base.paths import Paths
    from protokube.local.choose import clusters
    from protokube.store.file import FileStore

    for other in clusters():
        try:
            known = in_force(FileStore(Paths.of(other).store), other) if other != cluster else None
        except (ProtokubeError, OSError):  # of another version of protokube, or damaged: nothing is known of its file
            continue
        if known is not None and known[1].source == str(source.resolve()):
            raise Refused(
                f"{source} brought up {other}, which still exists; a cluster cannot be renamed to {cluster}",
                hint=f"copy the file to create a second cluster; `protokube down --cluster {other}` removes the first "
                "with its data",
            )


def refuse_fixed(former: Former | None, config: Config, *, kubernetes: bool) -> None:
    """InvalidSpec with everything that a living cluster cannot change, before anything is written."""
    from protokube.launch.plan import refused_fields

    if former is not None and (found := refused_fields(former.config, config, kubernetes=kubernetes)):
        raise InvalidSpec(found)


def plan_change(paths: Paths, former: Former, config: Config, wanted: MasterConfig) -> ChangePlan:
    from protokube.launch.plan import plan

    still = still_old(paths, former.record, former.base, former.revision.master, wanted)
    found = plan(former.config, config, former.revision.master, wanted, groups_of(wanted), still)
    if found.refused:
        raise InvalidSpec(found.refused)
    return found


def make_revision(
    store: Store, config: Config, wanted: MasterConfig, texts: Texts, source: Path | None, *, note: str = "",
    snapshots: dict[str, str] | None = None,
) -> Revision:  # fmt: skip
    """The revision for this configuration: the one in force if it is the same, else a new one."""
    from protokube.launch import revisions
    from protokube.store.configuration import spec_text

    digest = revisions.digest_of(wanted)
    known = revisions.in_force(store, config.name)
    if known is not None and known[1].digest == digest:
        return known[1]
    return revisions.create_revision(
        store,
        config.name,
        lambda number: revisions.Revision(
            number=number, digest=digest, author=author(), at=time.time(), master=replace(wanted, revision=number),
            spec=spec_text(texts), source=str(source.resolve()) if source else "", kubernetes=wanted.kubernetes,
            etcd=wanted.etcd[0].version, note=note, snapshots=snapshots or {},
        ),
    )  # fmt: skip


def show_plan(plan: ChangePlan | None, former: Former | None, output: str, *, dry_run: bool) -> None:
    """On stdout if it is the result, else beside the progress."""
    from protokube.cli.render.change import change_tree, render_change

    if plan is None or former is None:
        lines = ["there is no such cluster yet: `up` would create it"] if dry_run else []
    elif plan.changes:
        lines = [*render_change(plan, *_named(former), shutil.get_terminal_size().columns), ""]
    else:
        lines = ["the same configuration"] if dry_run else []
    if dry_run and output == "json":
        lines = [json.dumps(change_tree(plan, *_named(former)) if plan and former else None, indent=2)]
    for line in lines:
        click.echo(line, err=not dry_run)


def _named(former: Former) -> tuple[str, int, int]:
    """The cluster, and the numbers of the present revision and of the next one."""
    return former.config.name, former.revision.number, former.newest + 1


def roll_out(
    progress: Progress, paths: Paths, store: Store, revision: Revision, timeout: float, *, running: bool
) -> None:
    """Put the revision in force; where masters run, wait until all of them run it."""
    from protokube.cli.shared.rollout import follow_local
    from protokube.launch.revisions import put_in_force
    from protokube.launch.rollout import State

    record = put_in_force(store, revision.master.cluster, revision, running=running, at=time.time(), by=author())
    if record.state is State.DONE:
        return
    with progress.step(f"revision {revision.number}") as step:
        follow_local(progress, paths, store, revision, timeout)
        step.text = f"all masters run revision {revision.number}"
