"""Wait for quorum, readiness and nodes in `protokube up`, and show what the agents wait for."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

from protokube.cli.shared.cluster_view import waits
from protokube.cli.shared.progress import Progress
from protokube.errors import ExitCode, Refused, TryLater

if TYPE_CHECKING:
    from protokube.launch.machine import MasterConfig
    from protokube.local.base.paths import Paths
    from protokube.providers.clients.local import LocalClient
    from protokube.store import Store
    from protokube.view.cluster import ClusterView

ENOUGH = 15.0
"""Seconds after which a request for a person ends the wait. Longer than for `status --wait`: after a power loss, a
member may request one until the others are back."""


@contextmanager
def going_on(progress: Progress, paths: Paths) -> Iterator[None]:
    """Ctrl-C ends the command that waits, and not what it waits for: say so."""
    try:
        yield
    except KeyboardInterrupt:
        wait = f"`protokube status --wait --cluster {paths.cluster}`"
        progress.note(f"{paths.cluster} goes on coming up by itself: {wait} waits for it")
        raise


def await_quorum(
    progress: Progress, paths: Paths, admin: LocalClient, store: Store, wanted: MasterConfig, timeout: float
) -> None:
    """Wait until the generation record is closed in the store, and every volume is marked as formed."""
    from protokube.launch.prepare import is_closed
    from protokube.members.generation import FORMED

    end = time.monotonic() + timeout
    with going_on(progress, paths):
        while True:
            open_ends = [each["id"] for each in admin.call("volumes") if each["mark"] != FORMED]
            if not open_ends and is_closed(store, wanted):
                return
            if time.monotonic() > end:
                needed = waits(paths, "needsAPerson")
                raise (Refused if needed else TryLater)(
                    f"no quorum after {timeout:.0f} s",
                    saw="; ".join(needed or waits(paths)) or "the agents say nothing",
                    hint="`protokube status` shows what is waited for",
                )
            progress.say((waits(paths) or ["quorum"])[0])
            time.sleep(0.05)


def await_ready(progress: Progress, paths: Paths, timeout: float) -> ClusterView:
    """Wait until the cluster is ready, or serves but needs a person. Refused if only a person can make it ready."""
    from protokube.cli.render.status import outcome
    from protokube.cli.status import PATIENCE
    from protokube.local.view.look import Looker
    from protokube.view.cluster import Standing

    end = time.monotonic() + timeout
    standing = Standing()
    with going_on(progress, paths), Looker(paths) as looker:
        while outcome(view := looker.look()) is not ExitCode.OK:
            stood = standing.feed(view)
            if view.ready and stood >= PATIENCE:
                return view  # it serves but needs a person; `up` reports that at its end
            if stood >= ENOUGH or (view.person and time.monotonic() > end):
                raise for_a_person(view)
            if time.monotonic() > end:
                raise TryLater(
                    f"not ready after {timeout:.0f} s", saw="; ".join(view.lacks), hint="`protokube status` shows why"
                )
            progress.say((view.lacks or ("all members healthy",))[0])
            time.sleep(0.05)
    return view


def for_a_person(view: ClusterView) -> Refused:
    """The error for a cluster that needs a person."""
    notes = [each.note for each in view.person]
    state = "it serves, and needs a person" if view.ready else "it needs a person"
    return Refused(
        f"{state}: {notes[0].text}",
        saw="; ".join(dict.fromkeys(note.text for note in notes[1:]) or view.lacks[:1]),
        hint=notes[0].hint or "`protokube status` shows why",
    )


def await_nodes(progress: Progress, paths: Paths, admin: LocalClient, timeout: float, *, at_least: int = 1) -> int:
    """Wait until each host that runs now is a Ready node. Nodes of former hosts still count as Ready for a while."""
    from protokube.local.base.client_files import kube_api

    api, end = kube_api(paths, patience=5.0), time.monotonic() + timeout
    assert api is not None
    with going_on(progress, paths), closing(api):
        while True:
            hosts = {each["name"] for each in admin.call("hosts") if each["running"] and not each["dead"]}
            try:
                nodes = api.get("/api/v1/nodes")["items"]
                ready = hosts & {each["metadata"]["name"] for each in nodes if is_ready(each)}
                saw = f"{len(ready)} of {max(len(hosts), at_least)} nodes ready"
            except (TryLater, Refused) as why:
                ready, saw = set(), why.message
            if len(hosts) >= at_least and ready == hosts:
                return len(hosts)
            if time.monotonic() > end:
                raise TryLater(f"not all nodes are ready after {timeout:.0f} s", saw=saw, hint="kubectl describe nodes")
            progress.say(saw)
            time.sleep(0.2)


def is_ready(node: dict[str, Any]) -> bool:
    return any((each["type"], each["status"]) == ("Ready", "True") for each in node["status"].get("conditions", ()))
