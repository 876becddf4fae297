"""The steps that need the Kubernetes API: every master labels its own Node; the elected one does the cluster-wide work.

Bring-up needs none of this, and nothing depends on cached state: what this round does not finish, the next one does, on
the master that is elected then.
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
        except TryLater as why:  # one that waits does not block the others
            round_.report.waiting(STEP, why)
        except Refused as why:
            round_.report.needs_a_person(STEP, why)


def _forget(round_: Round) -> None:
    addons.forget(round_)
    stale_nodes.forget(round_)


def is_serving(round_: Round) -> bool:
    """Whether the API server of this machine was ready a moment ago."""
    return round_.edges.me.id in (round_.edges.presence.serving() or ())
