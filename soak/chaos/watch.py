"""Observe a cluster from outside every second, by /proc, /sys and the agents' files, and record broken invariants."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from protokube.errors import ProtokubeError
from protokube.local.base.processes import processes, started_at
from protokube.local.disk import loops, mounts
from protokube.local.view.look import Looker
from protokube.view.cluster import ClusterView
from protokube.view.values import AgentView
from soak.chaos.clients import Clients
from soak.chaos.field import Field, program
from soak.chaos.invariants import Etcd, Judge, Look, Process

EVERY = 1.0
CRASHES = ("Traceback (most recent call last)", "Exception in thread")
DATA = Path("/var/etcd/data")


class Watch:
    """A context in which the cluster is observed."""

    def __init__(self, field: Field, clients: Clients) -> None:
        self.found: list[str] = []
        self.alarm = threading.Event()
        """Set once something is broken."""
        self.looks = 0
        self._field, self._clients, self._judge = field, clients, Judge()
        self._looker = Looker(field.paths)
        self._read: dict[Path, int] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._over.set()
        self._thread.join(30)
        self._looker.close()

    def look(self) -> ClusterView:
        """The view that `status` has."""
        return self._looker.look()

    def _run(self) -> None:
        while not self._over.wait(EVERY):
            with suppress(ProtokubeError, OSError):  # the cloud is busy, or a process ended between two reads
                self.report(*self._judge.feed(self._see()))
                self.looks += 1

    def report(self, *broken: str) -> None:
        if broken:
            self.found += broken
            self.alarm.set()

    def _see(self) -> Look:
        hosts = [each for each in self._field.admin.call("hosts") if each["running"]]
        inside = {pid: host["name"] for host in hosts for pid in processes(host["pid"])}
        living = {host["name"] for host in hosts if not host["dead"]}
        devices = {each.number: each for each in loops.bound_under(self._field.paths.disks) if not each.is_cut}
        volumes = {each["id"]: each for each in self._field.admin.call("volumes")}
        view = self.look()
        return Look(
            at=time.monotonic(),
            mounts=frozenset(
                (devices[each.number].image.stem, inside[each.pid])
                for each in mounts.who_has(set(devices))
                if each.pid in inside
            ),
            devices=Counter(each.image.stem for each in devices.values()),
            etcds=frozenset(
                etcd for pid, host in inside.items() if host in living for etcd in _etcd(pid, host, devices, volumes)
            ),
            rounds={each.host: each.round for each in view.agents if each.host in living},
            ready=view.ready,
            answered=self._clients.last_ok,
            calling=not self._clients.paused,
            bugs=frozenset([*(f"{x.host}: {x.note.step} {x.note.text}" for x in view.bugs), *self._crashes()]),
            unexplained=frozenset(unexplained(view)),
        )

    def _crashes(self) -> Iterator[str]:
        """Tracebacks in the agents' logs: a crashed thread is reported nowhere else."""
        for log in self._field.paths.hosts.glob("*/var/log/protokube.service.log"):
            with suppress(OSError):
                with log.open(errors="replace") as file:
                    file.seek(self._read.get(log, 0) if self._read.get(log, 0) <= log.stat().st_size else 0)
                    text = file.read()
                    self._read[log] = file.tell()
                if any(each in text for each in CRASHES):
                    yield f"{log.parents[2].name}: {last_line_of_traceback(text)}"


def _etcd(
    pid: int, host: str, devices: Mapping[tuple[int, int], loops.Loop], volumes: Mapping[str, Mapping[str, Any]]
) -> Iterator[Etcd]:
    """Yields one Etcd if this process is etcd with its data on a disk of the cluster."""
    if program(pid) != "etcd":
        return
    with suppress(OSError):
        for mount in mounts.read_table(pid, Path(f"/proc/{pid}/mountinfo").read_text()):
            if mount.point == DATA and mount.number in devices:
                volume = devices[mount.number].image.stem
                tags = volumes.get(volume)
                member = f"{tags['etcd_cluster']}/{tags['member']}" if tags else ""
                yield Etcd(host, volume, member, Process(pid, started_at(pid)))


def unexplained(view: ClusterView) -> Iterator[str]:
    """Members whose volume is attached to a live host but not served, and whose agent gives no reason."""
    agents = {each.host: each for each in view.agents}
    for disk in view.disks:
        host, agent = view.host(disk.attached_to), agents.get(disk.attached_to or "")
        if host is None or agent is None or host.dead or not host.alive or disk.phase == "serving":
            continue
        if not gives_a_reason(agent, disk.member, disk.id):
            yield f"{disk.member} on {host.name}"


def gives_a_reason(agent: AgentView, member: str, volume: str) -> bool:
    short = f"etcd-{member.partition('/')[2]}."
    notes = (*agent.waits, *agent.person)
    named = any(note.about in (member, volume, "") or note.about.startswith(short) for note in notes)
    return named or any(each.doing in ("waiting", "refused") for each in agent.mounted if each.member == member)


def last_line_of_traceback(text: str) -> str:
    """The error line: the first line of the last traceback that is not indented."""
    start = max(text.rfind(each) for each in CRASHES)
    lines = text[start:].splitlines()[1:]
    return next((line for line in lines if line and not line.startswith((" ", "Traceback"))), lines[0] if lines else "")
