"""Explain a DNS record: its value, which agent writes it, and which agent claimed it. Pure."""

from __future__ import annotations

from protokube.cli.render.facts import Explanation, about, find, for_a_person, names_of, sentences
from protokube.records.member import read_claim
from protokube.view.cluster import ClusterView
from protokube.view.next import next_for_record
from protokube.view.values import MemberView


def explain_record(view: ClusterView, name: str) -> Explanation:
    known = {each.name for each in view.records} | {each.dns_name for each in view.members} | set(view.api_names)
    found = find(
        sorted(known), name.removesuffix("."), lambda each: (each, each.partition(".")[0]), "record", view.cluster
    )
    member = next((each for each in view.members if each.dns_name == found), None)
    addresses = view.addresses(found)
    ttl = next((each.ttl for each in view.records if each.name == found), None)
    nothing = "none yet" if view.knows(found) else "not known"
    facts = [("value", ", ".join(addresses) or nothing), ("ttl", f"{ttl} s" if ttl is not None else "-")]
    facts.append(("wanted by", _wanted_by(view, found, member)))
    claim = read_claim(view.records, found)
    if claim is not None:
        facts.append(("claimed by", f"{claim.holder} with epoch {claim.epoch}"))
    notes = about(view, {found} | (set(names_of(member)) if member else set()))
    return Explanation(
        kind="record",
        name=found,
        title=f"{found} is {_role(view, found, member)}",
        facts=tuple(facts),
        reports=tuple(dict.fromkeys(sentences(notes))),
        next=for_a_person(notes) or str(next_for_record(view, found)),
    )


def _role(view: ClusterView, name: str, member: MemberView | None) -> str:
    if member is not None:
        return f"the name of {member.name}"
    return "a name of the API" if name in view.api_names else "in the zone"


def _wanted_by(view: ClusterView, name: str, member: MemberView | None) -> str:
    if member is not None:
        disk = view.disk(member.volume)
        if disk is None or disk.attached_to is None:
            return "nobody: no master holds its volume"
        return f"the agent of {disk.attached_to}, which holds {disk.id} with epoch {disk.epoch}"
    if name in view.api_names:
        elected = f" ({view.elected})" if view.elected else ", and none is known to be elected"
        internal = name in view.api_names[:1]
        addresses = "internal addresses" if internal else "external addresses (else internal ones)"
        return f"the elected master{elected}: the {addresses} of live masters"
    return "unknown"
