"""The threads beside the rounds, and what they do not get done: reported in every round until they do.

Nothing has to be stopped for it: what they find out is believed only while it is fresh. Without presence nobody is
elected, without a look at the API server it does not count as ready, without a comparison no older copy is judged.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from protokube.agent.controlplane import apiserver
from protokube.agent.etcd import agreement, presence, spacewatch
from protokube.agent.round import Round
from protokube.host.supervised import Supervised, Workers

STEP = "threads"


def workers(
    leases: presence.LeasePresence,
    agreements: agreement.AgreementWatch,
    space: spacewatch.SpaceWatch,
    api: apiserver.ApiWatch | None,
    cloud: Callable[[Callable[[], None]], None] | None,
    wake: Callable[[], None],
) -> Workers:
    """Each by its name, with how long it may take. What is cheap and urgent is tried again soon, whatever happens."""
    made = partial(Supervised, changed=wake)
    found = [
        made("presence", leases.work, silent_after=presence.HANGS, longest=presence.TTL),
        made("agreement", agreements.work, silent_after=agreement.HANGS, first=agreement.SUSPICIOUS),
        made("space", space.work, silent_after=spacewatch.HANGS),
    ]
    if api is not None:
        found.append(made("api server", api.work, silent_after=apiserver.HANGS, longest=presence.TTL))
    if cloud is not None:
        found.append(made("cloud", lambda: _watch(cloud, wake)))  # it waits for hours where nothing changes
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
