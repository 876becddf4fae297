"""Where a view comes from: the cloud's socket or its database, the agents' status files, the store, etcd itself.

Each source may be silent, half written or of another time. What cannot be read is left out, with a reason; nothing here
raises for it, since a view is asked for exactly when things are broken.
"""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from protokube.errors import ProtokubeError
from protokube.launch.boot import read_launch_document
from protokube.launch.machine import MasterConfig
from protokube.launch.revisions import read_rollout
from protokube.launch.rollout import Rollout
from protokube.local.base.db import Database, KeptRecords
from protokube.local.base.paths import Paths
from protokube.local.cloud.host_registry import HostRegistry
from protokube.local.cloud.volumes import Volumes
from protokube.local.host import hosts
from protokube.local.outside.config import SETTING
from protokube.members.generation import Generation, decode
from protokube.providers.clients.local import LocalClient
from protokube.records import Record
from protokube.store import layout
from protokube.store.file import FileStore
from protokube.view.reports import read_agent
from protokube.view.values import AgentView, DaemonView, ExposedView, HostView, OutsideView

PATIENCE = 1.0
"""Seconds for one answer of the cloud."""
ESTABLISHED = "01"
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Inventory:
    """What the cloud knows: from its socket, or, while nobody answers there, from its database."""

    daemon: DaemonView
    outside: OutsideView | None = None
    hosts: Sequence[Row] = ()
    volumes: Sequence[Row] = ()
    records: tuple[Record, ...] = ()
    ports: Mapping[tuple[str, int], int] = field(default_factory=dict)
    """The port of this machine that leads to a name and port inside."""
    exposed: tuple[ExposedView, ...] = ()
    notes: tuple[str, ...] = ()


def inventory(paths: Paths, client: LocalClient, pool: Executor) -> Inventory:
    """All questions at once: a cloud that hangs costs the time of one."""
    try:
        questions = ("hosts", "volumes", "records", "forwards", "about")
        found, volumes, records, forwards, about = pool.map(client.call, questions)
        outside = about.get("outside")  # a daemon of a former version reports neither this nor `not_starting`
        return Inventory(
            daemon=DaemonView(alive=True, pid=read_pid(paths.pid_file), not_starting=about.get("not_starting", {})),
            outside=OutsideView(**outside) if outside else None,
            hosts=found,
            volumes=volumes,
            records=tuple(read_record(each) for each in records),
            ports=_ports(forwards),
            exposed=tuple(ExposedView(**each) for each in about.get("exposed", ())),
        )
    except ProtokubeError as why:
        silent = DaemonView(
            alive=False,
            pid=read_pid(paths.pid_file),
            why=why.saw or why.message,
            timed_out=isinstance(why.__cause__, TimeoutError),
            stopped=paths.stopped.exists(),
        )
        return _from_database(paths, silent)


def _from_database(paths: Paths, daemon: DaemonView) -> Inventory:
    if not paths.database.is_file():
        return Inventory(daemon=daemon, notes=(f"{paths.database} is not there",))
    try:
        database = Database(paths.database)
        try:
            return Inventory(
                daemon=daemon,
                outside=_outside_without_daemon(database.setting(SETTING, {}).get("isolated")),
                hosts=[
                    {**asdict(each), "running": runs(each.pid, each.started)}
                    for each in HostRegistry(database).living()
                ],
                volumes=[asdict(each) for each in Volumes(database).everything()],
                records=tuple(KeptRecords(database).load()),
                ports=_ports([dict(row) for row in database.rows("SELECT * FROM forwards")]),
                exposed=tuple(
                    ExposedView(**dict(row), listening=False, why="the local cloud does not run")
                    for row in database.rows("SELECT * FROM exposed ORDER BY address, local_port")
                ),
            )
        finally:
            database.close()
    except sqlite3.Error as why:
        return Inventory(daemon=daemon, notes=(f"{paths.database} cannot be read: {why}",))


def _outside_without_daemon(isolated: bool | None) -> OutsideView:
    return OutsideView(reached=False, isolated=isolated, why="the local cloud does not run")


def ports(client: LocalClient, seen: Inventory, wanted: Sequence[tuple[str, int]]) -> Mapping[tuple[str, int], int]:
    """The ports of this machine, after having those made that are missing: without one, a member cannot be asked."""
    if not seen.daemon.alive or all(pair in seen.ports for pair in wanted):
        return seen.ports
    try:
        return _ports(client.call("forwards", wanted=[{"name": name, "port": port} for name, port in wanted]))
    except ProtokubeError:
        return seen.ports


def _ports(forwards: Sequence[Row]) -> dict[tuple[str, int], int]:
    return {(each["name"], each["port"]): each["local_port"] for each in forwards}


def runs(pid: int | None, started: int | None) -> bool:
    return pid is not None and started is not None and hosts.alive(pid, started)


def read_pid(file: Path) -> int | None:
    try:
        return int(file.read_text())
    except (OSError, ValueError):
        return None


def read_record(row: Row) -> Record:
    return Record(name=row["name"], type=row["type"], values=tuple(row["values"]), ttl=row["ttl"])


def host_view(row: Row, peer_ports: Sequence[int]) -> HostView:
    pid = row["pid"] if row["running"] else None
    return HostView(
        id=row["name"],
        name=row["name"],
        group=row["group"],
        address=row["address"],
        alive=bool(row["running"]),
        dead=bool(row["dead"]),
        since=began(row["started"]),
        pid=pid,
        master=bool(row.get("master", True)),
        peers=connected(Path(f"/proc/{pid}/net/tcp"), peer_ports) if pid else (),
    )


def began(started: int | None) -> float | None:
    """When a process began, in seconds since 1970, from its clock ticks since the machine did."""
    if started is None:
        return None
    booted = next(line for line in Path("/proc/stat").read_text().splitlines() if line.startswith("btime "))
    return int(booted.split()[1]) + started / os.sysconf("SC_CLK_TCK")


def connected(table: Path, ports: Sequence[int]) -> tuple[str, ...]:
    """Addresses to which standing connections at these ports lead, in a process's own network."""
    try:
        lines = table.read_text().splitlines()[1:]
    except OSError:
        return ()
    found = set()
    for line in lines:
        _, _, remote, state, *_ = line.split()
        address, _, port = remote.partition(":")
        if state == ESTABLISHED and int(port, 16) in ports:
            found.add(".".join(str(byte) for byte in bytes.fromhex(address)[::-1]))
    return tuple(sorted(found))


def master_config(paths: Paths, names: Sequence[str]) -> MasterConfig | None:
    """The configuration of the masters, from any host that has it: all have the same."""
    for name in names:
        try:
            return read_launch_document(paths.host(name) / "etc/protokube/agent.json").master
        except ProtokubeError:
            continue
    return None


def generations(paths: Paths, keys: Sequence[str]) -> dict[str, Generation | None]:
    store = FileStore(paths.store)
    found: dict[str, Generation | None] = {}
    for key in keys:
        try:
            found[key] = decode(store.read(layout.etcd_generation(paths.cluster, key)).data)
        except ProtokubeError:
            found[key] = None
    return found


def rollout(paths: Paths) -> Rollout | None:
    """The rollout record; None if there is none, or it cannot be read."""
    try:
        return read_rollout(FileStore(paths.store), paths.cluster)
    except (OSError, ProtokubeError):
        return None


def agent_view(paths: Paths, host: str) -> AgentView | None:
    """The last report of a host's agent; None before its first round, or if it cannot be read.

    Its age goes by the file's time, not by what the agent took for the time: that host's clock may be an hour off, and
    the file is written on this machine. A clock that was set back since makes no report younger than new.
    """
    file = paths.host(host) / "run/protokube/status.json"
    try:
        with file.open(encoding="utf-8") as opened:  # one file for both questions: a newer one may replace it meanwhile
            status, written = json.load(opened), os.fstat(opened.fileno()).st_mtime
        return read_agent(host, status, age=max(time.time() - written, 0.0))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
