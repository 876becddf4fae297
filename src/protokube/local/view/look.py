"""Look at a local cluster from outside: hosts, disks, members, names, and what each agent says of itself.

No Kubernetes API is needed, and every part may be absent. All members are asked at the same time, each within its own
bound, so a look takes two seconds at the most, however broken the cluster is.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import replace
from types import TracebackType
from typing import Self

from protokube.errors import ProtokubeError
from protokube.etcd.client import GatewayEtcd
from protokube.launch.machine import MasterConfig
from protokube.local.base import client_files
from protokube.local.base.paths import Paths
from protokube.local.view import sources
from protokube.members.alarms import meaning
from protokube.providers.clients.local import LocalClient
from protokube.view.cluster import ClusterView
from protokube.view.parts import disk_views, expect
from protokube.view.values import HostView, MemberView

SECONDS = 0.8
"""For each of the two questions a member is asked."""
PATIENCE = 2 * SECONDS
MOST_AT_ONCE = 16


def look(paths: Paths) -> ClusterView:
    """One look."""
    with Looker(paths) as looker:
        return looker.look()


class Looker:
    """Looks again and again, and keeps its connections meanwhile."""

    def __init__(self, paths: Paths, seconds: float = SECONDS) -> None:
        self.paths, self._seconds = paths, seconds
        self.cloud = LocalClient(paths.admin_socket, patience=sources.PATIENCE)
        self._clients: dict[tuple[str, str], GatewayEtcd] = {}
        self._closed, self._lock = False, threading.Lock()
        self._pool = ThreadPoolExecutor(MOST_AT_ONCE)
        self._asked: dict[MemberView, Future[MemberView]] = {}
        """Members that have not answered yet."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)
        with self._lock:  # members are still being asked, in threads that nobody waits for
            self._closed = True
            for client in self._clients.values():
                client.close()

    def look(self, patience: float = PATIENCE) -> ClusterView:
        """One look; a member that does not answer within `patience` is asked on, for the next one."""
        seen = sources.inventory(self.paths, self.cloud, self._pool)
        names = [str(each["name"]) for each in seen.hosts]
        wanted = sources.master_config(self.paths, names)
        peer_ports = [each.pod.peer_port for each in wanted.etcd] if wanted else []
        agents = [found for name in names if (found := sources.agent_view(self.paths, name)) is not None]
        keys = sorted({str(each["etcd_cluster"]) for each in seen.volumes})
        records = sources.generations(self.paths, keys)
        disks = disk_views(seen.volumes, agents, records)
        ports = sources.ports(self.cloud, seen, client_ports(wanted)) if wanted else seen.ports
        expected = expect(wanted, disks, self.paths.cluster, ports)
        return ClusterView(
            cluster=self.paths.cluster,
            at=time.time(),
            daemon=seen.daemon,
            outside=seen.outside,
            exposed=seen.exposed,
            hosts=tuple(sources.host_view(each, peer_ports) for each in seen.hosts),
            disks=disks,
            members=tuple(self.answers(expected, patience) if seen.daemon.alive else map(unasked, expected)),
            records=seen.records,
            generations={key: records.get(key) for key in dict.fromkeys(each.key for each in expected)},
            agents=tuple(agents),
            rollout=sources.rollout(self.paths),
            api_names=wanted.api_names if wanted else (f"api.internal.{self.paths.cluster}",),
            notes=seen.notes,
        )

    def answers(self, expected: Sequence[MemberView], patience: float) -> list[MemberView]:
        """An answer counts only if it was asked for where the member lives now."""
        asked = {each: self._asked.get(each) or self._pool.submit(self.ask, each) for each in expected}
        wait(asked.values(), patience)
        self._asked = {each: answer for each, answer in asked.items() if not answer.done()}
        return [
            answer.result() if answer.done() else replace(each, why="it has not answered yet")
            for each, answer in asked.items()
        ]

    def ask(self, member: MemberView) -> MemberView:
        """What etcd itself says there, behind a quorum."""
        if not member.url:
            return replace(member, why="no port of this machine leads to it yet")
        if member.host is None:
            return replace(member, why="nobody holds its volume")
        try:
            client = self._client(member.name, member.url)
            status = client.status(member.name)
        except ProtokubeError as why:
            return replace(member, why=reason(why, member))
        member = replace(
            member, id=status.member_id, cluster_id=status.cluster_id, leader_id=status.leader,
            raft_term=status.raft_term, revision=status.revision, learner=status.learner, version=status.version,
            db_size=status.db_size, db_in_use=status.db_size_in_use,
        )  # fmt: skip
        if not status.leader:
            return replace(member, why="it knows no leader")
        try:
            listed = tuple(client.listed_by(member.name) if status.learner else client.members())
            alarms = tuple(client.alarms()) if status.errors else ()
        except ProtokubeError as why:
            return replace(member, why=reason(why, member))
        who = next((each.name for each in listed if each.id == status.member_id), "")
        if who != member.name:
            return replace(member, why=f"{who or f'member {status.member_id:x}'} answers in its place")
        if status.errors:
            raised = meaning(alarms, {each.id: each.name for each in listed})
            return replace(member, alarms=alarms, listed=listed, why=raised or "; ".join(status.errors))
        return replace(member, healthy=True, listed=listed)

    def _client(self, name: str, url: str) -> GatewayEtcd:
        with self._lock:
            if (name, url) not in self._clients:
                self._clients[name, url] = GatewayEtcd(
                    {name: url}, client_files.etcd_tls(self.paths), timeout=self._seconds
                )
                if self._closed:
                    self._clients[name, url].close()  # it keeps no connection
            return self._clients[name, url]


def unasked(member: MemberView) -> MemberView:
    """It may well serve: the way to it leads through the cloud, and that does not run."""
    return replace(member, asked=False, why="it cannot be asked while the local cloud does not run")


def reason(why: ProtokubeError, member: MemberView) -> str:
    """Why a member did not answer; a forward with nothing behind it hangs up, and TLS has its own words for that."""
    text = why.saw or why.message
    hung_up = any(each in text for each in ("UNEXPECTED_EOF", "Connection refused", "Connection reset", "closed"))
    if hung_up:
        return f"nothing answers at {member.dns_name} yet"
    return f"{member.dns_name} does not answer in time" if "timed out" in text else text


def client_ports(wanted: MasterConfig) -> list[tuple[str, int]]:
    """Where clients reach each member, by its name."""
    return [(each.dns_name, etcd.pod.client_port) for etcd in wanted.etcd for each in etcd.members]


__all__ = ["ClusterView", "HostView", "Looker", "look"]
