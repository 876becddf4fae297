"""The member list, from a quorum, and without waiting for one that is not there.

A member without a leader keeps a question that needs a quorum until the question times out; whether it has a leader it
says at once. So that is asked first, and a round is not held up by a cluster that is only just forming.
"""

from __future__ import annotations

from collections.abc import Sequence

from protokube.agent.round import Round
from protokube.agent.wanted import EtcdCluster
from protokube.errors import Refused, TryLater
from protokube.members.start import Listed


def members(round_: Round, etcd: EtcdCluster) -> Sequence[Listed]:
    """Sorted by id. TryLater without a quorum."""
    client = round_.edges.etcd[etcd.key]
    for each in etcd.members:
        try:
            if client.status(each.name).leader:
                return client.members()
        except (TryLater, Refused):
            continue
    raise TryLater(f"no member of {etcd.key} knows a leader")
