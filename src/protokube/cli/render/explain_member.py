"""Explain a member: its volume, its host, its DNS name, and what etcd reports. Pure."""

from __future__ import annotations

from protokube.cli.render.facts import Explanation, about, find, for_a_person, names_of, sentences
from protokube.cli.render.status import host_state, member_state, phase_state
from protokube.cli.render.table import size
from protokube.view.cluster import ClusterView
from protokube.view.next import next_for_member


def explain_member(view: ClusterView, name: str) -> Explanation:
    member = find(
        view.members,
        name,
        lambda each: (each.member, *names_of(each), each.member.rpartition("/")[2]),
        "member",
        view.cluster,
    )
    disk = view.disk(member.volume)
    host = view.host(member.host)
    nothing = "nothing yet" if view.knows(member.dns_name) else "not known"
    points_at = ", ".join(view.addresses(member.dns_name)) or nothing
    facts = [
        ("volume", f"{disk.id}, {phase_state(view, disk) or 'attached'}, epoch {disk.epoch}" if disk else "none"),
        ("host", f"{host.name} ({host.address}), {host_state(host, view.at)}" if host else "none"),
        ("name", f"{member.dns_name} -> {points_at}"),
    ]
    if member.url is not None:
        facts.append(("reached at", member.url or "no port of this machine leads to it yet"))
    facts.append(("etcd", member_state(member) + (f": {member.why}" if member.why else "")))
    if member.id:
        facts.append(("id", f"{member.id:x} of cluster {member.cluster_id:x}"))
        facts.append(("state", f"term {member.raft_term}, revision {member.revision}, etcd {member.version}"))
        in_use = f", {size(member.db_in_use)} of it in use" if member.db_in_use else ""
        facts.append(("database", f"{size(member.db_size)}{in_use}"))
    names = {member.member, *names_of(member), *([member.volume] if member.volume else [])}
    notes = about(view, names, member.key)
    return Explanation(
        kind="member",
        name=member.name,
        title=f"{member.name} is member {member.member}",
        facts=tuple(facts),
        reports=tuple(dict.fromkeys(sentences(notes))),
        next=for_a_person(notes) or str(next_for_member(view, member)),
    )
