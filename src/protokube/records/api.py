"""The names of the API: exactly the masters that live.

No placeholder before the first master, and the last address is never taken away: with no live master at all there is
nothing better to answer than the last one known.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from protokube.records import Change, Record
from protokube.records.names import address_type, make_record, normalise, normalise_address

TTL = 10
FAMILIES = ("A", "AAAA")

LEASE = "protokube-api-names"
"""In kube-system: while the agents renew it, the names that it lists are theirs, and no controller writes them."""
LEASE_NAMES = "protokube.io/names"
"""The annotation with those names, separated by commas."""
LEASE_MEMBERS = "protokube.io/members"
"""The annotation with those of the etcd members: they are the agents' for ever, also when nobody renews the Lease."""
LEASE_SECONDS = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiPlan:
    changes: tuple[Change, ...]
    why: str
    """One sentence about what was decided, also if that is to leave everything as it is."""


def plan_api(observed: Sequence[Record], names: Collection[str], live: Collection[str]) -> ApiPlan:
    """Make every name answer with the addresses of the live masters, each family in its own record."""
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
    told = [f"{address} no longer lives" for address in sorted(was - now)]
    told += [f"{address} lives" for address in sorted(now - was)]
    return ", ".join(told) or f"TTL {TTL}"
