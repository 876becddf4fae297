"""`protokube explain record` from the dns-controller's view: read everything once, and explain one name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from protokube.cli.render.dns_name import Story, lines, tree
from protokube.cli.shared.screen import show_data, show_painted
from protokube.controllers.dns.decide.zonerules import choose, parse_rules
from protokube.controllers.dns.read.fresh import FreshObjects, cluster_id
from protokube.controllers.dns.read.listing import agents_names, list_objects
from protokube.controllers.dns.tell.explain import Doubts, Everything, askings, left_alone, names_written
from protokube.controllers.dns.tell.explain_zone import at_zone
from protokube.controllers.dns.write.confirm import Look
from protokube.controllers.dns.write.zonework import Policy
from protokube.errors import InvalidRequest, NotFound, Refused, TryLater
from protokube.kube.session import Session
from protokube.nearest import near
from protokube.providers.dns import ZoneProvider
from protokube.records import Record
from protokube.records.names import normalise, problem
from protokube.records.owners import Owned, marked_name
from protokube.records.zones import Zone


def explain_name(
    text: str,
    provider: ZoneProvider,
    rules: Sequence[str],
    *,
    kubeconfig: Path | None,
    context: str | None,
    namespace: str,
    ingresses: bool,
    owner: str | None,
    ttl: int,
    output: str,
) -> None:
    if why := problem(text):
        raise InvalidRequest(f"{text!r} is not a DNS name", saw=why)
    name, parsed = normalise(text), parse_rules(rules)
    name = marked_name(name) or name  # for the name of a marks record, explain the name that it belongs to
    session = Session.open(kubeconfig, context)
    try:
        cluster = cluster_id(session)
        seen = Everything(
            objects=list_objects(session, namespace=namespace, ingresses=ingresses),
            managed=choose(provider.list_zones(), parsed),
            agents=agents_names(session),
        )
        seen = read_zones(seen, provider, name)
        story = tell(seen, name, Policy(owner=owner or cluster, ttl=ttl), doubts(seen, session, cluster))
    finally:
        session.close()
    if output == "text":
        show_painted(lines(story))
    else:
        show_data(tree(story), output)
    if seen.troubles:
        raise TryLater("a zone could not be read; see above")


def read_zones(seen: Everything, provider: ZoneProvider, name: str) -> Everything:
    """Add the records of the zones that hold the name."""
    records: dict[Zone, Sequence[Record]] = {}
    troubles: dict[Zone, str] = {}
    for zone in seen.zones_of(name):
        try:
            records[zone] = provider.open(zone).list_records()
        except (TryLater, Refused) as why:
            troubles[zone] = why.message
    return Everything(
        objects=seen.objects, managed=seen.managed, agents=seen.agents, records=records, troubles=troubles
    )  # fmt: skip


def doubts(seen: Everything, session: Session, cluster: str) -> Doubts:
    """The confirmation that the controller makes before it removes a value."""
    look = Look(FreshObjects(session, cluster), seen.sources, seen.nodes, seen.agents.external)

    def doubt(line: Owned) -> str:
        try:
            found = look.doubt(line, Policy(owner=cluster).grace)
        except TryLater as why:
            return f"{line.mark.by} cannot be asked for: {why.message}"
        return found.why if found else ""

    return doubt


def tell(seen: Everything, name: str, policy: Policy, doubt: Doubts) -> Story:
    """Raises InvalidRequest if no object asks for the name and no zone holds it."""
    asked = askings(seen, name)
    zones = tuple(at_zone(seen, zone, name, policy, doubt) for zone in seen.zones_of(name))
    known = names_written(seen) | {record.name for records in seen.records.values() for record in records}
    if not asked and name not in seen.agents.reserved and not any(zone.standing or zone.trouble for zone in zones):
        covered = next((zone.wildcard for zone in zones if zone.wildcard), "")
        raise NotFound(
            f"no object asks for {name}, and it has no records",
            saw=f"{covered} answers for it" if covered else "",
            want="the name in an annotation dns.alpha.kubernetes.io/external or dns.alpha.kubernetes.io/internal",
            hint=near(name, sorted(each for each in known if not marked_name(each))),
        )
    return Story(
        name=name,
        owner=policy.owner,
        grace=policy.grace,
        reserved=name in seen.agents.reserved,
        renewed=seen.agents.renewed,
        asked=asked,
        zones=zones,
        rules=tuple(map(str, seen.managed.rules)),
        left_alone=tuple(left_alone(seen, name)),
    )
