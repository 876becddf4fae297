"""The names of the API: the elected master publishes who is alive and serves it, and nobody else does.

Without a quorum nobody is elected and nobody writes; the last address is never removed, and no address is ever written
that no living master owns: a machine that was declared dead and woke up again does not count, whatever its lease says.
"""

from __future__ import annotations

from dataclasses import dataclass

from protokube.agent.cache import Confirmed, StepCache, is_fresh
from protokube.agent.etcd import generations, space
from protokube.agent.etcd.agreement import out_of_service
from protokube.agent.world import Turn
from protokube.errors import Refused
from protokube.records.api import plan_api

STEP = "api"
READ_EVERY = 300.0


@dataclass(slots=True)
class ApiCache(StepCache):
    published: Confirmed[tuple[tuple[str, str], ...]] | None = None
    """Machines and addresses that the names were last seen to have, while we were elected."""


def sync(turn: Turn) -> None:
    world, cache = turn.world, turn.world.memory.of(ApiCache)
    if world.dns is None or not world.zone_mode or not turn.wanted.etcd:
        return
    live = world.presence.live()
    if live is None:
        why = "etcd is out of space and grants no leases" if space.is_full(turn) else "etcd has no quorum"
        turn.waiting(STEP, "", f"{why}, so nobody writes the names of the API")
        return
    if not world.presence.elected():
        cache.published = None  # whoever is elected writes what we then do not know
        return
    generation = generations.recent(turn, turn.wanted.etcd[0].key)
    if generation is None or generation.open:
        turn.waiting(STEP, "", "the creation of the cluster is not closed yet")
        return
    if turn.wanted.components:
        serving = world.presence.serving() or ()
        live = {machine: address for machine, address in live.items() if machine in serving}
        if not live:
            turn.waiting(STEP, "", "no API server is ready, so their names stay as they are")
            return
    wrong = out_of_service(turn)
    claimed = tuple(sorted((machine, address) for machine, address in live.items() if address and machine not in wrong))
    now = world.clock.monotonic()
    if is_fresh(cache.published, claimed, now, READ_EVERY):
        return
    known = living(turn)
    addresses = {address for machine, address in claimed if machine in known}
    plan = plan_api(world.dns.read(turn.wanted.api_names), turn.wanted.api_names, addresses)
    if plan.changes:
        world.dns.apply(plan.changes)
        for change in plan.changes:
            turn.report.done(STEP, str(change))
    cache.published = Confirmed(claimed, now)


def living(turn: Turn) -> set[str]:
    """The machines that the provider has not declared dead. An elected master that is not among them gives up."""
    world = turn.world
    known = {each.id for each in world.machines.list_machines()}
    if world.me.id not in known:
        world.presence.retire()
        raise Refused(
            f"the provider has declared {world.me.name} dead: it writes nothing any more", hint="terminate the machine"
        )
    return known
