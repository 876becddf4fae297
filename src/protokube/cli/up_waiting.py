"""What `protokube up` waits for, saying meanwhile what the agents wait for."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

from protokube.cli.progress import Progress
from protokube.errors import Refused, TryLater

if TYPE_CHECKING:
    from protokube.agent.wanted import MasterConfig
    from protokube.local.paths import Paths
    from protokube.local.view_values import ClusterView
    from protokube.providers.clients.local import LocalClient
    from protokube.store import Store


def await_quorum(
    progress: Progress, paths: Paths, admin: LocalClient, store: Store, wanted: MasterConfig, timeout: float
) -> None:
    """Until the record is closed in the store and on every volume's mark."""
    from protokube.local.bringup import is_closed
    from protokube.members.generation import FORMED

    end = time.monotonic() + timeout
    while True:
        open_ends = [each["id"] for each in admin.call("volumes") if each["mark"] != FORMED]
        if not open_ends and is_closed(store, wanted):
            return
        if time.monotonic() > end:
            raise TryLater(
                f"no quorum after {timeout:.0f} s", saw="; ".join(waits(paths)) or "the agents say nothing",
                hint="`protokube status` shows what is waited for",
            )  # fmt: skip
        progress.say((waits(paths) or ["quorum"])[0])
        time.sleep(0.05)


def waits(paths: Paths) -> list[str]:
    """What the agents say that they wait for."""
    found = []
    for file in sorted(paths.hosts.glob("*/run/protokube/status.json")):
        try:
            told = json.loads(file.read_text())
        except (OSError, ValueError):
            continue
        notes = (*told["report"]["needsAPerson"], *told["report"]["waiting"])
        found += [f"{told['machine']['name']}: {note.get('about') or note['step']}: {note['text']}" for note in notes]
    return found


def await_ready(progress: Progress, paths: Paths, timeout: float) -> ClusterView:
    from protokube.local.view import Looker

    end = time.monotonic() + timeout
    with Looker(paths) as looker:
        while not (view := looker.look()).ready:
            if time.monotonic() > end:
                raise TryLater(
                    f"not ready after {timeout:.0f} s", saw="; ".join(view.lacks), hint="`protokube status` shows why"
                )
            progress.say((view.lacks or ("all members healthy",))[0])
            time.sleep(0.05)
    return view


def await_nodes(progress: Progress, paths: Paths, count: int, timeout: float) -> int:
    """Until the kubelet of each host is a node that takes pods."""
    from protokube.local.client_files import kube_api

    api, end = kube_api(paths, patience=5.0), time.monotonic() + timeout
    assert api is not None
    ready = 0
    while ready < count:
        try:
            nodes = api.get("/api/v1/nodes")["items"]
            ready = sum(is_ready(each) for each in nodes)
            saw = f"{ready} of {count} nodes ready"
        except (TryLater, Refused) as why:
            saw = why.message
        if time.monotonic() > end:
            raise TryLater(f"not all nodes are ready after {timeout:.0f} s", saw=saw, hint="kubectl describe nodes")
        progress.say(saw)
        time.sleep(0.2)
    return ready


def is_ready(node: dict[str, Any]) -> bool:
    return any((each["type"], each["status"]) == ("Ready", "True") for each in node["status"].get("conditions", ()))
