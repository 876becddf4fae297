"""The DNS names of the API: they hold exactly the addresses of the live masters.

There is no placeholder before the first master, and the last address is never removed: while no master is live, the
last known address is still the best answer.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
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
LEASE_SECONDS = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiPlan:
    changes: tuple[Change, ...]
    why: str
    """The decision in one sentence, also if nothing changes."""


def plan_api(observed: Sequence[Record], names: Collection[str], live: Collection[str]) -> ApiPlan:
    """Point every name at the addresses of the live masters, each address family in its own record."""
    addresses = sorted({normalise_address(address) for address in live})
    if not addresses:
        return ApiPlan(changes=(), why="no master is known to live; the last known addresses stay")
    seen = {record.key: record for record in observed}
    changes: list[Change] = []
    for name in sorted({normalise(name) for name in names}):
        for family in FAMILIES:
            of_family = [address for address in addresses if address_type(address) == family]
            before = seen.get((name, family))
            after = make_record(name, family, of_family, TTL) if of_family else None
            if before != after:
                changes.append(Change(before=before, after=after, why=_why(before, after)))
    return ApiPlan(changes=tuple(changes), why=f"live masters: {', '.join(addresses)}")


def _why(before: Record | None, after: Record | None) -> str:
    was, now = set(before.values if before else ()), set(after.values if after else ())
    reasons = [f"{address} no longer lives" for address in sorted(was - now)]
    reasons += [f"{address} lives" for address in sorted(now - was)]
    return ", ".join(reasons) or f"TTL {TTL}"
