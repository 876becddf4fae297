"""The agent's background threads; a thread that fails or hangs is reported in every round until it recovers.

Nothing else has to stop then: results of a thread count only while they are fresh. Without presence no master is
elected, without a readiness check the API server does not count as ready, without a comparison no older copy is judged.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from protokube.agent import publish
from protokube.agent.controlplane import apiserver
from protokube.agent.etcd import agreement, presence, spacewatch, stalled_peers
from protokube.agent.round import Round
from protokube.host.supervised import Supervised, Workers

STEP = "threads"


def workers(
    leases: presence.LeasePresence,
    agreements: agreement.AgreementWatch,
    space: spacewatch.SpaceWatch,
    peers: stalled_peers.StalledPeers,
    api: apiserver.ApiWatch | None,
    cloud: Callable[[Callable[[], None]], None] | None,
    wake: Callable[[], None],
    publisher: publish.Publisher | None = None,
) -> Workers:
    """Each with its name and time limit. Cheap and urgent ones retry soon after any failure."""
    made = partial(Supervised, changed=wake)
    beats = made("presence", leases.work, silent_after=presence.HANGS, longest=presence.TTL)
    found = [
        beats,
        made("agreement", agreements.work, silent_after=agreement.HANGS, first=agreement.SUSPICIOUS),
        made("space", space.work, silent_after=spacewatch.HANGS),
        made("peers", peers.work, silent_after=stalled_peers.HANGS),
    ]
    if api is not None:
        api.on_change(beats.soon)  # the other masters learn it at once
        found.append(made("api server", api.work, silent_after=apiserver.HANGS, longest=presence.TTL))
    if cloud is not None:
        found.append(made("cloud", lambda: _watch(cloud, wake)))  # blocks for hours where nothing changes
    if publisher is not None:
        found.append(made("publisher", publisher.work, silent_after=publish.HANGS))
    return Workers(found)


def _watch(cloud: Callable[[Callable[[], None]], None], wake: Callable[[], None]) -> float:
    cloud(wake)
    raise RuntimeError("the watch of the provider came to an end")


def sync(round_: Round) -> None:
    for each in round_.edges.workers.troubles():
        if each.hangs:
            round_.waiting(STEP, each.name, each.text)
        else:
            round_.report.broken(STEP, each.text)
    if why := round_.edges.unpublished():
        round_.waiting(publish.STEP, "status", why)
