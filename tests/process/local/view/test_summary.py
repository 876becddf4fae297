"""The list of clusters: what each is doing, in a second, whatever state it is in."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest

from builders.revisions import CLUSTER, a_revision
from builders.view import FakeCloud, ShortFolder
from protokube.launch import revisions
from protokube.local.base.paths import Paths
from protokube.local.view import summary
from protokube.local.view.summary import Summary
from protokube.store.file import FileStore


@pytest.fixture
def paths(monkeypatch: pytest.MonkeyPatch) -> Iterator[Paths]:
    """A cluster with a revision in force."""
    with ShortFolder() as folder:
        monkeypatch.setenv("PROTOKUBE_STATE", str(folder))
        paths = Paths.of(CLUSTER)
        paths.create()
        put_in_force(paths)
        yield paths


def put_in_force(paths: Paths) -> None:
    store = FileStore(paths.store)
    made = revisions.create_revision(store, CLUSTER, lambda n: a_revision(n, kubernetes="1.36.4", etcd="3.6.8"))
    revisions.put_in_force(store, CLUSTER, made, running=False)


def host(name: str, *, running: bool = True, dead: bool = False) -> dict[str, Any]:
    return {"name": name, "running": running, "dead": dead}


def look(paths: Paths) -> Summary:
    (found,) = summary.summaries([paths.cluster])
    return found


def test_a_cluster_whose_hosts_run_is_running_with_its_versions(paths: Paths) -> None:
    with FakeCloud(paths.admin_socket, {"hosts": [host("a"), host("b"), host("old", dead=True)]}):
        found = look(paths)

    assert (found.state, found.why, found.masters) == ("running", "", 3)
    assert (found.kubernetes, found.etcd) == ("1.36.4", "3.6.8")
    assert found.made is not None
    assert abs(found.made - time.time()) < 60


def test_a_host_that_is_not_up_is_named(paths: Paths) -> None:
    with FakeCloud(paths.admin_socket, {"hosts": [host("a"), host("b", running=False)]}):
        found = look(paths)

    assert (found.state, found.why) == ("starting", "b not up yet")


def test_a_stopped_cluster_and_one_that_was_killed_are_told_apart(paths: Paths) -> None:
    killed = look(paths)
    paths.stopped.touch()

    assert (killed.state, killed.why) == ("not running", f"`protokube start --cluster {CLUSTER}` starts it")
    assert look(paths).state == "stopped"


def test_a_socket_that_nobody_serves_any_more_is_a_cluster_that_does_not_run(paths: Paths) -> None:
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(paths.admin_socket))

    assert look(paths).state == "not running"


def test_a_local_cloud_that_hangs_costs_a_second(paths: Paths) -> None:
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(paths.admin_socket))
        silent.listen()
        began = time.monotonic()
        found = look(paths)

    assert (found.state, found.why) == ("unknown", "the local cloud does not answer")
    assert time.monotonic() - began < 10 * summary.PATIENCE, "and not the time of every call"


def test_one_without_a_revision_is_incomplete(paths: Paths) -> None:
    Paths.of("half").create()
    (found,) = summary.summaries(["half"])

    assert (found.state, found.why) == ("incomplete", "`protokube up --cluster half` completes it")
    assert (found.masters, found.kubernetes, found.etcd) == (None, "", "")


@pytest.mark.parametrize("record", ["rollout.json", "revisions/000001.json"])
def test_a_damaged_store_is_no_reason_to_fail(paths: Paths, record: str) -> None:
    (file,) = [each for each in paths.store.rglob("*") if each.is_file() and str(each).endswith(record)]
    file.write_bytes(b"{")

    assert look(paths).name == CLUSTER


def test_a_cluster_that_is_removed_meanwhile_is_still_a_row(paths: Paths) -> None:
    (found,) = summary.summaries(["gone"])

    assert (found.name, found.state, found.why) == ("gone", "not readable", "No such file or directory")
