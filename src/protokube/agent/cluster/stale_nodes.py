"""The elected master deletes the Nodes of machines that no longer exist, if there is no doubt about it.

A kubelet registers its Node and nothing ever deletes it: `status` would wait for a replaced machine for ever. A Node is
deleted only if the provider omits its machine from several consecutive complete lists, for a minute; if the Node is not
Ready, so that no kubelet runs under its name; and if it carries the machine id that we set, so that it is ours.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from protokube.addons.nodes import MACHINE
from protokube.addons.value import Tree
from protokube.agent.cache import Missed, StepCache, is_recent
from protokube.agent.edges import Kube
from protokube.agent.round import Round
from protokube.kube.client import ApiError
from protokube.providers.machines import Machine

STEP = "nodes"
NODES = "/api/v1/nodes"
EVERY = 60.0
LISTS, SECONDS = 4, 60.0
"""How many consecutive complete lists must lack a machine, and for how long, before its Node is deleted."""
NOT_READY = ("False", "Unknown")


@dataclass(slots=True)
class StaleNodesCache(StepCache):
    missed: dict[str, Missed] = field(default_factory=dict)
    """By the uid of a Node: how long its machine has been in no list. If lost, the count restarts at zero."""
    settled: float | None = None
    """When every Node last had its machine."""


@dataclass(frozen=True, slots=True)
class Suspect:
    """A Node whose machine is in no list."""

    name: str
    uid: str
    machine: str


def suspects(nodes: Iterable[Tree], machines: Collection[Machine], me: str) -> list[Suspect]:
    """Nodes without a machine; none if the list lacks this machine and so cannot be complete."""
    ids, names = {each.id for each in machines}, {each.name for each in machines}
    if me not in ids:
        return []
    found = []
    for node in nodes:
        metadata = node.get("metadata") or {}
        name, uid = str(metadata.get("name") or ""), str(metadata.get("uid") or "")
        machine = str((metadata.get("annotations") or {}).get(MACHINE) or "")
        if machine and name and uid and machine not in ids and name not in names and _is_not_ready(node):
            found.append(Suspect(name, uid, machine))
    return found


def _is_not_ready(node: Tree) -> bool:
    """The Ready condition is False or Unknown; a Node without the condition may be new."""
    conditions = (node.get("status") or {}).get("conditions") or []
    statuses = [each.get("status") for each in conditions if each.get("type") == "Ready"]
    return len(statuses) == 1 and statuses[0] in NOT_READY


def counted(before: Mapping[str, Missed], found: Iterable[Suspect], now: float) -> dict[str, Missed]:
    """How often and since when each machine was missing, by the Node's uid; others restart at zero."""
    after = {}
    for each in found:
        known = before.get(each.uid) or Missed(0, now)
        after[each.uid] = Missed(known.times + 1, known.since)
    return after


def is_gone(missed: Missed, now: float) -> bool:
    return missed.times >= LISTS and now - missed.since >= SECONDS


def sync(round_: Round, kube: Kube) -> None:
    edges, cache = round_.edges, round_.edges.cache.of(StaleNodesCache)
    now = edges.clock.monotonic()
    if is_recent(cache.settled, now, EVERY):
        return
    before, cache.missed = cache.missed, {}  # a failed list restarts the counts
    nodes = kube.get(NODES).get("items") or []
    machines = edges.machines.list_machines()  # after the Nodes, so that it has the machine of a new Node
    found = suspects(nodes, machines, edges.me.id)
    missed = counted(before, found, now)
    cache.missed = missed
    for each in found:
        if is_gone(missed[each.uid], now):
            _remove(kube, each)
            round_.report.done(STEP, f"deleted: its machine {each.machine} is gone", each.name)
        else:
            text = f"its machine {each.machine} is in no list; its Node is deleted if that stays so"
            round_.waiting(STEP, each.name, text)
    if not found:
        cache.settled = now


def _remove(kube: Kube, node: Suspect) -> None:
    try:
        kube.delete(f"{NODES}/{node.name}", uid=node.uid)
    except ApiError as error:
        if error.status != 404:  # deleted already
            raise


def forget(round_: Round) -> None:
    """Restart the counts: a master that is elected later counts for itself."""
    round_.edges.cache.of(StaleNodesCache).missed = {}
