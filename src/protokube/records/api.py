"""The DNS names of the API: the internal name holds exactly the internal addresses of the live masters, the public name
their external ones.

There is no placeholder before the first master, and the last address is never removed: while no master is live, the
last known address is still the best answer.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from protokube.records import Change, Record
from protokube.records.names import address_type, make_record, normalise, normalise_address

TTL = 10
FAMILIES = ("A", "AAAA")

LEASE = "protokube-api-names"
"""A Lease in kube-system: while the agents renew it, they own the names in it, and no controller writes them."""
LEASE_NAMES = "protokube.io/names"
"""The annotation with those names, separated by commas."""
LEASE_MEMBERS = "protokube.io/members"
"""The annotation with the names of etcd members: the agents own them for ever, even if the Lease is not renewed."""
LEASE_EXTERNAL = "protokube.io/external-addresses"
"""The annotation with the external addresses of live masters, each as EXTERNAL=INTERNAL, separated by commas: not every
Node reports its external address."""
LEASE_SECONDS = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiPlan:
    changes: tuple[Change, ...]
    why: str
    """The decision in one sentence, also if nothing changes."""


def plan_api(observed: Sequence[Record], live: Mapping[str, Collection[str]]) -> ApiPlan:
    """Point each name at its addresses of the live masters, each address family in its own record."""
    wanted = {normalise(name): {normalise_address(address) for address in live[name]} for name in sorted(live)}
    addresses = sorted({address for of_name in wanted.values() for address in of_name})
    if not addresses:
        return ApiPlan(changes=(), why="no master is known to live; the last known addresses stay")
    seen = {record.key: record for record in observed}
    changes: list[Change] = []
    for name, of_name in sorted(wanted.items()):
        for family in FAMILIES if of_name else ():
            of_family = sorted(address for address in of_name if address_type(address) == family)
            before = seen.get((name, family))
            after = make_record(name, family, of_family, TTL) if of_family else None
            if before != after:
                changes.append(Change(before=before, after=after, why=_why(before, after, wanted)))
    return ApiPlan(changes=tuple(changes), why=f"live masters: {', '.join(addresses)}")


def _why(before: Record | None, after: Record | None, wanted: Mapping[str, Collection[str]]) -> str:
    was, now = set(before.values if before else ()), set(after.values if after else ())
    other_name = {address: name for name, addresses in wanted.items() for address in addresses}
    reasons = [
        f"{address} is only for {other_name[address]}" if address in other_name else f"{address} no longer lives"
        for address in sorted(was - now)
    ]
    reasons += [f"{address} lives" for address in sorted(now - was)]
    return ", ".join(reasons) or f"TTL {TTL}"
