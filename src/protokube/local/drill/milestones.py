"""What a drill waits for: each milestone is a predicate on one view of the cluster. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from protokube.local.drill.values import Milestone
from protokube.view.cluster import ClusterView
from protokube.view.values import DiskView, HostView, MemberView

API = "api"


def after_a_loss(before: ClusterView, hosts: Sequence[str], *, still_running: bool = False) -> list[Milestone]:
    """The milestones of the recovery after these hosts are lost.

    `still_running`: they are frozen. Their kernels still answer, so etcd's peers may keep their old connections for as
    long as that lasts (3.6 does), and send to the new hosts by single requests: then only the new ones' calls count.
    """
    volumes = [each for each in before.disks if each.attached_to in hosts]
    members = [each for each in before.members if each.host in hosts]
    found = [] if still_running else [is_dead(each) for each in hosts]
    found += [is_attached(each, hosts) for each in volumes]
    found += [is_named(each, hosts) for each in members]
    found += [is_healthy(each.member, each.name, hosts) for each in members]
    found += [has_peers(each.member, each.name, not_on=hosts, both_ways=not still_running) for each in members]
    return [*found, api_lists_the_living(hosts), is_ready()]


def after_a_lost_volume(before: ClusterView, volume: DiskView) -> list[Milestone]:
    name = next(each.name for each in before.members if each.member == volume.member)
    return [
        is_not_listed(volume.id),
        is_replaced(volume),
        is_voter_on_another(volume, name),
        has_peers(volume.member, name, not_with=volume.id),
        is_ready(),
    ]


def after_a_healed_cable(member: MemberView) -> list[Milestone]:
    return [
        is_healthy(member.member, member.name, ()),
        has_peers(member.member, member.name),
        api_lists_the_living(()),
        is_ready(),
    ]


def is_dead(host: str) -> Milestone:
    def reached(view: ClusterView) -> str:
        found = view.host(host)
        return f"{host} is dead" if found is None or found.dead or not found.alive else ""

    return Milestone(f"{host} to be dead", reached)


def is_attached(volume: DiskView, not_to: Collection[str]) -> Milestone:
    def reached(view: ClusterView) -> str:
        found = view.disk(volume.id)
        host = view.host(found.attached_to) if found else None
        return f"{volume.id} is attached to {host.name} ({host.address})" if host and host.name not in not_to else ""

    return Milestone(f"{volume.id} to be attached to a successor", reached)


def is_named(member: MemberView, not_by: Collection[str]) -> Milestone:
    def reached(view: ClusterView) -> str:
        found = view.member(member.member)
        host = view.host(found.host) if found else None
        if host is None or host.name in not_by or view.addresses(member.dns_name) != (host.address,):
            return ""
        return f"{member.dns_name} points at {host.address}"

    return Milestone(f"{member.dns_name} to point at its new host", reached)


def is_healthy(member: str, name: str, not_on: Collection[str]) -> Milestone:
    def reached(view: ClusterView) -> str:
        found = view.member(member)
        if found is None or not found.healthy or found.learner or found.host in (None, *not_on):
            return ""
        return f"{name} is healthy on {found.host}"

    return Milestone(f"{name} to be healthy", reached)


def is_cut_off(member: MemberView) -> Milestone:
    def reached(view: ClusterView) -> str:
        found = view.member(member.member)
        return f"{member.name} is cut off" if found is None or not found.healthy else ""

    return Milestone(f"{member.name} to be cut off", reached)


def has_peers(
    member: str, name: str, *, not_on: Collection[str] = (), not_with: str = "", both_ways: bool = True
) -> Milestone:
    """Connections to its peers, and from its peers to its current host."""
    awaited = f"{name} and its peers to be connected" if both_ways else f"{name} to be connected to its peers"
    done = f"{name} and its peers are connected" if both_ways else f"{name} is connected to its peers"

    def reached(view: ClusterView) -> str:
        found = view.member(member)
        host = view.host(found.host) if found else None
        others = _hosts_of_others(view, member)
        if host is None or not found or not found.healthy or host.name in not_on or found.volume == not_with:
            return ""
        calls = all(other.address in (host.peers or ()) for other in others)
        called = not both_ways or all(host.address in (other.peers or ()) for other in others)
        return done if calls and called else ""

    return Milestone(awaited, reached)


def _hosts_of_others(view: ClusterView, member: str) -> list[HostView]:
    key = member.partition("/")[0]
    others = [each for each in view.members if each.key == key and each.member != member]
    return [host for each in others if (host := view.host(each.host)) is not None]


def is_not_listed(volume: str) -> Milestone:
    return Milestone(f"{volume} to be gone", lambda view: f"{volume} is gone" if view.disk(volume) is None else "")


def is_replaced(volume: DiskView) -> Milestone:
    def reached(view: ClusterView) -> str:
        new = next((each for each in view.disks if each.member == volume.member and each.id != volume.id), None)
        return f"{new.id} was made for {new.member}" if new else ""

    return Milestone(f"a new volume for {volume.member}", reached)


def is_voter_on_another(volume: DiskView, name: str) -> Milestone:
    def reached(view: ClusterView) -> str:
        found = view.member(volume.member)
        if found is None or not found.healthy or found.learner or found.volume in (None, volume.id):
            return ""
        return f"{name} is a healthy voter on {found.volume}"

    return Milestone(f"{name} to be a voter on its new volume", reached)


def api_lists_the_living(gone: Collection[str]) -> Milestone:
    """The API's DNS name has exactly the masters that are alive and, with Kubernetes, serve; dead ones are removed."""

    def reached(view: ClusterView) -> str:
        hosts = [each for each in view.hosts if each.alive and not each.dead and each.name not in gone]
        if any(each.serving is not None for each in view.agents):
            serving = {each.host for each in view.agents if each.serving}
            hosts = [each for each in hosts if each.name in serving]
        living = sorted(each.address for each in hosts)
        if not view.api_names or not living:
            return ""
        name = view.api_names[0]
        return f"{name} lists exactly the masters that live" if sorted(view.addresses(name)) == living else ""

    return Milestone("the name of the API to list exactly the masters that live", reached, API)


def is_ready() -> Milestone:
    return Milestone("the cluster to be ready", lambda view: "the cluster is ready" if view.ready else "", last=True)
