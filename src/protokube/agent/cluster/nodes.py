"""Set labels, taints and the machine id on Nodes: each master on its own, the elected one on all others.

A kubelet may not set its own role, so that a node cannot make itself a master. The role comes from the provider, by the
machine's group; a Node has its machine's name.
"""

from __future__ import annotations

from dataclasses import dataclass

from protokube.addons.nodes import in_words, plan_node
from protokube.addons.value import Tree
from protokube.agent.cache import Confirmed, StepCache, is_fresh
from protokube.agent.edges import Kube
from protokube.agent.round import Round
from protokube.errors import TryLater
from protokube.kube.client import ApiError, NoAnswer
from protokube.providers.machines import Machine

STEP = "nodes"
EVERY = 60.0
MOST = 50
"""Per round: a thousand new nodes must not delay the agent's other steps."""
NODES = "/api/v1/nodes"
Marks = tuple[dict[str, dict[str, str]], dict[str, list[str]]]
"""Labels and taints, by group."""


@dataclass(slots=True)
class NodesCache(StepCache):
    own: Confirmed[tuple[dict[str, str] | None, list[str] | None]] | None = None
    """The labels and taints that our own Node was last seen with."""
    others: Confirmed[Marks] | None = None
    """When all other Nodes last had theirs."""
    failed: frozenset[str] = frozenset()
    """Nodes whose last patch failed."""


def sync_own(round_: Round, kube: Kube) -> None:
    edges, group = round_.edges, round_.edges.me.group
    wanted = (round_.wanted.node_labels.get(group), round_.wanted.node_taints.get(group))
    cache, now = edges.cache.of(NodesCache), edges.clock.monotonic()
    if is_fresh(cache.own, wanted, now, EVERY):
        return
    try:
        node = kube.get(f"{NODES}/{edges.me.name}")
    except ApiError as error:
        if error.status == 404:  # its kubelet has not registered it yet, or never will
            return
        raise
    if not _mark(round_, kube, node, edges.me):  # confirmed only as read: another writer may undo our patch
        cache.own = Confirmed(wanted, now)


def sync_others(round_: Round, kube: Kube) -> None:
    """A Node without a machine of ours of the same name is left alone."""
    edges, wanted = round_.edges, (round_.wanted.node_labels, round_.wanted.node_taints)
    cache, now = edges.cache.of(NodesCache), edges.clock.monotonic()
    if is_fresh(cache.others, wanted, now, EVERY):
        return
    machines = {each.name: each for each in edges.machines.list_machines() if each.id != edges.me.id}
    listed = kube.get(NODES).get("items") or []
    nodes = [each for each in listed if each["metadata"]["name"] in machines]
    tries, failed = 0, cache.failed
    # those that failed before come last: they must not use up the limit of every round
    for node in sorted(nodes, key=lambda each: each["metadata"]["name"] in failed):
        name = node["metadata"]["name"]
        marked = _try(round_, kube, node, machines[name])
        failed = failed | {name} if marked is None else failed - {name}
        tries += marked is not False
        if tries >= MOST:
            break  # the next round goes on
    cache.failed = failed
    if not tries:
        cache.others = Confirmed(wanted, now)


def _try(round_: Round, kube: Kube, node: Tree, machine: Machine) -> bool | None:
    """Whether the Node was patched; None if that failed, which is reported and does not block the others."""
    try:
        return _mark(round_, kube, node, machine)
    except NoAnswer:
        raise
    except TryLater as why:  # its kubelet changed it meanwhile, or a webhook does not answer
        round_.report.waiting(STEP, why, machine.name)
    except ApiError as why:
        round_.report.needs_a_person(STEP, why, machine.name)
    return None


def _mark(round_: Round, kube: Kube, node: Tree, machine: Machine) -> bool:
    labels, name = round_.wanted.node_labels.get(machine.group), node["metadata"]["name"]
    taints = round_.wanted.node_taints.get(machine.group, [])
    patch = plan_node(node, labels, taints, machine.id) if labels else None
    if patch is None:
        return False
    kube.merge(f"{NODES}/{name}", patch)
    round_.report.done(STEP, in_words(patch), name)
    return True
