"""One look at a local cluster: what is ready, what is lacking, and what can be seen while parts are absent."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from builders.certificates import write_certificates
from builders.view import (
    CLUSTER,
    FakeCloud,
    ShortFolder,
    a_disk,
    a_note,
    a_view,
    an_agent,
    cloud_rows,
    write_state,
)
from clusters.daemon import until
from fakes.etcd_gateways import Gateway, Late, says
from protokube.local.base.db import Database, KeptRecords
from protokube.local.base.paths import Paths
from protokube.local.cloud.host_registry import HostRegistry
from protokube.local.cloud.volumes import Volumes
from protokube.local.view import sources
from protokube.local.view.look import Looker, look
from protokube.providers.clients.local import LocalClient
from protokube.providers.volumes import Volume
from protokube.records import Change, Record
from protokube.view.cluster import ClusterView
from protokube.view.values import AgentView, DaemonView, MemberView


@pytest.fixture
def state() -> Iterator[Path]:
    with ShortFolder() as folder:
        yield folder


def patient_look(paths: Paths) -> ClusterView:
    """One look that a busy machine may take its time for."""
    with Looker(paths) as looker:
        looker.cloud = LocalClient(paths.admin_socket, patience=20)
        return looker.look(patience=20)


def undated(agent: AgentView) -> AgentView:
    """Without its age, which a busy machine makes greater."""
    return replace(agent, age=0.0)


# Where it comes from.


def test_a_state_that_holds_nothing_is_seen_as_that(state: Path) -> None:
    paths = Paths.at(state / CLUSTER)
    paths.create()

    view = look(paths)

    assert (view.cluster, view.hosts, view.disks, view.members) == (CLUSTER, (), (), ())
    assert view.daemon
    assert not view.daemon.alive
    assert view.lacks[0].startswith("the local cloud does not run: ")
    assert view.notes == (f"{paths.database} is not there",)


def test_what_the_cloud_the_store_and_the_agents_say_is_put_together(state: Path) -> None:
    whole = a_view(agents=(an_agent(0, did=(a_note("attached vol-aaaa", about="main/a"),)),))
    paths = write_state(state, whole)
    paths.pid_file.write_text("4711\n")

    with FakeCloud(paths.admin_socket, cloud_rows(whole)):
        view = patient_look(paths)

    assert view.daemon == DaemonView(alive=True, pid=4711)
    assert [each.name for each in view.hosts] == ["master-0", "master-1", "master-2"]
    assert view.disks == (a_disk("a"), a_disk("b", phase=""), a_disk("c", phase=""))
    assert view.records == whole.records
    assert view.generations == whole.generations
    assert [undated(each) for each in view.agents] == [undated(each) for each in whole.agents]
    assert all(2 <= each.age < 60 for each in view.agents)
    assert [(each.member, each.host, each.why) for each in view.members] == [
        (f"main/{short}", f"master-{number}", "no port of this machine leads to it yet")
        for number, short in enumerate("abc")
    ]


def test_while_the_cloud_is_silent_its_database_tells_of_hosts_disks_and_names(state: Path) -> None:
    paths = write_state(state, a_view())
    database = Database(paths.database)
    host = HostRegistry(database).add("masters", zone="local")
    like = Volume(id="", zone="local", etcd_cluster="main", member="a", members=("a",), size=8192, made_empty=True)
    Volumes(database).add("vol-1", like, "founder main/a", founder=True)
    Volumes(database).claim("vol-1", host.name)
    record = Record(name="etcd-a.internal.dev.local", type="A", values=(host.address,), ttl=5)
    KeptRecords(database).save([Change(before=None, after=record, why="")])
    database.close()

    view = look(paths)

    assert view.daemon
    assert not view.daemon.alive
    assert [(each.name, each.address, each.alive) for each in view.hosts] == [(host.name, "10.77.0.11", False)]
    assert [(each.id, each.attached_to, each.phase) for each in view.disks] == [("vol-1", host.name, "")]
    assert view.records == (record,)
    assert [(each.asked, each.why) for each in view.members] == [
        (False, "it cannot be asked while the local cloud does not run")
    ]
    assert not any("healthy" in each for each in view.lacks)


def test_a_database_that_cannot_be_read_is_said_and_nothing_breaks(state: Path) -> None:
    paths = write_state(state, a_view())
    paths.database.write_bytes(b"this is no database" * 100)

    view = look(paths)

    assert view.notes == (f"{paths.database} cannot be read: file is not a database",)


def test_a_cloud_that_hangs_costs_no_more_than_two_seconds(state: Path) -> None:
    paths = write_state(state, a_view())
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(paths.admin_socket))
        silent.listen()
        began = time.monotonic()
        view = look(paths)

    assert view.daemon
    assert not view.daemon.alive
    assert view.lacks[0].startswith("the local cloud does not answer: ")
    assert sources.PATIENCE < 2.0
    assert time.monotonic() - began < 10


def test_a_host_began_when_its_first_process_did() -> None:
    own = int(Path("/proc/self/stat").read_text().rpartition(") ")[2].split()[19])
    began = sources.began(own)

    assert began is not None
    assert 0 <= time.time() - began < 3600
    assert sources.began(None) is None


def member(**changes: Any) -> MemberView:
    told = MemberView(member="main/a", name="etcd-a", dns_name="etcd-a.internal.dev", volume="vol-1", host="master-0")
    return replace(told, **changes)


def test_a_member_that_answers_after_the_look_has_ended_leaves_no_connection_open(state: Path) -> None:
    """The look gives up by its own patience; the connection of one that gave up by itself would be closed anyway."""
    paths = write_state(state, a_view())
    told = {"authority": "ca", "organizations": [], "commonName": "operator", "names": [], "usages": ["client auth"]}
    write_certificates(paths.client, {"client": told})
    late = Late(says({"header": {"cluster_id": "1", "member_id": "2", "revision": "7"}, "leader": "2"}))
    with closing(Gateway(late)) as etcd:
        with Looker(paths, seconds=600.0) as looker:
            looker.answers([member(url=etcd.url)], patience=0.05)
            until(lambda: etcd.requests)
        assert etcd.connected, "it still waits for the answer"
        late.go_on.set()

        until(lambda: not etcd.connected)


def test_a_member_that_cannot_be_asked_says_why(state: Path) -> None:
    paths = write_state(state, a_view())
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with Looker(paths) as looker:
        assert looker.ask(member(url="")).why == "no port of this machine leads to it yet"
        assert looker.ask(member(url="https://127.0.0.1:1", host=None)).why == "nobody holds its volume"
        without = looker.ask(member(url=f"https://127.0.0.1:{port}"))

    assert not without.healthy
    assert "client.crt" in without.why or "No such file" in without.why
