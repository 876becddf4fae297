"""The cluster itself, once its API answers: every master marks its own Node; the elected one does what is for all.

Nothing here is needed for bring-up, and nothing rests on what we remember: what is not done in this round is done in
the next, by whoever is elected then.
"""

from __future__ import annotations

from protokube.agent.cluster import addons, approvals, names_lease, nodes, stale_nodes
from protokube.agent.world import Turn
from protokube.errors import Refused, TryLater
from protokube.kube.client import NoAnswer

STEP = "cluster"


def sync(turn: Turn) -> None:
    world = turn.world
    if world.kube is None or not turn.wanted.components or not is_serving(turn):
        _forget(turn)
        return
    works = [nodes.sync_own]
    if world.presence.elected():
        works += [names_lease.sync, addons.sync, approvals.sync, nodes.sync_others, stale_nodes.sync]
    else:
        _forget(turn)
    for work in works:
        try:
            work(turn, world.kube)
        except NoAnswer as why:
            turn.report.waiting(STEP, why)
            return
        except TryLater as why:  # one that waits does not keep the others waiting
            turn.report.waiting(STEP, why)
        except Refused as why:
            turn.report.needs_a_person(STEP, why)


def _forget(turn: Turn) -> None:
    addons.forget(turn)
    stale_nodes.forget(turn)


def is_serving(turn: Turn) -> bool:
    """Whether the API server of this machine was ready a moment ago."""
    return turn.world.me.id in (turn.world.presence.serving() or ())
