"""Render a view as data: the same snapshot that the screen shows. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from protokube.cli.render.status import outcome, state
from protokube.launch.rollout import Rollout
from protokube.records import Record
from protokube.view.cluster import ClusterView
from protokube.view.seen import AgentNote
from protokube.view.values import AgentView, DaemonView, DiskView, ExposedView, HostView, MemberView

Tree = dict[str, Any]


def view_tree(view: ClusterView) -> Tree:
    return {
        "cluster": view.cluster,
        "at": round(view.at, 3),
        "ready": view.ready,
        "state": state(view),
        "exitCode": int(outcome(view)),
        "lacks": list(view.lacks),
        "contradictions": list(view.contradictions),
        "source": view.source or None,
        "ages": ages_tree(view),
        "daemon": daemon_tree(view.daemon) if view.daemon else None,
        "outside": asdict(view.outside) if view.outside else None,
        "exposed": [exposed_tree(each) for each in view.exposed],
        "rollout": rollout_tree(view.rollout) if view.rollout else None,
        "hosts": [host_tree(each) for each in view.hosts],
        "disks": [disk_tree(view, each) for each in view.disks],
        "members": [member_tree(each) for each in view.members],
        "records": [record_tree(each) for each in view.records],
        "generations": {key: asdict(each) if each else None for key, each in view.generations.items()},
        "agents": [agent_tree(view, each) for each in view.agents],
        "waiting": report_trees(view.waits, lasting=True),
        "needsAPerson": report_trees(view.person),
        "broken": report_trees(view.bugs),
        "notSeen": list(view.notes),
    }


def ages_tree(view: ClusterView) -> Tree | None:
    """Seconds since the newest and the oldest report from which all of this is concluded; null for a look at it now."""
    ages = [round(each.age, 2) for each in view.agents]
    return {"newest": min(ages), "oldest": max(ages)} if view.source and ages else None


def daemon_tree(daemon: DaemonView) -> Tree:
    return {
        "alive": daemon.alive,
        "pid": daemon.pid,
        "why": daemon.why,
        "stopped": daemon.stopped,
        "notStarting": dict(daemon.not_starting),
    }


def exposed_tree(exposed: ExposedView) -> Tree:
    return {
        "address": exposed.address,
        "localPort": exposed.local_port,
        "namespace": exposed.namespace,
        "service": exposed.service,
        "port": exposed.port,
        "listening": exposed.listening,
        "why": exposed.why,
    }


def rollout_tree(record: Rollout) -> Tree:
    return asdict(record) | {"state": record.state.value}


def host_tree(host: HostView) -> Tree:
    return {
        "id": host.id,
        "name": host.name,
        "group": host.group,
        "address": host.address,
        "alive": host.alive,
        "declaredDead": host.dead,
        "since": round(host.since, 2) if host.since is not None else None,
        "pid": host.pid,
        "state": host.state or None,
        "connectedTo": None if host.peers is None else list(host.peers),
    }


def disk_tree(view: ClusterView, disk: DiskView) -> Tree:
    return {
        "id": disk.id,
        "member": disk.member,
        "size": disk.size,
        "attachedTo": disk.attached_to,
        "state": disk.state or "settled",
        "phase": disk.phase,
        "phaseIsCurrent": disk.attached_to is None or view.current(disk.attached_to) is not None,
        "mark": disk.mark,
        "epoch": disk.epoch,
        "lastHolder": disk.last_holder,
    }


def member_tree(member: MemberView) -> Tree:
    """Ids are in hex, as etcdctl prints them."""
    return {
        "member": member.member,
        "name": member.name,
        "dnsName": member.dns_name,
        "volume": member.volume,
        "host": member.host,
        "url": member.url,
        "asked": member.asked,
        "askedBy": member.asked_by or None,
        "age": round(member.age, 2),
        "healthy": member.healthy,
        "why": member.why,
        "id": f"{member.id:x}",
        "clusterId": f"{member.cluster_id:x}",
        "leader": member.leader,
        "learner": member.learner,
        "raftTerm": member.raft_term,
        "revision": member.revision,
        "dbSize": member.db_size,
        "dbInUse": member.db_in_use,
        "alarms": [each.name for each in member.alarms],
        "version": member.version,
    }


def record_tree(record: Record) -> Tree:
    return {"name": record.name, "type": record.type, "values": list(record.values), "ttl": record.ttl}


def agent_tree(view: ClusterView, agent: AgentView) -> Tree:
    """`elected` and `serving` hold now; `lastKnown` has what the last report contains, even if it is stale."""
    current = view.current(agent.host) is not None
    did = [{name: value for name, value in asdict(each).items() if value} for each in agent.did]
    mounted = [asdict(each) for each in agent.mounted]
    return {
        "host": agent.host,
        "at": agent.at,
        "age": round(agent.age, 2),
        "nextWithin": agent.next_within,
        "stale": agent.stale,
        "round": agent.round,
        "revision": agent.revision,
        "elected": view.elected == agent.host,
        "serving": agent.serving if current else None,
        "lastKnown": {"elected": agent.elected, "serving": agent.serving},
        "did": did,
        "members": mounted,
    }


def report_trees(reports: Sequence[AgentNote], *, lasting: bool = False) -> list[Tree]:
    found = []
    for each in reports:
        tree: Tree = {"host": each.host} | ({"stale": True} if each.stale else {})
        tree |= {name: value for name, value in asdict(each.note).items() if value}
        found.append(tree | ({"seconds": round(each.seconds, 1)} if lasting else {}))
    return found
