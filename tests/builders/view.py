"""Views of clusters: one that is ready, from which a test takes away what it is about."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Self

from fakes.event_loops import close_server, end_tasks
from protokube.local.base.paths import Paths
from protokube.members.generation import Generation, encode
from protokube.members.start_values import Listed
from protokube.notes import Note
from protokube.records import Record
from protokube.store import layout
from protokube.store.file import FileStore
from protokube.view.cluster import ClusterView
from protokube.view.values import AgentView, DaemonView, DiskView, HostView, MemberView, MountedVolumeView

CLUSTER = "dev.local"
NOW = 1_800_000_000.0
REPORTED = NOW - 2
"""When the agents of a view wrote their last report."""
SHORTS = ("a", "b", "c")
GIGABYTE = 2**30


def a_note(
    text: str, *, step: str = "volumes", about: str = "", hint: str = "", saw: str = "", lasted: float | None = None
) -> Note:
    """`lasted`: seconds that a wait had lasted when its agent reported it (`an_agent`)."""
    since = None if lasted is None else REPORTED - lasted
    return Note(step=step, about=about, text=text, hint=hint, saw=saw, since=since)


def a_host(number: int = 0, **changes: Any) -> HostView:
    told = HostView(
        id=f"master-{number}", name=f"master-{number}", group="masters", address=f"10.77.0.{11 + number}", alive=True,
        since=NOW - 300, pid=1000 + number,
        peers=tuple(f"10.77.0.{11 + other}" for other in range(3) if other != number),
    )  # fmt: skip
    return replace(told, **changes)


def a_disk(short: str = "a", **changes: Any) -> DiskView:
    number = SHORTS.index(short)
    told = DiskView(
        id=f"vol-{short * 4}", member=f"main/{short}", size=20 * GIGABYTE, attached_to=f"master-{number}",
        mark="formed", epoch=1, last_holder=f"master-{number}", phase="serving",
    )  # fmt: skip
    return replace(told, **changes)


def listed(shorts: tuple[str, ...] = SHORTS) -> tuple[Listed, ...]:
    return tuple(
        Listed(
            id=0xA0 + SHORTS.index(short), name=f"etcd-{short}",
            peer_urls=(f"https://etcd-{short}.internal.{CLUSTER}:2380",),
            client_urls=(f"https://etcd-{short}.internal.{CLUSTER}:4001",),
        )
        for short in shorts
    )  # fmt: skip


def a_member(short: str = "a", **changes: Any) -> MemberView:
    number = SHORTS.index(short)
    told = MemberView(
        member=f"main/{short}", name=f"etcd-{short}", dns_name=f"etcd-{short}.internal.{CLUSTER}",
        volume=f"vol-{short * 4}", host=f"master-{number}", url=f"https://127.0.0.1:{4100 + number}", healthy=True,
        id=0xA0 + number, cluster_id=0xC1, leader_id=0xA0, raft_term=2, revision=10, version="3.5.1", db_size=20480,
        listed=listed(),
    )  # fmt: skip
    return replace(told, **changes)


def an_agent(number: int = 0, **changes: Any) -> AgentView:
    short = SHORTS[number]
    mounted = MountedVolumeView(
        member=f"main/{short}", volume=f"vol-{short * 4}", epoch=1, holder=f"master-{number}", generation="g1",
        data="present", doing="going on", why="", linked=True,
    )  # fmt: skip
    told = AgentView(
        host=f"master-{number}", at=REPORTED, age=2.0, round=7, elected=number == 0, mounted=(mounted,),
        phases={f"vol-{short * 4}": "serving"},
    )  # fmt: skip
    return replace(told, **changes)


def a_generation(**changes: Any) -> Generation:
    told = Generation(
        id="g1", etcd_cluster="main", token="t1", founders={short: f"vol-{short * 4}" for short in SHORTS},
        replacements={}, open=False,
    )  # fmt: skip
    return replace(told, **changes)


def names_of(addresses: Mapping[str, str]) -> tuple[Record, ...]:
    """Member names and the API's, as they are when every host has its address."""
    found = [
        Record(name=f"api.internal.{CLUSTER}", type="A", values=tuple(sorted(set(addresses.values()))), ttl=10),
    ]
    for short, address in addresses.items():
        name = f"etcd-{short}.internal.{CLUSTER}"
        found.append(Record(name=name, type="A", values=(address,), ttl=5))
        holder = f"master-{int(address.rpartition('.')[2]) - 11}"
        found.append(Record(name=name, type="TXT", values=(f"protokube epoch=1 holder={holder}",), ttl=5))
    return tuple(sorted(found))


def a_view(**changes: Any) -> ClusterView:
    """Everything in order, but for what the test changes."""
    told = ClusterView(
        cluster=CLUSTER,
        at=NOW,
        daemon=DaemonView(alive=True, pid=77),
        hosts=tuple(a_host(number) for number in range(3)),
        disks=tuple(a_disk(short) for short in SHORTS),
        members=tuple(a_member(short) for short in SHORTS),
        records=names_of({short: f"10.77.0.{11 + number}" for number, short in enumerate(SHORTS)}),
        generations={"main": a_generation()},
        agents=tuple(an_agent(number) for number in range(3)),
        api_names=(f"api.internal.{CLUSTER}", f"api.{CLUSTER}"),
    )
    return replace(told, **changes)


def but(items: tuple[Any, ...], index: int, **changes: Any) -> tuple[Any, ...]:
    """The same tuple with one of its values changed."""
    return (*items[:index], replace(items[index], **changes), *items[index + 1 :])


Answer = Callable[[dict[str, Any]], Any]


class FakeCloud:
    """The far side of the admin socket: answers each call by name with a value, or with what a function returns."""

    def __init__(self, path: Path, answers: Mapping[str, Any | Answer]) -> None:
        self.path, self.answers = path, dict(answers)
        self.asked: list[dict[str, Any]] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._there = threading.Event()
        self._stop: asyncio.Event | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._there.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        assert self._stop is not None
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)

    def _run(self) -> None:
        self._loop.run_until_complete(self._serve())
        self._loop.close()

    async def _serve(self) -> None:
        self._stop = asyncio.Event()
        server = await asyncio.start_unix_server(self._talk, path=str(self.path))
        self._there.set()
        await self._stop.wait()
        await close_server(server)
        await end_tasks(cancel=False)

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            told = json.loads(await reader.readline())
            self.asked.append(told)
            found = self.answers.get(told["call"])
            result = found(told) if callable(found) else found
            writer.write(json.dumps({"result": result}).encode() + b"\n")
            await writer.drain()
        except ArithmeticError:  # how a test has it hang up without an answer
            pass
        finally:
            writer.close()
            await writer.wait_closed()


def cloud_rows(view: ClusterView) -> dict[str, Any]:
    """What the admin socket of a cloud in this state answers."""
    hosts = [
        {"name": each.name, "group": each.group, "zone": "local", "master": True, "address": each.address,
         "pid": None, "started": None, "dead": each.dead, "running": each.alive}
        for each in view.hosts
    ]  # fmt: skip
    volumes = [
        {"id": each.id, "zone": "local", "etcd_cluster": each.member.split("/")[0], "member": each.member[-1],
         "members": list(SHORTS), "size": each.size, "made_empty": True, "attached_to": each.attached_to,
         "mark": each.mark, "epoch": each.epoch, "last_holder": each.last_holder, "request": ""}
        for each in view.disks
    ]  # fmt: skip
    records = [asdict(each) for each in view.records]
    about = {"outside": asdict(view.outside)} if view.outside else {}
    return {"hosts": hosts, "volumes": volumes, "records": records, "forwards": [], "about": about}


def status_file(agent: AgentView) -> dict[str, Any]:
    """What that agent's status.json holds."""

    def told(notes: tuple[Note, ...]) -> list[dict[str, str]]:
        return [{name: value for name, value in asdict(note).items() if value} for note in notes]

    volumes = [{"id": volume, "phase": phase} for volume, phase in agent.phases.items()]
    mounted = [{**asdict(each), "name": "", "dnsName": ""} for each in agent.mounted]
    report = {
        "did": told(agent.did), "waiting": told(agent.waits), "needsAPerson": told(agent.person),
        "broken": told(agent.bugs),
    }  # fmt: skip
    return {"at": agent.at, "round": agent.round, "took": agent.took, "nextWithin": agent.next_within,
            "elected": agent.elected, "revision": agent.revision, "report": report, "volumes": volumes,
            "members": mounted}  # fmt: skip


def write_state(parent: Path, view: ClusterView, cluster: str = CLUSTER) -> Paths:
    """The folder of a local cloud in this state, without the cloud itself."""
    paths = Paths.at(parent / cluster)
    paths.create()
    for key, generation in view.generations.items():
        if generation is not None:
            FileStore(paths.store).put(layout.etcd_generation(cluster, key), encode(generation))
    for agent in view.agents:
        file = paths.host(agent.host) / "run/protokube/status.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(status_file(agent)))
        written = time.time() - agent.age
        os.utime(file, (written, written))
    return paths


class ShortFolder:
    """A folder whose path is short enough for a socket, wherever pytest keeps its own."""

    def __enter__(self) -> Path:
        self.path = Path(tempfile.mkdtemp(prefix="pkv-"))
        return self.path

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
