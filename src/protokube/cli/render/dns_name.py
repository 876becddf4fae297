"""The way of one name from the objects that ask for it to DNS, for people and for programs. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from protokube.controllers.dns.tell.explain import Asking
from protokube.controllers.dns.tell.explain_zone import AtZone, Leaving, Standing
from protokube.local.view.next import IN_ORDER
from protokube.records.api import LEASE
from protokube.records.zones import Zone

PREFIX = "dns.alpha.kubernetes.io/"


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """All that is known about one name."""

    name: str
    owner: str
    grace: float
    reserved: bool
    """The agents look after it, if they still renew their Lease."""
    asked: tuple[Asking, ...]
    zones: tuple[AtZone, ...]
    rules: tuple[str, ...]
    left_alone: tuple[tuple[Zone, str], ...]
    """Zones that would hold it and are not ours to write to."""
    renewed: str = ""
    """When that Lease was renewed last, as it says."""


def lines(told: Story) -> list[str]:
    found = [told.name, "asked for by:"]
    found += [f"  {line}" for asking in told.asked for line in _asking(asking)] or ["  nobody"]
    found += ["zones:", *(f"  {line}" for line in _zones(told))]
    found += ["in DNS now:", *(f"  {line}" for line in _standing(told))]
    reasons = list(dict.fromkeys(_reasons(told)))
    found += [*(["not as asked for:"] if reasons else []), *(f"  {each}" for each in reasons)]
    coming = list(_next(told))
    return [*found, f"next: {coming[0]}", *(f"      {each}" for each in coming[1:])]


def tree(told: Story) -> dict[str, Any]:
    return {
        "kind": "record",
        "name": told.name,
        "owner": told.owner,
        "reserved": told.reserved,
        "leaseRenewed": told.renewed,
        "askedForBy": [
            {
                "source": each.source,
                "where": _where(each),
                "gives": [{"type": value.type, "value": value.value} for value in each.gives],
                "why": list(each.why),
            }
            for each in told.asked
        ],
        "zones": [_zone_tree(told, zone) for zone in told.zones],
        "zonesLeftAlone": [{"zone": str(zone), "why": why} for zone, why in told.left_alone],
        "next": list(_next(told)),
    }


def _zone_tree(told: Story, at: AtZone) -> dict[str, Any]:
    return {
        "zone": at.zone.name,
        "id": at.zone.id,
        "private": at.zone.private,
        "trouble": at.trouble,
        "standing": [
            {"type": each.type, "value": each.value, "ttl": each.ttl, "whose": _whose(told, each)}
            for each in at.standing
        ],
        "answeredBy": at.wildcard,
        "changes": [str(change) for change in at.changes],
        "leaving": [
            {
                "type": each.line.mark.type,
                "value": each.line.mark.value,
                "by": each.line.mark.by,
                "heldBy": each.held_by,
            }
            for each in at.leaving
        ],
        "left": [{"kind": left.kind, "why": left.why} for left in at.left],
    }


def _where(asking: Asking) -> str:
    if asking.by_rule:
        return "host of a rule"
    return f"annotation {' and '.join(PREFIX + view for view in asking.views)}"


def _asking(asking: Asking) -> Iterator[str]:
    given = ", ".join(f"{value.type} {value.value}" for value in asking.gives) or "nothing"
    yield f"{asking.source} ({_where(asking)}): {given}"
    yield from (f"  but {each}" for each in asking.why)


def _zones(told: Story) -> Iterator[str]:
    if not told.zones:
        yield f"none that we manage holds it (rules: {', '.join(told.rules) or 'none'})"
    for at in told.zones:
        yield f"{at.zone}{f' cannot be read: {at.trouble}' if at.trouble else ''}"
    for zone, why in told.left_alone:
        yield f"{zone} is left alone: {why}"


def _standing(told: Story) -> Iterator[str]:
    for at in told.zones:
        many = f"{at.zone}: " if len(told.zones) > 1 else ""
        for each in at.standing:
            there = f"TTL {each.ttl}" if each.ttl is not None else "only its mark"
            yield f"{many}{each.type} {each.value}, {there}: {_whose(told, each)}"
        if not at.standing:
            covered = f", so {at.wildcard} answers" if at.wildcard else ""
            yield f"{many}{'not known' if at.trouble else 'nothing'}{covered}"
    if not told.zones:
        yield "not known"


def _whose(told: Story, each: Standing) -> str:
    marks = [
        f"{'ours' if mark.owner == told.owner else f'of {mark.owner}'}, for {mark.by}" for mark in each.marks
    ]  # fmt: skip
    if not marks and told.reserved:
        return "the masters' agents'"
    return "; ".join(marks) or "nobody says whose it is, so it stays"


def _reasons(told: Story) -> Iterator[str]:
    for at in told.zones:
        yield from (left.why for left in at.left)
        yield from (_held(each) for each in at.leaving if each.held_by)


def _held(each: Leaving) -> str:
    return f"{each.line.mark.type} {each.line.mark.value} stays: {each.held_by}"


def _next(told: Story) -> Iterator[str]:
    """At least one sentence."""
    if told.reserved:
        yield f"nothing, if the masters' agents still renew the Lease {LEASE} (last: {told.renewed or 'not said'})"
        yield "otherwise it has ended, and the dns-controller takes the name over"
        return
    found = [str(change) for at in told.zones for change in at.changes]
    for at in told.zones:
        for each in at.leaving:
            if not each.held_by:
                value = f"{each.line.mark.type} {each.line.mark.value}"
                yield f"{told.name} {value} goes after {told.grace:.0f} s: {each.line.mark.by} no longer asks for it"
    yield from found
    if found or any(not each.held_by for at in told.zones for each in at.leaving):
        return
    if not told.zones:
        yield "nothing, until a zone that holds the name is managed; see --zone"
    elif any(at.trouble for at in told.zones):
        yield "nothing, until its zone can be read"
    elif any(each.why or not each.gives for each in told.asked) or not all(at.in_order for at in told.zones):
        yield "nothing, until what is told above is no longer so"
    else:
        yield IN_ORDER.text
