"""The DNS names of the API: only the elected master writes them, with the addresses of live masters that serve it.

The internal name gets their internal addresses. The public name gets their external ones, and the internal address of
each master that has no other. A name that is both gets the internal ones: the cluster's own machines depend on it.
Without a quorum there is no elected master, and nothing is written. The last address is never removed. Only addresses
of live masters are written: a machine that the provider declared dead does not count, even if it renews its lease.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from protokube.agent.cache import Confirmed, StepCache, is_fresh
from protokube.agent.edges import MasterAddresses
from protokube.agent.etcd import generations, space
from protokube.agent.etcd.agreement import out_of_service
from protokube.agent.round import Round
from protokube.errors import Refused
from protokube.launch.machine import MasterConfig
from protokube.records.api import plan_api
from protokube.records.names import normalise

STEP = "api"
READ_EVERY = 300.0


@dataclass(slots=True)
class ApiCache(StepCache):
    published: Confirmed[tuple[tuple[str, MasterAddresses], ...]] | None = None
    """Machines and addresses that were last published, while we were elected."""
    names: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """The addresses of each name, as they were then."""


def sync(round_: Round) -> None:
    edges, cache = round_.edges, round_.edges.cache.of(ApiCache)
    if edges.dns is None or not edges.zone_mode or not round_.wanted.etcd:
        return
    live = edges.presence.addresses()
    if live is None:
        why = "etcd is out of space and grants no leases" if space.is_full(round_) else "etcd has no quorum"
        round_.waiting(STEP, "", f"{why}, so nobody writes the names of the API")
        return
    if not edges.presence.elected():
        cache.published, cache.names = None, {}  # another elected master may write other addresses
        return
    generation = generations.recent(round_, round_.wanted.etcd[0].key)
    if generation is None or generation.open:
        round_.waiting(STEP, "", "the creation of the cluster is not closed yet")
        return
    if round_.wanted.components:
        serving = edges.presence.serving() or ()
        live = {machine: addresses for machine, addresses in live.items() if machine in serving}
        if not live:
            round_.waiting(STEP, "", "no API server is ready, so their names stay as they are")
            return
    wrong = out_of_service(round_)
    claimed = tuple(
        (machine, live[machine]) for machine in sorted(live) if live[machine].internal and machine not in wrong
    )
    now = edges.clock.monotonic()
    if is_fresh(cache.published, claimed, now, READ_EVERY):
        return
    known = living(round_)
    masters = [addresses for machine, addresses in claimed if machine in known]
    desired = addresses_by_name(round_.wanted, masters)
    observed = edges.dns.read(round_.wanted.api_names)
    plan = plan_api(observed, desired)
    if plan.changes:
        edges.dns.apply(plan.changes)
        for change in plan.changes:
            round_.report.done(STEP, str(change))
    cache.published = Confirmed(claimed, now)
    stays = {each.name: each.values for each in observed if each.type in ("A", "AAAA")}  # if no master lives
    cache.names = {name: tuple(sorted(found)) or stays.get(name, ()) for name, found in desired.items()}


def addresses_by_name(wanted: MasterConfig, masters: Sequence[MasterAddresses]) -> dict[str, list[str]]:
    internal, public = normalise(wanted.api_internal_name), normalise(wanted.api_public_name)
    # in this order: where both names are equal, the internal addresses replace the external ones
    return {public: [each.external for each in masters]} | {internal: [each.internal for each in masters]}


def living(round_: Round) -> set[str]:
    """The machines that the provider has not declared dead. An elected master that is not among them retires."""
    edges = round_.edges
    known = {each.id for each in edges.machines.list_machines()}
    if edges.me.id not in known:
        edges.presence.retire()
        raise Refused(
            f"the provider has declared {edges.me.name} dead: it writes nothing any more", hint="terminate the machine"
        )
    return known
