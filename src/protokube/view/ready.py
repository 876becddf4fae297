"""What a cluster lacks to be ready, in sentences: pure.

Decided from one view alone, so that `status`, `up` and the drills cannot disagree about it.
"""

from __future__ import annotations

from collections.abc import Iterator

from protokube.launch.rollout import State
from protokube.members.generation import FORMED
from protokube.members.phases import Phase
from protokube.notes import AGREEMENT
from protokube.view.contradictions import contradictions
from protokube.view.seen import SeenCluster
from protokube.view.values import MemberView


def lacks(view: SeenCluster) -> Iterator[str]:
    """In the order in which things come up."""
    yield from _daemon(view)
    yield from _silent(view)
    yield from dict.fromkeys(each.text for each in contradictions(view) if each.blocks)
    if not view.members:
        yield "nothing is known of its members yet"
    if not view.volumes_known:
        yield "nothing is known of the volumes: no master has had a list of them from its provider"
    for member in view.members:
        yield from _lacks_of(view, member)
    for key in dict.fromkeys(each.key for each in view.members):
        yield from _disagreements(view, key)
        generation = view.generations.get(key)
        if key in view.unread:
            yield f"the generation record of {key} could not be read now"
        elif generation is None:
            yield f"the generation record of {key} is missing or cannot be read"
        elif generation.open:
            yield f"the creation of {key} is not closed yet"
    yield from _alarms(view)
    for disk in view.disks:
        if disk.mark != FORMED and disk.phase not in (Phase.SUPERSEDED.value, Phase.UNUSED.value):
            yield f"{disk.id} ({disk.member}) is marked {disk.mark.partition(':')[0] or 'nothing'}, not {FORMED}"
    yield from _lacks_of_the_api(view)
    if view.rollout is not None and view.rollout.state is State.ROLLING:
        turn = f", {view.rollout.turn.name} restarts" if view.rollout.turn else ""
        yield f"revision {view.rollout.wanted} is being rolled out{turn}"


def _daemon(view: SeenCluster) -> Iterator[str]:
    if view.daemon and view.daemon.stopped:
        yield "the cluster is stopped"
    elif view.daemon and not view.daemon.alive:
        state = "does not answer" if view.daemon.timed_out else "does not run"
        yield f"the local cloud {state}{f': {view.daemon.why}' if view.daemon.why else ''}"
    if view.daemon:
        for group, why in sorted(view.daemon.not_starting.items()):
            yield f"no host of {group} starts: {why}"


def _silent(view: SeenCluster) -> Iterator[str]:
    """Masters that run and do not report, or no longer: their last report may be out of date."""
    for host in view.hosts:
        if host.state and not host.alive:
            # its etcd may well run: without its agent, nobody fences it, renews its keys or reports what it lacks
            held = ", ".join(each.id for each in view.disks if each.attached_to == host.name)
            yield from [f"{host.name} holds {held}, and gives no sign of life: {host.state}"] if held else []
        if not host.master or not host.alive or host.dead:
            continue
        report = view.report(host.name)
        if report is None:
            yield f"the agent of {host.name} has not reported yet"
        elif report.stale:
            yield f"the agent of {host.name} has reported nothing for {report.age:.0f} s"


def _alarms(view: SeenCluster) -> Iterator[str]:
    """The agents compare what the members hold: members that differ are not ready, however healthy each of them is."""
    noted = [each.note for each in view.reported_needs if each.note.step == AGREEMENT]
    yield from dict.fromkeys(f"{note.about}: {note.text}" for note in noted)


def _lacks_of_the_api(view: SeenCluster) -> Iterator[str]:
    """The last known address is never taken away, so a name may point at nobody that lives."""
    living = {each.address for each in view.hosts if each.alive and not each.dead}
    for name in view.api_names[:1]:
        addresses = view.addresses(name)
        if not view.knows(name):
            yield f"nothing is known of {name}: no elected master has reported it"
        elif not addresses:
            yield f"{name} has no address yet"
        elif not living.intersection(addresses):
            yield f"{name} points at {', '.join(addresses)}, where no master lives"
    for host in view.not_serving:
        yield f"the API server of {host} is not ready"


def _lacks_of(view: SeenCluster, member: MemberView) -> Iterator[str]:
    where = f"{member.name} on {member.host}" if member.host else member.name
    if member.volume is None and view.volumes_known:
        yield f"{member.name} has no volume"
    elif member.host is None and view.volumes_known:
        yield f"{member.volume} of {member.name} is attached to nobody"
    elif not member.healthy and (disk := view.disk(member.volume)) and disk.phase == Phase.REMOVED.value:
        yield f"{where} was removed from etcd's member list"
    elif not member.healthy and member.asked:
        yield f"{where} is not healthy" + (f": {member.why}" if member.why else "")
    elif member.learner:
        yield f"{where} is still a learner"
    host = view.host(member.host)
    points_at = view.addresses(member.dns_name)
    if host is not None and not view.knows(member.dns_name):
        yield f"nothing is known of {member.dns_name}: {host.name} has not confirmed it"
    elif host is not None and host.address and points_at != (host.address,):
        yield f"{member.dns_name} points at {', '.join(points_at) or 'nothing'}, not at {host.name} ({host.address})"


def _disagreements(view: SeenCluster, key: str) -> Iterator[str]:
    """What healthy members say differently: two answers to one question are two clusters."""
    answering = [each for each in view.members if each.key == key and each.healthy]
    if len({each.cluster_id for each in answering}) > 1:
        ids = ", ".join(f"{each.name} {each.cluster_id:x}" for each in answering)
        yield f"the members of {key} are of different clusters: {ids}"
    if len({each.leader_id for each in answering}) > 1:
        yield f"the members of {key} do not follow one leader"
    elif answering and not any(each.leader for each in answering):
        yield f"the leader of {key} is none of its members that answer"
    if len({each.listed for each in answering}) > 1:
        yield f"the members of {key} do not list the same members"
