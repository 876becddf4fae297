"""Approve what kubelets ask to serve with; Kubernetes leaves that to whoever knows the machines."""

from __future__ import annotations

import datetime as dt
import itertools
from collections.abc import Iterator

from protokube.addons.approve import GROUP, PATH, SIGNER, approval, is_open, why_not
from protokube.addons.value import Tree
from protokube.agent.world import Kube, Turn
from protokube.kube.client import ApiError

STEP = "approvals"
MOST = 50
"""In one round: a flood of requests must not keep the agent from its disks."""
PAGE, MOST_PAGES = "500", 20


def sync(turn: Turn, kube: Kube) -> None:
    """One that is not right is left alone and told, not denied: a Node may not have said all its addresses yet."""
    waiting = list(itertools.islice((each for each in listed(kube) if is_open(each)), MOST))
    if not waiting:
        return
    nodes = {each["metadata"]["name"]: each for each in kube.get("/api/v1/nodes").get("items") or []}
    now = dt.datetime.fromtimestamp(turn.world.clock.now(), dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    for request in waiting:
        name = request["metadata"]["name"]
        who = request["spec"].get("username", "")
        if reason := why_not(request, nodes, reserved(turn)):
            turn.waiting(STEP, name, f"not approved for {who}: {reason}")
        else:
            _approve(turn, kube, request, now)


def _approve(turn: Turn, kube: Kube, request: Tree, now: str) -> None:
    name, who = request["metadata"]["name"], request["spec"]["username"]
    try:
        kube.merge(f"{PATH}/{name}/approval", approval(request, now))
    except ApiError as why:  # the others can still be approved
        turn.report.needs_a_person(STEP, why, name)
    else:
        turn.report.done(STEP, f"approved for {who}", name)


def listed(kube: Kube) -> Iterator[Tree]:
    """Page by page: decided ones stay in the list for hours, and must not hide the others."""
    query = {"fieldSelector": f"spec.signerName={SIGNER}", "limit": PAGE}
    for _ in range(MOST_PAGES):
        page = kube.get(PATH, **query)
        yield from page.get("items") or ()
        query["continue"] = (page.get("metadata") or {}).get("continue", "")
        if not query["continue"]:
            return


def reserved(turn: Turn) -> set[str]:
    """Names that servers of the control plane are known by, and no Node."""
    servers = [each for each in turn.wanted.certificates.values() if "server auth" in each["usages"]]
    return {name for told in servers if GROUP not in told["organizations"] for name in told["names"]}
