"""File systems that break under a running member: real ext4, real loop devices, real etcd.

On code that does not watch them, the member stays «serving» for ever and etcd is restarted again and again.
"""

from __future__ import annotations

import fcntl
import os
import re
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from helpers_cluster import RealCluster, until
from protokube.local import loops
from protokube.local.mounts import SHUTDOWN

MINUTES = 240.0
FLUSH_THE_LOG = 1


@pytest.fixture(scope="module")
def cluster() -> Iterator[RealCluster]:
    with RealCluster() as made:
        yield made.up()


def point_of(cluster: RealCluster, member: str) -> str:
    return f"/mnt/master-{cluster.volume(member)['id']}"


def remount(cluster: RealCluster, member: str, options: str) -> None:
    ran = cluster.inside(cluster.host_of(member), "mount", "-o", f"remount,{options}", point_of(cluster, member))
    assert ran.returncode == 0, ran.stderr


def remount_while_etcd_restarts(cluster: RealCluster, member: str) -> None:
    """The kernel turns nothing read-only that is open for writing."""
    point = point_of(cluster, member)
    attempt = f"kill -9 $(pidof etcd); mount -o remount,ro {point} 2>/dev/null"

    def tried() -> bool:
        return cluster.inside(cluster.host_of(member), "sh", "-c", attempt).returncode == 0

    until(tried, f"{point} is read-only", MINUTES)


def shut_down(cluster: RealCluster, member: str) -> None:
    host = next(each for each in cluster.hosts() if each["name"] == cluster.host_of(member))
    folder = os.open(f"/proc/{host['pid']}/root{point_of(cluster, member)}", os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.ioctl(folder, SHUTDOWN, struct.pack("I", FLUSH_THE_LOG))
    finally:
        os.close(folder)


def show_whole(loop: loops.Loop) -> None:
    """Move the window of a loop device back to its image."""
    handle = os.open(loop.path, os.O_RDWR | os.O_CLOEXEC)
    try:
        status = bytearray(loops.INFO.size)
        fcntl.ioctl(handle, loops.GET_STATUS64, status)
        fields = list(loops.INFO.unpack(bytes(status)))
        fields[loops.OFFSET], fields[loops.SIZE_LIMIT] = 0, loop.image.stat().st_size
        fcntl.ioctl(handle, loops.SET_STATUS64, loops.INFO.pack(*fields))
    finally:
        os.close(handle)


def heals(cluster: RealCluster, member: str, epoch: int) -> None:
    until(lambda: cluster.volume(member)["epoch"] > epoch, f"the disk of {member} was mounted anew", MINUTES)
    until(lambda: len(cluster.healthy()) == 3, "all members are healthy", MINUTES)
    until(lambda: cluster.status()["ready"], "the cluster is ready", MINUTES)


def notes(cluster: RealCluster, kind: str) -> list[str]:
    return [each["text"] for each in cluster.notes(kind)]


def forget_faults(cluster: RealCluster) -> None:
    for file in cluster.paths.store.glob("*/etcd/main/diskfaults/*"):
        file.unlink()


@pytest.mark.parametrize("way", ["remount,ro", "abort", "shutdown"])
def test_a_file_system_that_broke_is_mounted_anew_on_its_machine(cluster: RealCluster, way: str) -> None:
    forget_faults(cluster)
    etcd = cluster.client()
    members = [each.id for each in etcd.members()]
    host, epoch = cluster.host_of("b"), cluster.volume("b")["epoch"]
    etcd.put("/kept", way)

    match way:
        case "shutdown":
            shut_down(cluster, "b")
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
        show_whole(loop)

    assert re.search("turned read-only after an error|input/output error", seen), seen
    heals(cluster, "b", volume["epoch"])
    for name in cluster.endpoints:
        assert [each.value for each in cluster.client(name).read("/kept")] == ["through errors"]


def test_a_disk_that_hangs_is_named_and_its_member_comes_back_with_it(cluster: RealCluster) -> None:
    forget_faults(cluster)
    host = next(each for each in cluster.hosts() if each["name"] == cluster.host_of("b"))
    point = f"/proc/{host['pid']}/root{point_of(cluster, 'b')}"
    subprocess.run(["fsfreeze", "--freeze", point], check=True)
    try:
        until(
            lambda: any("hangs when it is written" in each for each in notes(cluster, "waiting")),
            "an agent says that the disk hangs",
            MINUTES,
        )
        cluster.client().put("/kept", "without b")
    finally:
        subprocess.run(["fsfreeze", "--unfreeze", point], check=True)

    until(lambda: len(cluster.healthy()) == 3, "all members are healthy", MINUTES)
    until(lambda: cluster.status()["ready"], "the cluster is ready", MINUTES)
    assert [each.value for each in cluster.client("etcd-b").read("/kept")] == ["without b"]


def test_a_full_file_system_is_said_to_be_full(cluster: RealCluster) -> None:
    host, point = cluster.host_of("b"), point_of(cluster, "b")
    fill = f"fallocate -l $(( $(stat -f -c %f*%S {point}) )) {point}/filler || dd if=/dev/zero of={point}/filler bs=64k"
    cluster.inside(host, "sh", "-c", f"{fill}; dd if=/dev/zero of={point}/rest bs=1k; true")
    try:
        until(
            lambda: any("its file system is full" in each for each in notes(cluster, "needsAPerson")),
            "an agent says that it is full",
            MINUTES,
        )
        assert cluster.run("status", "--cluster", cluster.name).code == 4
    finally:
        cluster.inside(host, "rm", "-f", f"{point}/filler", f"{point}/rest")

    until(lambda: len(cluster.healthy()) == 3, "all members are healthy", MINUTES)
    until(lambda: cluster.status()["ready"], "the cluster is ready", MINUTES)


def test_a_disk_that_breaks_again_and_again_is_refused_until_a_person_accepts_it(cluster: RealCluster) -> None:
    forget_faults(cluster)
    volume = cluster.volume("b")["id"]
    for _ in range(2):
        epoch = cluster.volume("b")["epoch"]
        remount(cluster, "b", "abort")
        heals(cluster, "b", epoch)

    remount(cluster, "b", "abort")

    until(
        lambda: any("broke 3 times within an hour" in each for each in notes(cluster, "needsAPerson")),
        "it is refused",
        MINUTES,
    )
    seen = cluster.run("status", "--cluster", cluster.name)
    assert seen.code == 4
    assert f"protokube etcd accept {volume} --repaired" in seen.out
    phase = next(each["phase"] for each in cluster.status()["volumes"] if each["id"] == volume)
    assert phase == "broken"
    accepted = cluster.run("etcd", "accept", volume, "--repaired", "--yes", "--cluster", cluster.name)
    assert accepted.code == 0, accepted.err
    until(lambda: len(cluster.healthy()) == 3, "all members are healthy", MINUTES)
    until(lambda: cluster.status()["ready"], "the cluster is ready", MINUTES)
