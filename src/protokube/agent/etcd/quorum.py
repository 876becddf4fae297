"""Read the member list from a quorum, without waiting for a quorum that is missing.

A member without a leader blocks a linearizable request until it times out, but answers a status request at once. So the
status is read first, and a cluster that is still forming does not block a round. A member that only starts accepts
connections and answers none: that costs one timeout for each member in a round, not one for each caller.
"""

from __future__ import annotations

from collections.abc import Sequence

from protokube.agent.round import Round
from protokube.errors import Refused, TryLater
from protokube.launch.machine import EtcdCluster
from protokube.members.start_values import Listed


def members(round_: Round, etcd: EtcdCluster) -> Sequence[Listed]:
    """Sorted by id. TryLater without a quorum."""
    if etcd.key in round_.without_quorum:
        raise round_.without_quorum[etcd.key]
    client = round_.edges.etcd[etcd.key]
    for each in etcd.members:
        try:
            if client.status(each.name).leader:
                return client.members()
        except (TryLater, Refused):
            continue
    round_.without_quorum[etcd.key] = TryLater(f"no member of {etcd.key} knows a leader")
    raise round_.without_quorum[etcd.key]
