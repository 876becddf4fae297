"""Render a view as one screen, and the difference of two views as lines. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

from protokube.cli.render.table import lasting, several, size, table
from protokube.errors import ExitCode
from protokube.launch.rollout import State
from protokube.members import alarms
from protokube.notes import Note
from protokube.view.cluster import ClusterView
from protokube.view.seen import AgentNote
from protokube.view.values import AgentView, DiskView, HostView, MemberView

T = TypeVar("T")
PERSON = "needs a person:"


def outcome(view: ClusterView) -> ExitCode:
    """The exit code, see docs/exit-codes.md. A need for a person takes precedence, even if the cluster serves."""
    if view.person:
        return ExitCode.REFUSED
    return ExitCode.OK if view.ready else ExitCode.TRY_LATER


def state(view: ClusterView) -> str:
    if view.daemon and view.daemon.stopped:
        return "stopped"
    if view.person:
        return "serving, and needs a person" if view.ready else "needs a person"
    return "ready" if view.ready else "not ready"


def render_status(view: ClusterView) -> list[str]:
    top = [headline(view), *source(view), *revision(view), *outside(view)]
    parts = [top, hosts(view), disks(view), members(view), records(view), exposed(view), troubles(view)]
    return [line for number, part in enumerate(filter(None, parts)) for line in ([""] if number else []) + part]


def headline(view: ClusterView) -> str:
    living = sum(each.alive and not each.dead for each in view.hosts)
    healthy = sum(each.healthy and not each.learner for each in view.members)
    counts = f"{several(living, 'host')}, {healthy} of {several(len(view.members), 'member')} healthy"
    return f"{view.cluster}: {state(view)} ({counts})"


def source(view: ClusterView) -> list[str]:
    """How old the reports are from which this is concluded: what happened since is not in them."""
    if not view.source:
        return []
    ages = sorted({lasting(each.age): each.age for each in view.agents}.items(), key=lambda each: each[1])
    span = " to ".join(dict.fromkeys((ages[0][0], ages[-1][0]))) + " ago" if ages else "never"
    return [f"as the agents reported it to {view.source} {span}; what happened since is not in it"]


def revision(view: ClusterView) -> list[str]:
    if view.rollout is None:
        return []
    wanted, state = view.rollout.wanted, view.rollout.state
    return [f"revision {wanted}" if state is State.DONE else f"revision {wanted}: {state.value}"]


def outside(view: ClusterView) -> list[str]:
    if view.outside is None:
        return []
    return [f"hosts {'reach' if view.outside.reached else 'do not reach'} the outside" + _because(view.outside.why)]


def _because(why: str) -> str:
    return f": {why}" if why else ""


def hosts(view: ClusterView) -> list[str]:
    with_api = any(each.serving is not None for each in view.agents)
    with_revision = view.rollout is not None
    rows = []
    for each in view.hosts:
        report = view.report(each.name)
        row: tuple[str, ...] = (
            each.name,
            each.group,
            each.address,
            host_state(each, view.at),
            _report(report),
            _round(view, report),
        )
        row = (*row, _present(view, report)) if with_revision else row
        rows.append((*row, _api(view, report)) if with_api else row)
    more = (*(["REVISION"] if with_revision else []), *(["API"] if with_api else []))
    return table(("HOST", "GROUP", "ADDRESS", "STATE", "REPORT", "ROUND", *more), rows)


def _present(view: ClusterView, report: AgentView | None) -> str:
    """The revision that a master runs, and the one that it should run."""
    if report is None or not report.revision or view.rollout is None:
        return ""
    wanted = view.rollout.wanted
    return str(wanted) if report.revision == wanted else f"{report.revision}, not {wanted}"


def _report(report: AgentView | None) -> str:
    return f"{lasting(report.age)} ago{', overdue' if report.stale else ''}" if report else ""


def _round(view: ClusterView, report: AgentView | None) -> str:
    if report is None or not report.elected:
        return str(report.round) if report else ""
    if not view.current(report.host):
        return f"{report.round}, was elected"
    return f"{report.round}, elected" if view.elected == report.host else f"{report.round}, claims to be elected"


def _api(view: ClusterView, report: AgentView | None) -> str:
    if report is None or report.serving is None:
        return ""
    if not view.current(report.host):
        return "was ready" if report.serving else "was not ready"
    return "ready" if report.serving else "not ready"


def host_state(host: HostView, now: float) -> str:
    if host.state:
        return host.state
    if host.dead:
        return "declared dead, still runs" if host.alive else "dead"
    if not host.alive:
        return "not running"
    return f"up for {lasting(now - host.since)}" if host.since is not None else "up"


def disks(view: ClusterView) -> list[str]:
    rows = [
        (
            each.id,
            each.member,
            size(each.size),
            each.attached_to or "",
            phase_state(view, each),
            mark(each),
            str(each.epoch or ""),
        )
        for each in view.disks
    ]
    return table(("DISK", "MEMBER", "SIZE", "HOLDER", "PHASE", "MARK", "EPOCH"), rows)


def phase_state(view: ClusterView, disk: DiskView) -> str:
    """The phase, marked `last known` if the report of its holder is stale, and what its provider has not completed."""
    current = not disk.phase or disk.attached_to is None or view.current(disk.attached_to)
    return ", ".join(each for each in (disk.phase, "" if current else "last known", disk.state) if each)


def mark(disk: DiskView) -> str:
    return disk.mark.partition(":")[0]


def members(view: ClusterView) -> list[str]:
    rows = [
        (
            each.name,
            each.host or "",
            member_state(each),
            str(each.raft_term or ""),
            str(each.revision or ""),
            size(each.db_size),
            each.version,
        )
        for each in view.members
    ]
    return table(("MEMBER", "HOST", "STATE", "TERM", "REVISION", "DB", "ETCD"), rows)


def member_state(member: MemberView) -> str:
    if not member.healthy:
        return alarms.state(member.alarms) or ("not healthy" if member.asked else "unknown")
    return "learner" if member.learner else "leader" if member.leader else "follower"


def records(view: ClusterView) -> list[str]:
    rows = [(each.name, ", ".join(each.values)) for each in view.records if each.type in ("A", "AAAA")]
    return table(("NAME", "ADDRESS"), rows)


def exposed(view: ClusterView) -> list[str]:
    return table(("PORT", "SERVICE", "STATE"), [(each.here, each.target, each.state) for each in view.exposed])


def troubles(view: ClusterView) -> list[str]:
    """What keeps the cluster from being ready, what it waits for and how long, and what only a person can do."""
    lacks = view.lacks
    lines: list[str] = [*_block("not ready:", lacks)]
    lines += _block("contradictions:", [each for each in view.contradictions if each not in lacks])
    lines += _block(
        "waiting:", [f"{subject(each)}{each.note.text}, for {lasting(each.seconds)}" for each in view.waits]
    )
    lines += _block(PERSON, [line for each in together(view.person) for line in note_lines(each)])
    lines += _block("warnings:", dict.fromkeys(each.note.text for each in view.warnings))
    lines += _block("broken, please report it:", [f"{subject(each)}{each.note.text}" for each in view.bugs])
    lines += _block("not seen:", view.notes)
    return lines


def note_lines(each: AgentNote) -> Iterator[str]:
    yield f"{subject(each)}{each.note.text}"
    yield from (f"  {name + ':':5} {text}" for name, text in (("saw", each.note.saw), ("hint", each.note.hint)) if text)


def together(notes: Sequence[AgentNote]) -> list[AgentNote]:
    """Merge identical notes of several agents into one entry with all their names."""
    found: dict[Note, list[AgentNote]] = {}
    for each in notes:
        found.setdefault(each.note, []).append(each)
    return [replace(same[0], host=", ".join(dict.fromkeys(each.host for each in same))) for same in found.values()]


def subject(each: AgentNote) -> str:
    """Prefix with the reporting host and its subject; empty for what was observed from outside."""
    if not each.host:
        return ""
    return f"{each.host}{' (last known)' if each.stale else ''}, {each.note.about or each.note.step}: "


def _block(title: str, lines: Collection[str]) -> list[str]:
    return [title, *(f"  {line}" for line in lines)] if lines else []


def render_changes(before: ClusterView | None, after: ClusterView) -> list[str]:
    """One line for each change, for a pipe or a log."""
    if before is None:
        needed = [f"{PERSON} {line}" for each in together(after.person) for line in note_lines(each)]
        return [headline(after), *(f"  {line}" for line in (*after.lacks, *needed))]
    lines = []
    if before.daemon and after.daemon and before.daemon.alive != after.daemon.alive:
        lines.append(f"the local cloud {'runs' if after.daemon.alive else 'does not run'}")
    lines += outside(after) if before.outside != after.outside else []
    lines += revision(after) if revision(before) != revision(after) else []
    lines += _changed(before.hosts, after.hosts, lambda each: each.name, _host_line)
    lines += _changed(before.disks, after.disks, lambda each: each.id, _disk_line)
    lines += _changed(before.members, after.members, lambda each: each.name, _member_line)
    was, now = _addresses(before), _addresses(after)
    lines += [f"{name} -> {now.get(name, 'nothing')}" for name in sorted(was | now) if was.get(name) != now.get(name)]
    shown = {line for each in before.person for line in note_lines(each)}
    lines += [f"{PERSON} {line}" for each in after.person for line in note_lines(each) if line not in shown]
    overdue, late = _overdue(before), _overdue(after)
    lines += [
        f"the agent of {host} has reported nothing for {late[host]:.0f} s" for host in late if host not in overdue
    ]
    lines += [f"the agent of {host} reports again" for host in overdue if after.current(host)]
    if state(before) != state(after):
        lines.append(headline(after))
    return lines


def _changed(before: Sequence[T], after: Sequence[T], name: Callable[[T], str], line: Callable[[T], str]) -> list[str]:
    was = {name(each): line(each) for each in before}
    now = {name(each): line(each) for each in after}
    return [now.get(each, f"{each} is gone") for each in (was | now) if was.get(each) != now.get(each)]


def _overdue(view: ClusterView) -> dict[str, float]:
    """By host, the age of the last report, where the next one is overdue."""
    return {each.host: each.age for each in view.agents if each.stale}


def _addresses(view: ClusterView) -> dict[str, str]:
    return {each.name: ", ".join(each.values) for each in view.records if each.type == "A"}


def _host_line(host: HostView) -> str:
    state = host.state or ("declared dead" if host.dead else "up" if host.alive else "not running")
    return f"{host.name} ({host.address}) is {state}"


def _disk_line(disk: DiskView) -> str:
    free = "held by nobody" if disk.state else "free"
    where = f"on {disk.attached_to}, {disk.phase or 'attached'}" if disk.attached_to else free
    where += f", {disk.state}" if disk.state else ""
    return f"{disk.id} ({disk.member}) is {where}, marked {mark(disk) or 'nothing'}, epoch {disk.epoch}"


def _member_line(member: MemberView) -> str:
    return f"{member.name} is {member_state(member)}" + (f" on {member.host}" if member.host else "")
