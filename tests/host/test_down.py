"""`protokube down` leaves nothing behind, whatever was killed before; and what is killed comes back by `up`.

One cluster is kept for all tests here: whatever is done to others beside it, it must not notice.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from builders.command import COMMAND, environment
from clusters.machine_census import Census, devices_under
from clusters.real import RealCluster, until
from protokube.local.drill.writer import as_found, lost
from protokube.providers.clients.local import LocalClient


@pytest.fixture(scope="module")
def kept() -> Iterator[RealCluster]:
    with tempfile.TemporaryDirectory(prefix="pkc-", dir="/tmp") as state, RealCluster("kept", Path(state)) as cluster:
        cluster.up("--masters", "1")
        cluster.client(timeout=20).put("kept", "value")
        yield cluster


@pytest.fixture(autouse=True)
def _undisturbed(kept: RealCluster) -> Iterator[None]:
    """The same processes, and the same key, after each test."""
    before = {(host["name"], host["pid"], host["started"]) for host in kept.hosts()}
    yield
    assert {(host["name"], host["pid"], host["started"]) for host in kept.hosts()} == before
    assert [each.value for each in kept.client(timeout=20).read("kept")] == ["value"]


def beside(kept: RealCluster, name: str) -> RealCluster:
    return RealCluster(name, kept.state)


def kill_9(census: Census) -> None:
    """Every process of a cluster, at once; none of them gets to tidy up."""
    for pid, _ in census.processes:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


@contextmanager
def somebody_on_the_disk(cluster: RealCluster) -> Iterator[None]:
    """A shell in the mount namespace of a host, which is not a child of anybody in it."""
    (host,) = cluster.hosts()
    stand = f"cd /mnt/master-{cluster.volume('a')['id']}; echo there; exec sleep 1000"
    enter = ["nsenter", f"--target={host['pid']}", "--mount", "sh", "-c", stand]
    with subprocess.Popen(enter, stdout=subprocess.PIPE, text=True, cwd="/") as looker:
        assert looker.stdout is not None
        assert looker.stdout.readline() == "there\n"
        yield
        looker.kill()


def test_down_leaves_no_process_mount_device_namespace_or_file(kept: RealCluster) -> None:
    with beside(kept, "gone") as cluster:
        cluster.up("--masters", "1")
        census = Census.of(cluster.paths)
        assert len(census.processes) >= 4, "the daemon, a host, its agent, its etcd"
        assert len(devices_under(cluster.paths.root)) == 1

        with somebody_on_the_disk(cluster):
            said = cluster.run("down", "--cluster", "gone")

        assert said.code == 0, said.err
        assert "removed" in said.out
        census.nothing_is_left()
    assert kept.run("status", "--cluster", "kept").code == 0
    again = kept.run("down", "--cluster", "gone")
    assert again.code != 0
    assert "there is no local cluster 'gone'" in again.err


def test_down_after_everything_was_killed_leaves_nothing_either(kept: RealCluster) -> None:
    with beside(kept, "killed") as cluster:
        cluster.up()
        census = Census.of(cluster.paths)
        assert len(census.processes) >= 10

        kill_9(census)
        said = cluster.run("down", "--cluster", "killed")

        assert said.code == 0, said.err
        census.nothing_is_left()


@pytest.mark.parametrize("seconds", [0.5, 1.5, 3.0])
def test_down_after_up_itself_was_killed_on_its_way_leaves_nothing(kept: RealCluster, seconds: float) -> None:
    with beside(kept, "half") as cluster:
        command = [*COMMAND, "up", "--cluster", "half", "--masters", "1", "--kubernetes", "none"]
        env = environment(PROTOKUBE_STATE=str(cluster.state))
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env) as up:
            time.sleep(seconds)
            up.kill()
        census = Census.of(cluster.paths)
        kill_9(census)

        said = cluster.run("down", "--cluster", "half")

        was_there = said.code == 0
        assert was_there or "there is no local cluster" in said.err
        census.nothing_is_left()


def test_a_daemon_that_was_killed_is_started_by_up_and_the_hosts_were_never_touched(kept: RealCluster) -> None:
    pid = kept.status()["daemon"]["pid"]
    (host,) = kept.hosts()
    etcd = [each for each in Census.of(kept.paths).processes if comm(each[0]) == "etcd"]
    assert len(etcd) == 1

    os.kill(pid, signal.SIGKILL)
    until(lambda: kept.run("status", "--cluster", "kept").code != 0, "status notices")
    said = kept.run("up", "--cluster", "kept", "--masters", "1", "--kubernetes", "none")

    assert said.code == 0, said.err
    assert "the local cloud started" in said.err
    assert kept.hosts() == [host]
    assert [each for each in Census.of(kept.paths).processes if comm(each[0]) == "etcd"] == etcd
    assert kept.status()["daemon"]["pid"] != pid


def test_members_serve_each_other_while_no_daemon_runs(kept: RealCluster) -> None:
    """The cloud's own way in from outside is the daemon's; inside, nobody needs it."""
    with kept.writing() as writer:
        until(lambda: len(writer.log().acknowledged) > 3, "the first writes")
        os.kill(kept.status()["daemon"]["pid"], signal.SIGKILL)
        kept.up("--masters", "1")
        count = len(writer.log().acknowledged)
        until(lambda: len(writer.log().acknowledged) > count, "writes through the new daemon")
        log = writer.stop()

    assert lost(log, as_found(kept.client(timeout=20).read(log.prefix))) == ()


def comm(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def test_a_folder_of_somebody_else_is_never_removed(kept: RealCluster) -> None:
    thesis = kept.state / "thesis"
    thesis.mkdir()
    (thesis / "chapter-1.tex").write_text("years of work")

    told: Any = kept.run("down", "--cluster", "thesis")

    assert told.code != 0
    assert (thesis / "chapter-1.tex").read_text() == "years of work"
    (thesis / "chapter-1.tex").unlink()
    thesis.rmdir()
    assert LocalClient(kept.paths.admin_socket).call("hosts")
