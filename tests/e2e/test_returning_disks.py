"""A deleted disk that its provider brings back under the same id: real disks, real etcd, real agents.

On code that does not look which disk is the member's, both are mounted and served by turns, or the old one is served
and the current one stays free.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from clusters.real import RealCluster, until
from protokube.local.disk import disks

MINUTES = 240.0
QUIET = 20.0
"""Seconds in which a volume that flaps would be mounted and unmounted several times."""


@pytest.fixture
def cluster() -> Iterator[RealCluster]:
    with RealCluster() as made:
        made.up()
        made.client().put("/kept", "acknowledged")
        yield made


def delete(cluster: RealCluster, member: str) -> str:
    """At the provider, which keeps what was on it for a while."""
    volume = cluster.volume(member)
    image = Path(volume["image"])
    kept(cluster, volume["id"]).hardlink_to(image)
    cluster.admin.call("delete_volume", volume=volume["id"])
    return str(volume["id"])


def bring_back(cluster: RealCluster, volume: str) -> None:
    kept(cluster, volume).rename(cluster.paths.image(volume))
    table = sqlite3.connect(cluster.paths.database, timeout=30)
    with table:
        table.execute("UPDATE volumes SET deleted = 0 WHERE id = ?", (volume,))
    table.close()


def kept(cluster: RealCluster, volume: str) -> Path:
    return cluster.paths.disks / f"{volume}.kept"


def volumes_of(cluster: RealCluster, member: str) -> dict[str, dict[str, Any]]:
    return {each["id"]: each for each in cluster.admin.call("volumes") if each["member"] == member}


def ids(cluster: RealCluster) -> dict[str, int]:
    return {each.name: each.id for each in cluster.client().members()}


def rounds(cluster: RealCluster) -> dict[str, int]:
    return {host: status["round"] for host, status in cluster.agents().items()}


def etcds(cluster: RealCluster) -> dict[str, str]:
    """By host: the process id of its etcd."""
    return {each["name"]: cluster.inside(each["name"], "pidof", "etcd").stdout.strip() for each in cluster.hosts()}


def nothing_flaps(cluster: RealCluster) -> None:
    """No etcd is started again, no epoch rises, and nobody is busy."""
    running, had = etcds(cluster), rounds(cluster)
    epochs = {each["id"]: each["epoch"] for each in cluster.admin.call("volumes")}
    with cluster.writing() as writer:
        until(lambda: len(writer.log().acknowledged) > QUIET * 10, "it is written all the while", MINUTES)
    assert etcds(cluster) == running
    assert {each["id"]: each["epoch"] for each in cluster.admin.call("volumes")} == epochs
    more = {host: number - had[host] for host, number in rounds(cluster).items() if host in had}
    assert max(more.values()) < 100, more


def phase(cluster: RealCluster, volume: str) -> str:
    return next(str(each["phase"]) for each in cluster.status()["disks"] if each["id"] == volume)


def digest(cluster: RealCluster, volume: str) -> str:
    with cluster.paths.image(volume).open("rb") as image:
        return hashlib.file_digest(image, "sha256").hexdigest()


def test_a_disk_whose_member_lives_on_a_new_one_is_neither_claimed_nor_served_nor_deleted(cluster: RealCluster) -> None:
    before = ids(cluster)
    old = delete(cluster, "b")
    until(lambda: ids(cluster).get("etcd-b") not in (None, before["etcd-b"]), "b has a new id", MINUTES)
    until(lambda: cluster.status()["ready"], "it is whole again", MINUTES)
    (new,) = volumes_of(cluster, "b")
    was = hashlib.sha256(kept(cluster, old).read_bytes()).hexdigest()

    bring_back(cluster, old)
    until(lambda: phase(cluster, old) == "superseded", "status calls it superseded")
    nothing_flaps(cluster)

    was_on = volumes_of(cluster, "b")[new]
    cluster.admin.call("kill_host", host=was_on["attached_to"])
    until(lambda: volumes_of(cluster, "b")[new]["epoch"] > was_on["epoch"], "b moved to another host", MINUTES)
    until(lambda: len(cluster.healthy()) == 3, "all members are healthy", MINUTES)

    assert volumes_of(cluster, "b")[new]["attached_to"]
    assert volumes_of(cluster, "b")[old]["attached_to"] is None
    assert digest(cluster, old) == was
    assert [each.value for each in cluster.client().read("/kept")] == ["acknowledged"]


def test_a_disk_that_is_back_while_its_replacement_is_blank_stays_the_members(cluster: RealCluster) -> None:
    before, host = ids(cluster), cluster.host_of("b")
    cluster.admin.call("pause_group")  # nobody is there to take the replacement
    cluster.admin.call("kill_host", host=host)
    until(lambda: host not in {each["name"] for each in cluster.hosts()}, "its host is dead")
    old = delete(cluster, "b")
    until(lambda: volumes_of(cluster, "b"), "another disk is made for b", MINUTES)
    (new,) = volumes_of(cluster, "b")

    bring_back(cluster, old)
    cluster.admin.call("resume_group")
    until(lambda: len(cluster.healthy()) == 3, "all members are healthy", MINUTES)

    assert volumes_of(cluster, "b")[old]["attached_to"]
    assert ids(cluster) == before
    until(lambda: phase(cluster, new) == "unused", "status calls the other one unused")
    nothing_flaps(cluster)
    assert disks.find(cluster.paths.image(new)) is None
    assert not any(cluster.paths.image(new).read_bytes()), "nothing was written to it"
