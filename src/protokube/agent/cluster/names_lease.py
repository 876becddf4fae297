"""A Lease that claims the DNS names of the API for the agents, renewed for as long as the agents write them.

A dns-controller leaves these names alone while the Lease is renewed, and takes them over once it is not. It detects
renewals with its own clock, never by comparing clocks, so the time written here only has to change. The Lease also
lists the names of etcd members, which are never taken over: a foreign record would keep the member from starting. And
it lists the external addresses of masters, which the controller must not remove while their API servers run.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from protokube.addons.value import Tree
from protokube.agent.cache import Confirmed, StepCache, is_fresh
from protokube.agent.edges import Kube
from protokube.agent.round import Round
from protokube.records.api import LEASE, LEASE_EXTERNAL, LEASE_MEMBERS, LEASE_NAMES, LEASE_SECONDS

PATH = f"/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/{LEASE}"
EVERY = LEASE_SECONDS / 4
MANAGER = "protokube"


@dataclass(slots=True)
class NamesLeaseCache(StepCache):
    renewed: Confirmed[tuple[tuple[str, ...], ...]] | None = None
    """The names of the API and of etcd members, and the addresses, that the Lease was last renewed with."""


def sync(round_: Round, kube: Kube) -> None:
    edges, names = round_.edges, round_.wanted.api_names
    members = tuple(member.dns_name for etcd in round_.wanted.etcd for member in etcd.members)
    if edges.dns is None or not edges.zone_mode or not names:
        return
    masters = (edges.presence.addresses() or {}).values()
    external = tuple(sorted(f"{each.external}={each.internal}" for each in masters if each.external != each.internal))
    cache, now = edges.cache.of(NamesLeaseCache), edges.clock.monotonic()
    if is_fresh(cache.renewed, (names, members, external), now, EVERY):
        return
    wanted = lease(names, edges.me.name, edges.clock.now(), members=members, external=external)
    kube.apply(PATH, wanted, manager=MANAGER)
    cache.renewed = Confirmed((names, members, external), now)


def lease(
    names: tuple[str, ...], holder: str, now: float, *, members: tuple[str, ...] = (), external: tuple[str, ...] = ()
) -> Tree:
    annotations = {LEASE_NAMES: ",".join(sorted(names)), LEASE_MEMBERS: ",".join(sorted(members))}
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {
            "name": LEASE,
            "namespace": "kube-system",
            "annotations": annotations | ({LEASE_EXTERNAL: ",".join(external)} if external else {}),
        },
        "spec": {
            "holderIdentity": holder,
            "leaseDurationSeconds": LEASE_SECONDS,
            "renewTime": datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        },
    }
