"""From what the cloud makes hosts: changed together with the revision in force, by one command at a time.

A host whose agent cannot take the revision in force ends itself, and the cloud makes another one from the template of
its group. Were that of the former kind, hosts would end again and again. So the template comes first, the revision
second, and a command that planned on another revision changes neither.
"""

from __future__ import annotations

import fcntl
import json
import os
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from protokube.errors import Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from protokube.launch.machine import MasterConfig
    from protokube.local.base.paths import Paths
    from protokube.providers.groups import GroupProvider
    from protokube.store import Store

KUBELETS_FOLLOW = "; kubelets follow"
"""In the note of a revision: a later stage adds kubelets, so an interrupted `up` goes on with them."""
LAUNCH = "/etc/protokube/agent.json"


def follows(stage: MasterConfig, wanted: MasterConfig) -> str:
    """What the note of a stage says about the stages after it."""
    return KUBELETS_FOLLOW if wanted.kubelet_kubeconfig and not stage.kubelet_kubeconfig else ""


def kubelets_follow(note: str) -> bool:
    """Whether a revision with this note says so."""
    return note.endswith(KUBELETS_FOLLOW)


@contextmanager
def one_at_a_time(paths: Paths) -> Iterator[None]:
    """Short: held while templates and the record are written, never while something is waited for."""
    from protokube.local.base import private

    handle = private.open_file(paths.root / "change.lock", os.O_RDWR)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def keep_hosts(paths: Paths, store: Store, wanted: MasterConfig, make: Callable[[MasterConfig], None]) -> None:
    """Have later hosts made for this revision. Refused if another one was put in force meanwhile."""
    from protokube.launch.revisions import read_rollout

    with one_at_a_time(paths):
        record = read_rollout(store, wanted.cluster)
        if record is not None and record.wanted != wanted.revision:
            raise Refused(
                f"another command put revision {record.wanted} in force while this one ran",
                saw=f"this one has revision {wanted.revision}",
                hint="run it again; `protokube rollout status` shows what goes on",
            )
        make(wanted)


def without_kubelets(groups: GroupProvider) -> Callable[[MasterConfig], None]:
    """Make hosts of these groups without a container runtime again, to undo an addition that is unfinished."""

    def make(wanted: MasterConfig) -> None:
        from protokube.local.node.kubehost import without_kubelet

        if wanted.kubelet_kubeconfig:
            raise Refused("an earlier revision cannot bring kubelets back", hint="`protokube up --kubelet` adds them")
        for each in groups.list_groups():
            groups.ensure(replace(each, template=relaunched(without_kubelet(each.template), wanted)))

    return make


def relaunched(template: Mapping[str, Any], wanted: MasterConfig) -> dict[str, Any]:
    """The same template with other launch data."""
    from protokube.launch.boot import LaunchDocument

    document = LaunchDocument.from_tree(json.loads(template["files"][LAUNCH]), LAUNCH)
    text = json.dumps(replace(document, master=wanted).to_tree())
    return {**template, "files": {**template["files"], LAUNCH: text}}
