"""Why a member waits: its volume, its host, its name, and what etcd says. Pure."""

from __future__ import annotations

from protokube.cli.render_explain import IN_ORDER, Explanation, about, find, for_a_person, names_of, sentences
from protokube.cli.render_explain_volume import next_for_volume
from protokube.cli.render_status import host_state, member_state
from protokube.cli.render_table import size
from protokube.local.view_values import ClusterView, DiskView, MemberView
from protokube.members import alarms
from protokube.members.alarms import AlarmKind


def explain_member(view: ClusterView, name: str) -> Explanation:
    member = find(
        view.members, name, lambda each: (each.member, *names_of(each), each.member.rpartition("/")[2]), "member"
    )
    disk = view.disk(member.volume)
    host = view.host(member.host)
    points_at = ", ".join(view.addresses(member.dns_name)) or "nothing yet"
    facts = [
        ("volume", f"{disk.id}, {disk.phase or 'attached'}, epoch {disk.epoch}" if disk else "none"),
        ("host", f"{host.name} ({host.address}), {host_state(host, view.at)}" if host else "none"),
        ("name", f"{member.dns_name} -> {points_at}"),
        ("reached at", member.url or "no port of this machine leads to it yet"),
        ("etcd", member_state(member) + (f": {member.why}" if member.why else "")),
    ]
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
        said=tuple(sentences(notes)),
        next=for_a_person(view, notes) or _next_for_member(view, member, disk),
    )


def _next_for_member(view: ClusterView, member: MemberView, disk: DiskView | None) -> str:
    if disk is None:
        return "the elected master makes a new volume for it, once several complete lists lacked the old one"
    if alarms.state(member.alarms) == alarms.STATES[AlarmKind.NOSPACE]:
        return "the agents compact and defragment etcd, one member after the other, and clear the alarm"
    if member.alarms:
        return "the agents report what a person has to do"
    if member.learner:
        return "it is made a voter once it has caught up"
    if member.healthy:
        return IN_ORDER
    if disk.phase == "serving":
        return "the kubelet of its host starts etcd, and it finds its peers"
    return next_for_volume(view, disk)
