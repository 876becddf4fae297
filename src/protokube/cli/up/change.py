"""A changed spec for a cluster that runs: the plan that `up` shows, and the revision that it puts in force."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import click

from protokube.cli.shared.rollout import groups_of, still_old
from protokube.cli.shared.upgrade import Planned
from protokube.cli.up.anew import OtherFields, of
from protokube.errors import Refused

if TYPE_CHECKING:
    from pathlib import Path

    from protokube.cli.shared.inputs import Texts
    from protokube.config.complete import Config
    from protokube.launch.machine import MasterConfig
    from protokube.launch.plan import ChangePlan
    from protokube.launch.revisions import Revision
    from protokube.local.base.paths import Paths
    from protokube.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Former:
    """The configuration in force, before this `up`."""

    planned: Planned
    config: Config | None
    """None if the spec of the revision in force cannot be completed any more; what masters are given is known then."""
    base_config: Config | None
    """Of the last revision that all masters ran."""
    newest: int
    """The greatest number that was given."""

    @property
    def revision(self) -> Revision:
        return self.planned.revision

    @property
    def base(self) -> Revision:
        return self.planned.base


def find_former(store: Store, cluster: str) -> Former | None:
    """None for a new cluster. Its configuration is completed again, to know the reason for each value."""
    from protokube.cli.shared.completing import known_configuration
    from protokube.launch.revisions import in_force, numbers, read_revision

    found = in_force(store, cluster)
    if found is None:
        return None
    record, revision = found
    planned = Planned(record=record, revision=revision, base=read_revision(store, cluster, record.at_boot()))
    config = known_configuration(revision)
    base_config = known_configuration(planned.base) if planned.unfinished else config
    newest = max(numbers(store, cluster))
    return Former(planned=planned, config=config, base_config=base_config, newest=newest)


def keep_first(store: Store, former: Former | None, config: Config, texts: Texts) -> None:
    """Write the configuration of a new cluster; that of another one is written once its masters can take it."""
    from protokube.store.configuration import put_config

    if former is None:
        put_config(store, config, texts)


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

    known = (former.config or former.base_config) if former else None
    has = former is not None and bool(former.revision.master.components)  # if not, nothing has read its fields yet
    if known is not None and (found := refused_fields(known, config, kubernetes=kubernetes and has)):
        raise of(config.name, OtherFields(found))


def plan_change(paths: Paths, store: Store, former: Former, config: Config, wanted: MasterConfig) -> ChangePlan:
    """From the last configuration that all masters ran, which a rollout that goes on or has stopped leaves on some."""
    from protokube.launch.plan import plan
    from protokube.launch.revisions import with_versions

    base, present = with_versions(former.base), with_versions(former.revision)
    still = still_old(paths, store, former.planned.record, present, wanted)
    old = former.base_config or former.config or config  # the last: the values are not known, only what masters get
    found = plan(old, config, base, wanted, groups_of(wanted), still, present)
    if former.config and former.planned.unfinished and not found.values:
        found = replace(found, values=plan(former.config, config, present, wanted, (), still).values)
    if found.refused:
        raise of(config.name, OtherFields(found.refused))
    return found


def show_plan(
    plan: ChangePlan | None, former: Former | None, wanted: MasterConfig, output: str, *, dry_run: bool
) -> None:  # fmt: skip
    """On stdout if it is the result, else beside the progress."""
    from protokube.cli.render.change import change_tree, render_change

    if plan is None or former is None:
        lines = ["there is no such cluster yet: `up` would create it"] if dry_run else []
    elif plan.changes:
        lines = [
            *render_change(plan, *_named(former, wanted), shutil.get_terminal_size().columns),
            "",
            *unfinished(former),
        ]
    else:
        lines = ["the same configuration"] if dry_run else []
    if dry_run and output == "json":
        lines = [json.dumps(change_tree(plan, *_named(former, wanted)) if plan and former else None, indent=2)]
    for line in lines:
        click.echo(line, err=not dry_run)


def unfinished(former: Former) -> list[str]:
    """What the plan leaves out: it starts from the last revision that all masters ran."""
    lines = []
    if former.planned.unfinished:
        record, base = former.planned.record, former.base.number
        lines = [f"revision {record.wanted} is {record.state.value}: all masters ran {base} last, so this is all that "
                 f"differs from {base}", ""]  # fmt: skip
    if former.base_config is None:
        lines = [*lines, "the spec of before cannot be completed any more: values are not compared", ""]
    return lines


def _named(former: Former, wanted: MasterConfig) -> tuple[str, int, int]:
    """The cluster, and the numbers of the revision that is compared with and of the next one.

    That is the one in force where its rollout goes on.
    """
    from protokube.launch.revisions import digest_of, with_versions
    from protokube.launch.versions import stages

    first, *more = stages(with_versions(former.base), wanted)
    goes_on = former.planned.unfinished and digest_of(first) == former.revision.digest
    begins = former.newest if more else former.revision.number
    return former.base.master.cluster, former.base.number, begins if goes_on else former.newest + 1
