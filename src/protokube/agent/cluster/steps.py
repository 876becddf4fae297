"""The cluster itself, once its API answers: every master marks its own Node; the elected one does what is for all.

Nothing here is needed for bring-up, and nothing rests on what we remember: what is not done in this round is done in
the next, by whoever is elected then.
"""

from __future__ import annotations

from protokube.agent.cluster import addons, approvals, names_lease, nodes, stale_nodes
from protokube.agent.round import Round
from protokube.errors import Refused, TryLater
from protokube.kube.client import NoAnswer

STEP = "cluster"


def sync(round_: Round) -> None:
    edges = round_.edges
    if edges.kube is None or not round_.wanted.components or not is_serving(round_):
        _forget(round_)
        return
    works = [nodes.sync_own]
    if edges.presence.elected():
        works += [names_lease.sync, addons.sync, approvals.sync, nodes.sync_others, stale_nodes.sync]
    else:
        _forget(round_)
    for work in works:
        try:
            work(round_, edges.kube)
        except NoAnswer as why:
            round_.report.waiting(STEP, why)
            return
        except TryLater as why:  # one that waits does not keep the others waiting
            round_.report.waiting(STEP, why)
        except Refused as why:
            round_.report.needs_a_person(STEP, why)


def _forget(round_: Round) -> None:
    addons.forget(round_)
    stale_nodes.forget(round_)


def is_serving(round_: Round) -> bool:
    """Whether the API server of this machine was ready a moment ago."""
    return round_.edges.me.id in (round_.edges.presence.serving() or ())
