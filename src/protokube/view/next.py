"""What happens next to a volume, a member or a name, if nothing else does: pure, and total.

A promise is worse than silence if nobody is there to keep it. So each sentence has a way in which it comes true, and an
act of the elected master is promised only if there is one. What only a person can do comes before everything else.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from protokube.members import alarms
from protokube.members.alarms import AlarmKind
from protokube.members.generation import FORMED
from protokube.members.phases import Phase, from_text
from protokube.view.cluster import ClusterView
from protokube.view.contradictions import contradictions
from protokube.view.needs import keys
from protokube.view.values import DiskView, HostView, MemberView, MountedVolumeView


class Way(Enum):
    """How it comes to be."""

    IN_ORDER = "nothing has to happen"
    KEPT = "nothing happens to it, and that is meant"
    BY_ITSELF = "the agents, the cloud or etcd do it"
    WAITS = "something else has to come first, and nothing here brings it about"
    PERSON = "a person acts"


@dataclass(frozen=True, slots=True)
class Next:
    """What comes next, in one sentence."""

    way: Way
    text: str

    def __str__(self) -> str:
        return self.text


IN_ORDER = Next(Way.IN_ORDER, "nothing: it is in order")


def next_for_volume(view: ClusterView, disk: DiskView) -> Next:
    phase = from_text(disk.phase)
    if asked := _person(view, disk.member.partition("/")[0]):
        return asked
    if phase is Phase.SUPERSEDED or phase is Phase.UNUSED:
        gives = "; its holder gives it away" if view.current(disk.attached_to) else ""
        return Next(Way.KEPT, f"nothing: it is kept, and neither claimed, served nor deleted{gives}")
    if disk.attached_to is None and disk.state:
        return Next(Way.WAITS, f"nothing, until its cloud has completed what it does: the volume is {disk.state}")
    if disk.attached_to is None:
        return _free(view, disk)
    host = view.host(disk.attached_to)
    if host is not None and host.state and not host.alive:  # nobody sees its processes: it may be gone or cut off
        return Next(
            Way.WAITS,
            f"nothing, until {host.name} has a live lease again, or the cloud ends it and another master attaches the"
            " volume",
        )
    if host is None or host.dead or not host.alive:
        return Next(
            Way.BY_ITSELF,
            f"the cloud takes it from {disk.attached_to}, which is gone; then a master that holds no member of"
            f" {disk.member.partition('/')[0]} attaches it",
        )
    if silent := _silent(view, host):
        return silent
    match phase:
        case Phase.SERVING:
            return _serving(view, disk, host)
        case Phase.ATTACHED | Phase.MOUNTED:
            return _preparing(view, disk, phase)
        case None | Phase.FREE | Phase.TAKEN:
            return Next(Way.BY_ITSELF, f"{host.name} reports in its next round how far it is")
        case Phase.REMOVED:
            return _removed(view, disk)
        case _:
            return Next(Way.PERSON, "nothing, until a person acts")


def next_for_member(view: ClusterView, member: MemberView) -> Next:
    disk = view.disk(member.volume)
    if disk is not None:
        return next_for_volume(view, disk)
    if asked := _person(view, member.key):
        return asked
    if not view.volumes_known or member.key in view.unread:
        what = f"the generation record of {member.key}" if view.volumes_known else "its volume"
        return Next(Way.WAITS, f"nothing is known of {what} now")
    record = view.generations.get(member.key)
    if record is None or record.open:
        return Next(Way.PERSON, "a person acts: its volume went before the cluster was formed; `down`, and `up` again")
    first = keys(view)[0]
    for key in dict.fromkeys((member.key, first)):
        if not view.has_quorum(key):
            return Next(Way.WAITS, f"nothing, until {_quorum(view, key)}: no volume is made without a quorum")
    if view.elected is None:
        return Next(Way.WAITS, "a master has to be elected first; it then makes a new volume")
    return Next(
        Way.BY_ITSELF,
        f"{view.elected}, the elected master, makes a new volume for it once several complete lists lacked the old one",
    )


def next_for_record(view: ClusterView, name: str) -> Next:
    member = next((each for each in view.members if each.dns_name == name), None)
    if member is not None:
        return _member_name(view, member)
    return _api_name(view, name) if name in view.api_names else Next(Way.KEPT, "nothing: no agent of ours writes it")


def _person(view: ClusterView, key: str) -> Next | None:
    """What a person has to do for an etcd cluster as a whole, or for the cloud around it."""
    found = [each.note for each in view.person if each.note.about == key or each.note.step == "cloud"]
    return Next(Way.PERSON, f"a person acts: {found[0].hint or found[0].text}") if found else None


def _silent(view: ClusterView, host: HostView) -> Next | None:
    """A host that runs, and whose agent says nothing, or nothing any more."""
    report = view.report(host.name)
    if report is None:
        return Next(Way.WAITS, f"nothing, until the agent of {host.name} has ended its first round")
    if not report.stale:
        return None
    return Next(
        Way.WAITS, f"nothing, until the agent of {host.name} runs again: it has reported nothing for {report.age:.0f} s"
    )


def _free(view: ClusterView, disk: DiskView) -> Next:
    phase, key = from_text(disk.phase), disk.member.partition("/")[0]
    if phase is not None and phase.is_refusal:
        return Next(Way.PERSON, "nothing, until a person acts")
    holders = {each.attached_to for each in view.disks if each.member.startswith(f"{key}/")}
    masters = [each for each in view.hosts if each.master and each.alive and not each.dead]
    takers = [each for each in masters if each.name not in holders]
    able = [each.name for each in takers if view.current(each.name)]
    if able:
        names = ", ".join(able)
        return Next(Way.BY_ITSELF, f"a master that holds no member of {key} attaches it in its next round: {names}")
    if takers and (silent := _silent(view, takers[0])):
        return silent
    if not masters:
        return Next(Way.WAITS, "nothing, until a host runs; it then attaches the volume")
    return Next(Way.WAITS, f"nothing, until a master runs that holds no member of {key}: all that run hold one")


def _preparing(view: ClusterView, disk: DiskView, phase: Phase) -> Next:
    mounted = mounted_volume(view, disk)
    doing, why = (mounted.doing, mounted.why) if mounted else ("", "")
    match doing:
        case "waiting":
            return Next(Way.WAITS, f"its agent waits: {why}")
        case "refused":
            return Next(Way.PERSON, f"nothing, until a person acts: {why}")
    key = disk.member.partition("/")[0]
    if doing == "joining" and not view.has_quorum(key):
        return Next(Way.WAITS, f"nothing, until {_quorum(view, key)}: its member then joins them")
    if phase is Phase.ATTACHED:
        return Next(
            Way.BY_ITSELF,
            "its device is proven to be this volume and read; then it is formatted, if that is allowed, and mounted",
        )
    return Next(Way.BY_ITSELF, "its manifest is linked once its name answers with the holder's address")


def _removed(view: ClusterView, disk: DiskView) -> Next:
    """Its agent waits while the member may rejoin by itself, and refuses once only a person can bring it back."""
    mounted = mounted_volume(view, disk)
    doing, why = (mounted.doing, mounted.why) if mounted else ("", "")
    if doing != "waiting":
        return Next(Way.PERSON, "nothing, until a person acts")
    quorum = view.has_quorum(disk.member.partition("/")[0])
    return Next(Way.BY_ITSELF if quorum else Way.WAITS, f"its agent waits: {why}")


def _serving(view: ClusterView, disk: DiskView, host: HostView) -> Next:
    member = view.member(disk.member)
    against = next((each.text for each in contradictions(view) if each.volume == disk.id), "")
    if against:
        return Next(Way.WAITS, f"the reports have to agree first: {against}")
    if member is None:
        return Next(Way.WAITS, "nothing is known of its member yet")
    if member.volume != disk.id:
        return Next(Way.WAITS, f"{member.name} is expected on {member.volume or 'no volume'}, not here")
    if member.alarms:
        return _alarmed(member)
    if not member.asked or not member.healthy:
        return _ill(view, member, host)
    if member.learner and not view.has_quorum(member.key):
        return Next(Way.WAITS, f"nothing, until {_quorum(view, member.key)}: it is then made a voter")
    if member.learner:
        return Next(Way.BY_ITSELF, "it is made a voter once it has caught up")
    if disk.mark != FORMED:
        return Next(Way.BY_ITSELF, "it is marked formed once its cluster has a quorum and it has data")
    return IN_ORDER


def _alarmed(member: MemberView) -> Next:
    if alarms.state(member.alarms) == alarms.STATES[AlarmKind.NOSPACE]:
        return Next(
            Way.BY_ITSELF, "the agents compact and defragment etcd, one member after the other, and clear the alarm"
        )
    return Next(Way.PERSON, "a person acts: the agents report what there is to do")


def _ill(view: ClusterView, member: MemberView, host: HostView) -> Next:
    so_far = f"; so far: {member.why}" if member.why else ""
    if not member.asked:
        return Next(Way.WAITS, f"nothing is known of {member.name}{so_far}")
    if view.has_quorum(member.key):
        return Next(Way.BY_ITSELF, f"the kubelet of {host.name} starts etcd, and it finds its peers{so_far}")
    return Next(
        Way.WAITS, f"the kubelet of {host.name} starts etcd; it serves once {_quorum(view, member.key)}{so_far}"
    )


def _quorum(view: ClusterView, key: str) -> str:
    total = sum(each.key == key for each in view.members)
    return f"{view.needed(key)} of {total} members of {key} answer ({view.answering(key)} now)"


def _member_name(view: ClusterView, member: MemberView) -> Next:
    host = view.host(member.host)
    runs = host is not None and host.alive and not host.dead
    if host and runs and view.current(host.name) and view.addresses(member.dns_name) == (host.address,):
        return IN_ORDER
    if asked := _person(view, member.key):
        return asked
    if not view.volumes_known:
        return Next(Way.WAITS, "nothing is known of the volume of its member now")
    if member.volume is None:
        return Next(Way.WAITS, "nothing, until its member has a volume again and a master attaches it")
    if host is None or not runs:
        return Next(Way.WAITS, "nothing, until a master attaches its volume; that master points it at itself")
    return _silent(view, host) or Next(Way.BY_ITSELF, f"{host.name} points it at {host.address}")


def _api_name(view: ClusterView, name: str) -> Next:
    masters = [each for each in view.hosts if each.master and view.current(each.name)]
    with_api = any(each.serving is not None for each in view.agents)
    if with_api:
        masters = [each for each in masters if (report := view.current(each.name)) and report.serving]
    wanted, found = {each.address for each in masters}, set(view.addresses(name))
    for key in keys(view)[:1]:
        if asked := _person(view, key):
            return asked
        if wanted and wanted == found:
            return IN_ORDER
        if not view.has_quorum(key):
            return Next(Way.WAITS, f"nothing, until {_quorum(view, key)}: nobody is elected without a quorum")
        record = view.generations.get(key)
        if record is not None and record.open:
            return Next(Way.WAITS, "nothing, until the creation of the cluster is closed; it is written then")
        if view.elected is None:
            return Next(Way.WAITS, "nothing, until a master is elected; it writes the name")
        if not wanted:
            return Next(Way.WAITS, "nothing, until an API server is ready: the last addresses stay")
        addresses = ", ".join(sorted(wanted))
        return Next(Way.BY_ITSELF, f"{view.elected}, the elected master, points it at {addresses}")
    return Next(Way.WAITS, "nothing is known of the members yet")


def mounted_volume(view: ClusterView, disk: DiskView) -> MountedVolumeView | None:
    """As its holder sees it, mounted."""
    report = view.report(disk.attached_to)
    return next((mounted for mounted in report.mounted if mounted.volume == disk.id), None) if report else None
