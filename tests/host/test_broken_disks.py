"""File systems that break under a running member: real ext4, real loop devices, real etcd.

On code that does not watch them, the member stays «serving» for ever and etcd is restarted again and again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from clusters.broken_disks import (
    MINUTES,
    fill_disk_of,
    forget_faults,
    heals,
    notes,
    point_of,
    remount,
    remount_while_etcd_restarts,
    seen_from_outside,
    show_whole,
    shut_down,
)
from clusters.real import RealCluster, until
from protokube.local.disk import loops


@pytest.fixture(scope="module")
def cluster() -> Iterator[RealCluster]:
    with RealCluster() as made:
        yield made.up()


@pytest.mark.parametrize("way", ["remount,ro", "abort", "shutdown"])
def test_a_file_system_that_broke_is_mounted_anew_on_its_machine(cluster: RealCluster, way: str) -> None:
    forget_faults(cluster)
    etcd = cluster.client()
    members = [each.id for each in etcd.members()]
    host, epoch = cluster.host_of("b"), cluster.volume("b")["epoch"]
    etcd.put("/kept", way)

    match way:
        case "shutdown":
            shut_down(seen_from_outside(cluster, "b"))
        case "abort":
            remount(cluster, "b", "abort")
        case _:
            remount_while_etcd_restarts(cluster, "b")

    heals(cluster, "b", epoch)
    assert cluster.host_of("b") == host
    assert [each.id for each in etcd.members()] == members, "no member was replaced for it"
    for name in cluster.endpoints:
        assert [each.value for each in cluster.client(name).read("/kept")] == [way]


def test_a_disk_whose_every_access_fails_for_a_while_heals_by_itself(cluster: RealCluster) -> None:
    forget_faults(cluster)
    volume = cluster.volume("b")
    (loop,) = loops.bound(Path(volume["image"]))
    cluster.client().put("/kept", "through errors")

    loops.cut(loop)
    try:
        seen = until(
            lambda: next((x for x in notes(cluster, "waiting") if "before, its file system" in x), None),
            "an agent gives the cause",
            MINUTES,
        )
    finally:
        show_whole(loop.path, loop.image.stat().st_size)

    # whichever sign was seen first: the kernel counts an error a moment before it shows the option
    assert re.search("turned read-only after an error|reports [0-9]+ error|input/output error", seen), seen
    heals(cluster, "b", volume["epoch"])
    for name in cluster.endpoints:
        assert [each.value for each in cluster.client(name).read("/kept")] == ["through errors"]


def test_a_full_file_system_is_said_to_be_full(cluster: RealCluster) -> None:
    host, point = cluster.host_of("b"), point_of(cluster, "b")
    fill_disk_of(cluster, "b")
    try:
        until(
            lambda: any("its file system is full" in each for each in notes(cluster, "needsAPerson")),
            "an agent says that it is full",
            MINUTES,
        )
        assert cluster.run("status", "--cluster", cluster.name).code == 4
    finally:
        cluster.inside(host, "rm", "-f", f"{point}/filler")

    until(lambda: len(cluster.healthy()) == 3, "all members are healthy", MINUTES)
    until(lambda: cluster.status()["ready"], "the cluster is ready", MINUTES)
