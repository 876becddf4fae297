"""The edges of a drill: a holder of old that is asked from inside its own network, and one drill at a time."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from builders.view import a_host
from clusters.etcd import EtcdCluster, eventually, is_stopped, make_cluster
from protokube.errors import TryLater
from protokube.local.base.paths import Paths
from protokube.local.drill.ground import LocalGround, take_lock

WAKE = 60.0


@dataclass
class OldEtcd:
    """A real etcd in a PID and network namespace of its own, as in a host."""

    cluster: EtcdCluster
    around: subprocess.Popen[bytes]
    inside: int
    port: int

    def signal(self, number: int) -> None:
        os.kill(self.inside, number)

    def freeze(self) -> None:
        """Back only when every thread has stopped."""
        self.signal(19)  # SIGSTOP
        tasks = Path(f"/proc/{self.inside}/task")
        assert eventually(lambda: " ".join(each.name for each in tasks.iterdir() if not is_stopped(each))) == ""


def only_child(pid: int) -> int:
    deadline = time.monotonic() + WAKE
    while not (found := Path(f"/proc/{pid}/task/{pid}/children").read_text().split()):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return int(found[0])


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    made = Paths.at(tmp_path / "dev.local")
    made.create()
    (made.root / "client").mkdir()
    return made


@pytest.fixture
def old(tmp_path: Path, paths: Paths) -> Iterator[OldEtcd]:
    work = tmp_path / "etcd"
    work.mkdir()
    cluster = make_cluster(work, "3.5", names=["a"])
    for name, file in (("ca.crt", cluster.tls.ca), ("client.crt", cluster.tls.cert), ("client.key", cluster.tls.key)):
        shutil.copy(file, paths.root / "client" / name)
    port, address = 4001, "127.0.0.1"
    flags = [
        f"--listen-client-urls=https://{address}:{port}",
        f"--advertise-client-urls=https://{address}:{port}",
    ]
    etcd = [*cluster.members["a"].command, *flags]
    script = 'ip link set lo up; exec "$@"'
    command = ["unshare", "--net", "--pid", "--fork", "--kill-child", "sh", "-c", script, "sh", *etcd]
    with (work / "log").open("wb") as log:
        around = subprocess.Popen(command, stdout=log, stderr=log, env={"PATH": os.environ["PATH"]})
    try:
        yield OldEtcd(cluster, around, only_child(around.pid), port)
    finally:
        around.kill()
        around.wait()
        cluster.close()


@pytest.fixture
def ground(paths: Paths) -> Iterator[LocalGround]:
    made = LocalGround(paths)
    try:
        yield made
    finally:
        made.close()


def test_a_write_through_a_holder_of_old_is_seen_to_be_acknowledged_or_not(old: OldEtcd, ground: LocalGround) -> None:
    """Nobody outside reaches it: its loopback is its own."""
    host = ground.old_host(a_host(0, pid=old.inside), old.port)
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", old.port), 1)

    deadline = time.monotonic() + WAKE
    while not host.write("/from/inside"):  # until it has elected itself
        assert time.monotonic() < deadline, (old.cluster.work / "log").read_text()[-2000:]
    assert host.runs_etcd()

    old.freeze()
    began = time.monotonic()
    assert not host.write("/while/frozen")
    assert time.monotonic() - began < 30
    assert host.runs_etcd()

    old.signal(9)
    old.around.wait()
    assert not host.runs_etcd()
    assert not host.write("/when/gone")


def test_whoever_tries_to_write_stays_in_its_own_network(old: OldEtcd, ground: LocalGround) -> None:
    before = Path("/proc/thread-self/ns/net").readlink()
    ground.old_host(a_host(0, pid=old.inside), old.port).write("/x")

    assert Path("/proc/thread-self/ns/net").readlink() == before


def test_a_host_without_etcd_runs_none(ground: LocalGround) -> None:
    sleeping = subprocess.Popen(["unshare", "--pid", "--fork", "--kill-child", "sleep", "60"])
    try:
        host = ground.old_host(a_host(0, pid=only_child(sleeping.pid)), 4001)
        assert not host.runs_etcd()
    finally:
        sleeping.kill()
        sleeping.wait()


def test_a_lock_is_let_go_with_the_process_that_holds_it(tmp_path: Path) -> None:
    file = tmp_path / "drill.lock"
    first = take_lock(file)
    with pytest.raises(TryLater, match="another drill is under way"):
        take_lock(file)
    os.close(first)

    os.close(take_lock(file))


def test_a_ground_has_a_clock_that_goes_on(ground: LocalGround) -> None:
    before = ground.now()
    ground.sleep(0.01)

    assert ground.now() - before >= 0.01


def test_a_cloud_that_is_not_there_cannot_be_told_anything(ground: LocalGround) -> None:
    with pytest.raises(TryLater, match="does not answer kill_host"):
        ground.call("kill_host", host="master-0")
    assert not ground.look().ready
    daemon = ground.glance().daemon
    assert daemon
    assert not daemon.alive
