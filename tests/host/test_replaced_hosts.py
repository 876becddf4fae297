"""A revision that needs other hosts: each is replaced in its turn, with its disk, under a writer that loses nothing.

The revision names a kubelet, which is all that agents look at; the new hosts have the built-in pod runner all the same.
One cluster for all tests here, in their order; real kubelets are in the end-to-end tests.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from clusters.real import RealCluster, until
from protokube.cli.shared.progress import Progress
from protokube.cli.shared.templates import relaunched
from protokube.cli.shared.upgrade import Target, deliver
from protokube.cli.up.change import Former, find_former
from protokube.launch import revisions
from protokube.launch.machine import MasterConfig
from protokube.launch.rollout import Rollout, State
from protokube.local.drill.writer import as_found, lost
from protokube.providers.groups.local import LocalGroups
from protokube.store import Store
from protokube.store.open import open_store

SECONDS = 120.0
KUBECONFIG = "/var/lib/kubelet/kubeconfig"
BROKEN = {"kubelet.service": ["/bin/false"]}


@pytest.fixture(scope="module")
def cluster() -> Iterator[RealCluster]:
    with RealCluster() as made:
        yield made.up()


def store_of(cluster: RealCluster) -> Store:
    return open_store(f"file://{cluster.paths.store}")


def former_of(cluster: RealCluster) -> Former:
    found = find_former(store_of(cluster), cluster.name)
    assert found is not None
    return found


def record(cluster: RealCluster) -> Rollout:
    found = revisions.read_rollout(store_of(cluster), cluster.name)
    assert found is not None
    return found


def makes(cluster: RealCluster, **more: object) -> Callable[[MasterConfig], None]:
    """Have the cloud make hosts for a configuration, with these fields in their template."""

    def make(wanted: MasterConfig) -> None:
        groups = LocalGroups(cluster.admin)
        for each in groups.list_groups():
            groups.ensure(replace(each, template={**relaunched(each.template, wanted), **more}))

    return make


def with_kubelet(cluster: RealCluster, make: Callable[[MasterConfig], None], timeout: float = SECONDS) -> int:
    """Put a revision with a kubelet in force, and follow it; its number."""
    former = former_of(cluster)
    assert former.config is not None
    wanted = replace(former.revision.master, kubelet_kubeconfig=KUBECONFIG)
    texts = [("spec", former.revision.spec)]
    target = Target(config=former.config, wanted=wanted, texts=texts, make_hosts=make)
    progress = Progress(quiet=True)
    return deliver(
        progress, cluster.paths, store_of(cluster), cluster.admin, former.planned, target, timeout
    ).number  # fmt: skip


@contextmanager
def watching(cluster: RealCluster) -> Iterator[list[int]]:
    """How many disks were without a living host, several times a second."""
    found: list[int] = []
    end = threading.Event()

    def watch() -> None:
        while not end.wait(0.1):
            alive = {each["name"] for each in cluster.hosts()}
            found.append(sum(each["attached_to"] not in alive for each in cluster.admin.call("volumes")))

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield found
    finally:
        end.set()
        thread.join()


def hosts(cluster: RealCluster) -> set[str]:
    return {each["name"] for each in cluster.hosts()}


def present(cluster: RealCluster) -> set[int]:
    return {status["revision"] for status in cluster.agents().values()}


def test_hosts_made_for_a_revision_that_is_not_in_force_say_so_and_stay(cluster: RealCluster) -> None:
    """As if `up` had been killed between the two."""
    wanted = replace(former_of(cluster).revision.master, kubelet_kubeconfig=KUBECONFIG, revision=2)
    makes(cluster)(wanted)
    killed = cluster.hosts()[0]["name"]
    cluster.admin.call("kill_host", host=killed)

    text = "this machine was made for revision 2, which is not in force"
    note = until(lambda: next((e for e in cluster.notes("needsAPerson") if e["text"] == text), None), text)
    until(lambda: len(cluster.healthy()) == 3, "its member is healthy all the same")
    assert note["hint"] == "run `protokube up` again as before: it completes what was interrupted"
    assert note["host"] in hosts(cluster)


def test_a_new_host_that_does_not_come_up_keeps_the_others_where_they_are_and_undo_returns_even_without_a_quorum(
    cluster: RealCluster,
) -> None:
    with cluster.writing() as writer:
        before = hosts(cluster)
        with pytest.raises(Exception, match="has made no progress"):
            with_kubelet(cluster, makes(cluster, startable=BROKEN), timeout=15)
        after = hosts(cluster)
        assert len(before & after) == 2, "one was replaced, and no other ended"
        assert "needs another machine in place of this one" in json.dumps(cluster.notes("waiting"))
        cluster.admin.call("kill_host", host=min(before & after))
        until(lambda: len(hosts(cluster) & before) == 1, "a second one is made of the same kind")
        undone = cluster.run("rollout", "undo", "--cluster", cluster.name, seconds=300)
        log = writer.stop()

    assert undone.code == 0, undone.err
    assert lost(log, as_found(cluster.client().read(log.prefix))) == ()
    until(lambda: len(cluster.healthy()) == 3, "all members are healthy")
    assert record(cluster).state is State.DONE
    assert not former_of(cluster).revision.master.kubelet_kubeconfig


def test_each_host_is_replaced_in_its_turn_though_one_is_killed_meanwhile_and_no_write_is_lost(
    cluster: RealCluster,
) -> None:
    before = hosts(cluster)
    with cluster.writing() as writer, watching(cluster) as away:
        done = threading.Thread(target=with_kubelet, args=(cluster, makes(cluster, startable={"kubelet.service": []})))
        done.start()
        turn = until(lambda: record(cluster).turn, "the first host leaves", every=0.02)
        successor = until(lambda: next(iter(hosts(cluster) - before), None), "another one takes its place", every=0.02)
        until(lambda: next(e for e in cluster.hosts() if e["name"] == successor)["pid"], "it runs", every=0.02)
        cluster.admin.call("kill_host", host=successor)
        done.join()
        log = writer.stop()

    number = record(cluster).wanted
    assert record(cluster).state is State.DONE
    assert not hosts(cluster) & {*before, successor, turn.name}
    assert max(away) == 1, "one disk at a time had no host"
    assert lost(log, as_found(cluster.client().read(log.prefix))) == ()
    leaves = [
        each
        for each in record(cluster).events
        if each.text == f"takes revision {number}: another machine takes its place"
    ]
    assert {each.machine for each in leaves} == before
    until(lambda: present(cluster) == {number}, "every report names the revision")
    assert cluster.run("status", "--cluster", cluster.name, "--wait").code == 0


def test_removing_it_again_is_refused_with_the_reason(cluster: RealCluster) -> None:
    undone = cluster.run("rollout", "undo", "--cluster", cluster.name)

    assert undone.code == 4
    assert "kubelets cannot be removed from a running cluster" in undone.err


def test_the_only_master_is_replaced_only_if_that_is_accepted() -> None:
    with RealCluster() as single:
        single.up("--masters", "1")
        single.etcdctl("put", "hello", "world")
        (before,) = hosts(single)
        with_kubelet(single, makes(single))

        assert hosts(single) != {before}
        until(lambda: single.healthy() == {"main/a"}, "its member is healthy")
        assert "world" in single.etcdctl("get", "hello").stdout
