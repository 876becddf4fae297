"""Where a view comes from: each source whole, half, strange and absent."""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders.config import completed
from builders.view import (
    CLUSTER,
    FakeCloud,
    ShortFolder,
    a_generation,
    a_host,
    a_note,
    a_view,
    an_agent,
    cloud_rows,
    status_file,
    write_state,
)
from protokube.launch.derive import from_config
from protokube.launch.machine import MasterConfig
from protokube.local.base.db import Database
from protokube.local.base.paths import Paths
from protokube.local.base.processes import started_at
from protokube.local.bringup import launch_data
from protokube.local.cloud.host_registry import HostRegistry
from protokube.local.view import sources
from protokube.local.view.look import Looker, client_ports
from protokube.providers.clients.local import LocalClient
from protokube.store import layout
from protokube.store.file import FileStore
from protokube.view.values import DaemonView

VIEW = a_view()


@pytest.fixture
def paths() -> Iterator[Paths]:
    with ShortFolder() as folder:
        yield write_state(folder, VIEW)


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as made:
        yield made


def client(paths: Paths) -> LocalClient:
    return LocalClient(paths.admin_socket, patience=20)


def a_config() -> MasterConfig:
    return from_config(completed(cloud="local", masters=3, name=CLUSTER))


def write_config(paths: Paths, hosts: Sequence[str], wanted: MasterConfig) -> None:
    for host in hosts:
        file = paths.host(host) / "etc/protokube/agent.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(launch_data(wanted, CLUSTER))


# The cloud.


def test_a_cloud_that_answers_is_believed_and_its_database_not_opened(paths: Paths, pool: ThreadPoolExecutor) -> None:
    with FakeCloud(paths.admin_socket, cloud_rows(VIEW)):
        seen = sources.inventory(paths, client(paths), pool)

    assert seen.daemon.alive
    assert len(seen.hosts) == len(seen.volumes) == 3
    assert not paths.database.exists()


def test_an_answer_that_is_an_error_is_silence(paths: Paths, pool: ThreadPoolExecutor) -> None:
    rows = cloud_rows(VIEW)
    with FakeCloud(paths.admin_socket, {**rows, "records": lambda _: 1 / 0}):
        seen = sources.inventory(paths, client(paths), pool)

    assert not seen.daemon.alive
    assert seen.hosts == ()


def test_ports_that_are_missing_are_made(paths: Paths) -> None:
    wanted = client_ports(a_config())
    made = [{"name": name, "port": port, "local_port": 40000 + at} for at, (name, port) in enumerate(wanted)]
    seen = sources.Inventory(daemon=DaemonView(alive=True), ports={wanted[0]: 40000})
    with FakeCloud(paths.admin_socket, {"forwards": made}) as cloud:
        found = sources.ports(client(paths), seen, wanted)

    assert found == {pair: 40000 + at for at, pair in enumerate(wanted)}
    assert cloud.asked == [{"call": "forwards", "wanted": [{"name": name, "port": port} for name, port in wanted]}]


def test_ports_that_are_there_are_not_asked_for_again(paths: Paths) -> None:
    seen = sources.Inventory(daemon=DaemonView(alive=True), ports={("a", 1): 2})

    assert sources.ports(client(paths), seen, [("a", 1)]) == {("a", 1): 2}


@pytest.mark.parametrize("alive", [True, False])
def test_without_an_answer_the_ports_are_those_that_were_known(paths: Paths, alive: bool) -> None:
    seen = sources.Inventory(daemon=DaemonView(alive=alive), ports={("a", 1): 2})

    assert sources.ports(client(paths), seen, [("b", 1)]) == {("a", 1): 2}


def test_the_pid_file_may_be_absent_or_anything() -> None:
    with ShortFolder() as folder:
        file = folder / "daemon.pid"
        assert sources.read_pid(file) is None
        file.write_text("soon\n")
        assert sources.read_pid(file) is None
        file.write_text("42\n")
        assert sources.read_pid(file) == 42


def test_a_database_without_a_table_is_said_to_be_unreadable(paths: Paths, pool: ThreadPoolExecutor) -> None:
    with sqlite3.connect(paths.database) as connection:
        connection.execute("CREATE TABLE hosts (name TEXT)")
    connection.close()
    seen = sources.inventory(paths, client(paths), pool)

    assert len(seen.notes) == 1
    assert "cannot be read" in seen.notes[0]


def test_a_host_in_the_database_runs_if_that_very_process_does(paths: Paths, pool: ThreadPoolExecutor) -> None:
    database = Database(paths.database)
    registry = HostRegistry(database)
    alive, reused, never = (registry.add("masters", zone="local") for _ in range(3))
    registry.write_started(alive.name, os.getpid(), started_at(os.getpid()))
    registry.write_started(reused.name, os.getpid(), 1)
    database.close()
    seen = sources.inventory(paths, client(paths), pool)

    assert {each["name"]: each["running"] for each in seen.hosts} == {
        alive.name: True, reused.name: False, never.name: False,
    }  # fmt: skip


def test_a_host_that_was_declared_dead_is_not_in_the_list_of_a_silent_cloud(
    paths: Paths, pool: ThreadPoolExecutor
) -> None:
    database = Database(paths.database)
    registry = HostRegistry(database)
    gone = registry.add("masters", zone="local")
    registry.mark_dead(gone.name)
    database.close()

    assert sources.inventory(paths, client(paths), pool).hosts == []


def test_the_view_of_a_host_has_its_pid_only_while_it_runs() -> None:
    row = {"name": "m", "group": "g", "address": "10.77.0.11", "dead": False, "pid": os.getpid(), "started": 1}

    assert sources.host_view({**row, "running": True}, [2380]).pid == os.getpid()
    assert sources.host_view({**row, "running": False}, [2380]).pid is None
    assert sources.host_view({**row, "running": False, "started": None}, []).since is None


# The masters' own configuration.


def test_every_member_of_the_configuration_is_looked_for_at_its_client_port() -> None:
    wanted = a_config()
    pairs = client_ports(wanted)

    assert len(pairs) == sum(len(each.members) for each in wanted.etcd)
    assert (f"etcd-a.internal.{CLUSTER}", 4001) in pairs


def test_a_look_asks_for_the_ports_of_the_members_that_masters_were_told(paths: Paths) -> None:
    wanted = a_config()
    write_config(paths, ["master-0"], wanted)
    with FakeCloud(paths.admin_socket, cloud_rows(VIEW)) as cloud, Looker(paths) as looker:
        looker.cloud = client(paths)
        view = looker.look(patience=20)

    assert [each for each in cloud.asked if each["call"] == "forwards"][-1]["wanted"][0]["name"].startswith("etcd-")
    assert view.api_names == wanted.api_names
    assert {each.key for each in view.members} == {each.key for each in wanted.etcd}
    assert {each.why for each in view.members} == {"no port of this machine leads to it yet"}


def test_configuration_of_another_version_is_not_believed(paths: Paths) -> None:
    file = paths.host("master-0") / "etc/protokube/agent.json"
    file.parent.mkdir(parents=True)
    document = json.loads(launch_data(a_config(), CLUSTER))
    variants: tuple[Any, ...] = (
        {**document, "master": {}},
        {**document, "master": {**document["master"], "etcd": [{"key": "main"}]}},
        {**document, "master": 3},
        {**document, "version": 99},
        [],
        {"other": 1},
    )
    for broken in variants:
        file.write_text(json.dumps(broken))
        assert sources.master_config(paths, ["master-0"]) is None


# The store.


def test_generation_records_are_read_key_by_key_and_a_broken_one_is_none(paths: Paths) -> None:
    FileStore(paths.store).put(layout.etcd_generation(CLUSTER, "events"), b'{"half": ')

    found = sources.generations(paths, ["main", "events", "absent"])
    assert found == {"main": a_generation(), "events": None, "absent": None}


# The agents.


def test_what_an_agent_wrote_is_read_back_whole(paths: Paths) -> None:
    told = an_agent(
        1, did=(a_note("did it", about="main/b"),), waits=(a_note("waits", saw="x"),), bugs=(a_note("KeyError"),),
        person=(a_note("asks", hint="do it", step="names", about="main/b"),),
    )  # fmt: skip
    file = paths.host("master-1") / "run/protokube/status.json"
    file.write_text(json.dumps(status_file(told)))

    read = sources.agent_view(paths, "master-1")
    assert read is not None
    assert replace(read, age=told.age) == told


def test_the_age_of_a_report_goes_by_its_file_whatever_the_agent_takes_for_the_time(paths: Paths) -> None:
    file = paths.host("master-1") / "run/protokube/status.json"
    file.write_text(json.dumps(status_file(an_agent(1, at=time.time() + 3600, next_within=4.5, took=0.25))))
    os.utime(file, (time.time() - 75, time.time() - 75))

    read = sources.agent_view(paths, "master-1")
    assert read is not None
    assert 75 <= read.age < 600
    assert (read.stale, read.next_within, read.took) == (True, 4.5, 0.25)


def test_a_report_from_before_the_clock_was_set_back_is_new_and_not_of_a_negative_age(paths: Paths) -> None:
    file = paths.host("master-1") / "run/protokube/status.json"
    file.write_text(json.dumps(status_file(an_agent(1))))
    os.utime(file, (time.time() + 3600, time.time() + 3600))

    read = sources.agent_view(paths, "master-1")
    assert read is not None
    assert (read.age, read.stale) == (0.0, False)


def test_an_agent_before_its_first_round_says_nothing(paths: Paths) -> None:
    assert sources.agent_view(paths, "master-9") is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)


@settings(deadline=None)  # a busy machine is no bug
@given(st.dictionaries(st.sampled_from(["at", "round", "elected", "report", "volumes", "members"]), JSON))
def test_no_status_file_whatever_is_in_it_breaks_a_look(changes: dict[str, Any]) -> None:
    with ShortFolder() as folder:
        paths = Paths.at(folder / CLUSTER)
        file = paths.host("master-0") / "run/protokube/status.json"
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps(status_file(an_agent(0)) | changes))
        found = sources.agent_view(paths, "master-0")

    assert found is None or found.host == "master-0"


@settings(deadline=None)  # a busy machine is no bug
@given(st.lists(st.tuples(st.sampled_from([2380, 4001, 22]), st.integers(1, 254), st.sampled_from(["01", "06", "0A"]))))
def test_exactly_the_standing_connections_to_the_wanted_ports_count(rows: list[tuple[int, int, str]]) -> None:
    lines = [f"  0: 0B004D0A:9C40 {last:02X}004D0A:{port:04X} {state} 0:0" for port, last, state in rows]
    with ShortFolder() as folder:
        table = folder / "tcp"
        table.write_text("\n".join(["  sl  local rem st", *lines]) + "\n")
        found = sources.connected(table, [2380])

    assert set(found) == {f"10.77.0.{last}" for port, last, state in rows if port == 2380 and state == "01"}


def test_the_connections_of_this_very_machine_can_be_read() -> None:
    assert isinstance(sources.connected(Path("/proc/self/net/tcp"), range(65536)), tuple)


def test_a_host_of_a_view_is_what_the_row_says() -> None:
    (row, *_) = cloud_rows(VIEW)["hosts"]

    assert sources.host_view(row, []) == a_host(0, since=None, pid=None, peers=())
