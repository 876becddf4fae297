"""Why a volume waits: its tags, its mark and epoch, its holder, and what the record says of it. Pure."""

from __future__ import annotations

from protokube.cli.render_explain import IN_ORDER, Explanation, about, find, for_a_person, names_of, sentences
from protokube.cli.render_status import host_state
from protokube.cli.render_table import size
from protokube.local.view_values import ClusterView, DiskView, HomeView
from protokube.members.generation import FORMED, FORMING
from protokube.members.phases import Phase, from_text

MARKS = {
    "": "none: nothing of ours was on it yet",
    "formatting": "formatting: a format was begun",
    FORMING: "forming: it has an identity, its cluster is not formed yet",
    FORMED: "formed: it is part of a cluster that was formed",
}


def explain_volume(view: ClusterView, name: str) -> Explanation:
    disk = find(view.disks, name, lambda each: (each.id,), "volume")
    home = _home(view, disk)
    member = view.member(disk.member)
    facts = [
        ("member", f"{disk.member}, as its tags say" + (f"; {member.dns_name}" if member else "")),
        ("size", size(disk.size)),
        ("holder", _holder(view, disk)),
        ("phase", disk.phase or "its holder has not said yet"),
        ("mark", MARKS.get(disk.mark.partition(":")[0], disk.mark)),
        ("epoch", f"{disk.epoch}, written by {disk.last_holder}" if disk.epoch else "none: nobody has held it yet"),
        ("record", _in_the_record(view, disk)),
    ]
    if home is not None:
        linked = "linked" if home.linked else "not linked"
        identity = f"epoch {home.epoch}, holder {home.holder}" if home.epoch is not None else "no identity"
        facts.append(("on the disk", f"{identity}, data {home.data}"))
        if home.older is not None:
            facts.append(("older copy", str(home.older)))
        facts.append(("etcd", f"{home.doing}; its manifest is {linked}"))
    notes = about(view, {disk.id, disk.member, *names_of(member)})
    return Explanation(
        kind="volume",
        name=disk.id,
        title=f"{disk.id} is the home of {member.name if member else disk.member}",
        facts=tuple(facts),
        said=tuple(sentences(notes)),
        next=for_a_person(view, notes) or next_for_volume(view, disk),
    )


def next_for_volume(view: ClusterView, disk: DiskView) -> str:
    """What will happen to it if nothing else does."""
    if disk.attached_to is None and disk.phase == Phase.SUPERSEDED.value:
        return "nothing: it is kept, and neither claimed nor deleted"
    if disk.attached_to is None:
        if not any(each.alive and not each.dead for each in view.hosts):
            return "a host has to come up; it then attaches the volume"
        return f"a master that holds no member of {disk.member.partition('/')[0]} attaches it in its next round"
    holder = view.host(disk.attached_to)
    if holder is None or holder.dead or not holder.alive:
        return f"the cloud takes it from {disk.attached_to}, which is gone, and a successor attaches it"
    match disk.phase:
        case "":
            return f"{disk.attached_to} says in its next round how far it is"
        case "attached":
            return (
                "its device is proven to be this volume and read; then it is formatted, if that is allowed, and mounted"
            )
        case "mounted":
            return "its manifest is linked once its name answers with the holder's address"
        case Phase.SUPERSEDED.value | Phase.UNUSED.value:
            return "nothing: it is kept, and neither served nor deleted; its holder gives it away"
        case phase if (known := from_text(phase)) is not None and known.is_refusal:
            return "nothing, until a person acts"
    if disk.mark != FORMED:
        return "it is marked formed once its cluster has a quorum and it has data"
    member = view.member(disk.member)
    return IN_ORDER if member is None or member.healthy else f"{member.name} becomes healthy: {member.why}"


def _holder(view: ClusterView, disk: DiskView) -> str:
    if disk.attached_to is None:
        return "nobody" + (f"; the last was {disk.last_holder}" if disk.last_holder else "")
    host = view.host(disk.attached_to)
    return (
        f"{host.name} ({host.address}), {host_state(host, view.at)}" if host else f"{disk.attached_to}, which is gone"
    )


def _home(view: ClusterView, disk: DiskView) -> HomeView | None:
    """As its holder sees it, mounted."""
    homes = (home for agent in view.agents if agent.host == disk.attached_to for home in agent.homes)
    return next((home for home in homes if home.volume == disk.id), None)


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
