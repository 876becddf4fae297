"""Explain a volume: its tags, mark and epoch, its holder, and its entry in the generation record. Pure."""

from __future__ import annotations

from protokube.cli.render.facts import Explanation, about, find, for_a_person, names_of, sentences
from protokube.cli.render.status import host_state, phase_state
from protokube.cli.render.table import size
from protokube.members.generation import FORMED, FORMING
from protokube.view.cluster import ClusterView
from protokube.view.next import mounted_volume, next_for_volume
from protokube.view.values import DiskView

MARKS = {
    "": "none: nothing of ours was on it yet",
    "formatting": "formatting: a format was begun",
    FORMING: "forming: it has an identity, its cluster is not formed yet",
    FORMED: "formed: it is part of a cluster that was formed",
}


def explain_volume(view: ClusterView, name: str) -> Explanation:
    disk = find(view.disks, name, lambda each: (each.id,), "volume", view.cluster)
    mounted = mounted_volume(view, disk)
    member = view.member(disk.member)
    facts = [
        ("member", f"{disk.member}, as its tags say" + (f"; {member.dns_name}" if member else "")),
        ("size", size(disk.size)),
        ("holder", _holder(view, disk)),
        ("phase", phase_state(view, disk) or "not reported by its holder yet"),
        ("mark", MARKS.get(disk.mark.partition(":")[0], disk.mark)),
        ("epoch", f"{disk.epoch}, written by {disk.last_holder}" if disk.epoch else "none: nobody has held it yet"),
        ("record", _in_the_record(view, disk)),
    ]
    if mounted is not None:
        linked = "linked" if mounted.linked else "not linked"
        identity = f"epoch {mounted.epoch}, holder {mounted.holder}" if mounted.epoch is not None else "no identity"
        facts.append(("on the disk", f"{identity}, data {mounted.data}"))
        if mounted.older is not None:
            facts.append(("older copy", str(mounted.older)))
        facts.append(("etcd", f"{mounted.doing}{f': {mounted.why}' if mounted.why else ''}; its manifest is {linked}"))
    notes = about(view, {disk.id, disk.member, *names_of(member)})
    return Explanation(
        kind="volume",
        name=disk.id,
        title=f"{disk.id} is the home of {member.name if member else disk.member}",
        facts=tuple(facts),
        reports=tuple(dict.fromkeys(sentences(notes))),
        next=for_a_person(notes) or str(next_for_volume(view, disk)),
    )


def _holder(view: ClusterView, disk: DiskView) -> str:
    if disk.attached_to is None:
        return "nobody" + (f"; the last was {disk.last_holder}" if disk.last_holder else "")
    host = view.host(disk.attached_to)
    return (
        f"{host.name} ({host.address}), {host_state(host, view.at)}" if host else f"{disk.attached_to}, which is gone"
    )


def _in_the_record(view: ClusterView, disk: DiskView) -> str:
    key, _, short = disk.member.partition("/")
    generation = view.generations.get(key)
    if generation is None:
        return "missing or unreadable: nothing may be founded"
    state = "still open" if generation.open else "closed"
    if disk.id in generation.superseded:
        return f"superseded in generation {generation.id}: its member has another disk now"
    if generation.is_founder(short, disk.id):
        return f"a founder of generation {generation.id}, {state}"
    if generation.made_by_us(short, disk.id):
        lost = generation.founders.get(short, "a lost volume")
        return f"made in place of {lost} in generation {generation.id}, {state}"
    return f"not in generation {generation.id}: it is never formatted"
