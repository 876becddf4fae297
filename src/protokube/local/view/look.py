"""Look at a local cluster from outside: hosts, disks, members, names, and what each agent says of itself.

No Kubernetes API is needed, and every part may be absent. All members are asked at the same time, each within its own
bound, so a look takes two seconds at the most, however broken the cluster is.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import replace
from types import MappingProxyType, TracebackType
from typing import Self

from protokube.config.pki import member_name
from protokube.errors import ProtokubeError
from protokube.etcd.client import GatewayEtcd
from protokube.launch.machine import MasterConfig
from protokube.local.base import client_files
from protokube.local.base.paths import Paths
from protokube.local.view import sources
from protokube.members.alarms import meaning
from protokube.members.generation import Generation
from protokube.members.phases import OWN, Phase, from_text, phase_of
from protokube.members.unused import TaggedVolume, spares
from protokube.providers.clients.local import LocalClient
from protokube.view.cluster import ClusterView
from protokube.view.values import AgentView, DiskView, HostView, MemberView

SECONDS = 0.8
"""For each of the two questions a member is asked."""
PATIENCE = 2 * SECONDS
MOST_AT_ONCE = 16
NOT_IN_USE = (Phase.SUPERSEDED.value, Phase.UNUSED.value)


def look(paths: Paths) -> ClusterView:
    """One look."""
    with Looker(paths) as looker:
        return looker.look()


class Looker:
    """Looks again and again, and keeps its connections meanwhile."""

    def __init__(self, paths: Paths) -> None:
        self.paths = paths
        self.cloud = LocalClient(paths.admin_socket, patience=sources.PATIENCE)
        self._clients: dict[tuple[str, str], GatewayEtcd] = {}
        self._pool = ThreadPoolExecutor(MOST_AT_ONCE)
        self._asked: dict[MemberView, Future[MemberView]] = {}
        """Members that have not answered yet."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)
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
        if (name, url) not in self._clients:
            self._clients[name, url] = GatewayEtcd({name: url}, client_files.etcd_tls(self.paths), timeout=SECONDS)
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


def disk_views(
    volumes: Iterable[sources.Row],
    agents: Sequence[AgentView],
    records: Mapping[str, Generation | None] = MappingProxyType({}),
) -> tuple[DiskView, ...]:
    """Volumes in the order of their members; the phase is the holder's own word, and of a free one the record's."""
    reported = {agent.host: agent.phases for agent in agents}
    volumes = tuple(volumes)
    superseded = {volume for record in records.values() if record is not None for volume in record.superseded}
    tagged = (TaggedVolume(x["id"], (x["etcd_cluster"], x["member"]), x["epoch"], x["mark"]) for x in volumes)
    unused = spares(tagged, superseded)
    found = [
        DiskView(
            id=each["id"],
            member=f"{each['etcd_cluster']}/{each['member']}",
            size=each["size"],
            attached_to=each["attached_to"],
            mark=each["mark"],
            epoch=each["epoch"],
            last_holder=each["last_holder"],
            phase=phase(reported.get(each["attached_to"], {}).get(each["id"], ""))
            if each["attached_to"]
            else phase_of(None, "", superseded=each["id"] in superseded, spare=each["id"] in unused).value,
        )
        for each in volumes
    ]
    return tuple(sorted(found, key=lambda disk: (not disk.member.startswith("main/"), disk.member, disk.id)))


def phase(text: str) -> str:
    """What a holder says of its own volume; a word from before it held it says nothing."""
    return text if from_text(text) in OWN else ""


def client_ports(wanted: MasterConfig) -> list[tuple[str, int]]:
    """Where clients reach each member, by its name."""
    return [(each.dns_name, etcd.pod.client_port) for etcd in wanted.etcd for each in etcd.members]


def expect(
    wanted: MasterConfig | None, disks: Sequence[DiskView], cluster: str, ports: Mapping[tuple[str, int], int]
) -> list[MemberView]:
    """The fixed set of members, and where each is now; before masters have a configuration, by volume tags."""
    if wanted is None:
        return [_placed(each, member_name(*each.split("/")), cluster, disks) for each in _tagged(disks)]
    found = []
    for etcd in wanted.etcd:
        for configured in etcd.members:
            port = ports.get((configured.dns_name, etcd.pod.client_port))
            member = _placed(f"{etcd.key}/{configured.short}", configured.name, cluster, disks)
            found.append(replace(member, dns_name=configured.dns_name, url=f"https://127.0.0.1:{port}" if port else ""))
    return found


def _tagged(disks: Sequence[DiskView]) -> list[str]:
    return list(dict.fromkeys(each.member for each in disks))


def _placed(member: str, name: str, cluster: str, disks: Sequence[DiskView]) -> MemberView:
    current = (each for each in disks if each.member == member and each.phase not in NOT_IN_USE)
    volumes = sorted(current, key=lambda disk: disk.attached_to is None)
    volume = volumes[0] if volumes else None
    return MemberView(
        member=member,
        name=name,
        dns_name=f"{name}.internal.{cluster}",
        volume=volume.id if volume else None,
        host=volume.attached_to if volume else None,
    )


__all__ = ["ClusterView", "HostView", "Looker", "look"]
