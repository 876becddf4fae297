"""Render one DNS name as text and as data: the objects that request it, its zones, its records. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from protokube.controllers.dns.tell.explain import Asking
from protokube.controllers.dns.tell.explain_zone import AtZone, Leaving, Standing
from protokube.records.api import LEASE
from protokube.records.zones import Zone
from protokube.view.next import IN_ORDER

PREFIX = "dns.alpha.kubernetes.io/"


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """Everything known about one DNS name."""

    name: str
    owner: str
    grace: float
    reserved: bool
    """The agents manage it, as long as they renew their Lease."""
    asked: tuple[Asking, ...]
    zones: tuple[AtZone, ...]
    rules: tuple[str, ...]
    left_alone: tuple[tuple[Zone, str], ...]
    """Zones that contain the name, but that we do not manage."""
    renewed: str = ""
    """`renewTime` of that Lease."""


def lines(story: Story) -> list[str]:
    found = [story.name, "asked for by:"]
    found += [f"  {line}" for asking in story.asked for line in _asking(asking)] or ["  nobody"]
    found += ["zones:", *(f"  {line}" for line in _zones(story))]
    found += ["in DNS now:", *(f"  {line}" for line in _standing(story))]
    reasons = list(dict.fromkeys(_reasons(story)))
    found += [*(["not as asked for:"] if reasons else []), *(f"  {each}" for each in reasons)]
    coming = list(_next(story))
    return [*found, f"next: {coming[0]}", *(f"      {each}" for each in coming[1:])]


def tree(story: Story) -> dict[str, Any]:
    return {
        "kind": "record",
        "name": story.name,
        "owner": story.owner,
        "reserved": story.reserved,
        "leaseRenewed": story.renewed,
        "askedForBy": [
            {
                "source": each.source,
                "where": _where(each),
                "gives": [{"type": value.type, "value": value.value} for value in each.gives],
                "why": list(each.why),
            }
            for each in story.asked
        ],
        "zones": [_zone_tree(story, zone) for zone in story.zones],
        "zonesLeftAlone": [{"zone": str(zone), "why": why} for zone, why in story.left_alone],
        "next": list(_next(story)),
    }


def _zone_tree(story: Story, at: AtZone) -> dict[str, Any]:
    return {
        "zone": at.zone.name,
        "id": at.zone.id,
        "private": at.zone.private,
        "trouble": at.trouble,
        "standing": [
            {"type": each.type, "value": each.value, "ttl": each.ttl, "whose": _whose(story, each)}
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


def _zones(story: Story) -> Iterator[str]:
    if not story.zones:
        yield f"no managed zone contains it (rules: {', '.join(story.rules) or 'none'})"
    for at in story.zones:
        yield f"{at.zone}{f' cannot be read: {at.trouble}' if at.trouble else ''}"
    for zone, why in story.left_alone:
        yield f"{zone} is left alone: {why}"


def _standing(story: Story) -> Iterator[str]:
    for at in story.zones:
        many = f"{at.zone}: " if len(story.zones) > 1 else ""
        for each in at.standing:
            there = f"TTL {each.ttl}" if each.ttl is not None else "only its mark"
            yield f"{many}{each.type} {each.value}, {there}: {_whose(story, each)}"
        if not at.standing:
            covered = f", so {at.wildcard} answers" if at.wildcard else ""
            yield f"{many}{'not known' if at.trouble else 'nothing'}{covered}"
    if not story.zones:
        yield "not known"


def _whose(story: Story, each: Standing) -> str:
    marks = [
        f"{'ours' if mark.owner == story.owner else f'of {mark.owner}'}, for {mark.by}" for mark in each.marks
    ]  # fmt: skip
    if not marks and story.reserved:
        return "managed by the masters' agents"
    return "; ".join(marks) or "no owner is recorded, so it stays"


def _reasons(story: Story) -> Iterator[str]:
    for at in story.zones:
        yield from (left.why for left in at.left)
        yield from (_held(each) for each in at.leaving if each.held_by)


def _held(each: Leaving) -> str:
    return f"{each.line.mark.type} {each.line.mark.value} stays: {each.held_by}"


def _next(story: Story) -> Iterator[str]:
    """What happens next: at least one sentence."""
    if story.reserved:
        yield f"nothing, if the masters' agents still renew the Lease {LEASE} (last: {story.renewed or 'unknown'})"
        yield "otherwise the Lease has expired, and the dns-controller takes the name over"
        return
    found = [str(change) for at in story.zones for change in at.changes]
    for at in story.zones:
        for each in at.leaving:
            if not each.held_by:
                value = f"{each.line.mark.type} {each.line.mark.value}"
                yield f"{story.name} {value} goes after {story.grace:.0f} s: {each.line.mark.by} no longer asks for it"
    yield from found
    if found or any(not each.held_by for at in story.zones for each in at.leaving):
        return
    if not story.zones:
        yield "nothing, until a zone that contains the name is managed; see --zone"
    elif any(at.trouble for at in story.zones):
        yield "nothing, until its zone can be read"
    elif any(each.why or not each.gives for each in story.asked) or not all(at.in_order for at in story.zones):
        yield "nothing, until the reasons above are resolved"
    else:
        yield IN_ORDER.text
