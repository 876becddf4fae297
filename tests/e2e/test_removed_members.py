"""A member that somebody removes with etcdctl rejoins by itself: real disks, real etcd, real agents.

On code that does not look for it, a member that was removed while it served exits and is started again for ever, and
one that was removed while its host was down stays refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from clusters.real import RealCluster, until
from protokube.etcd.client import GatewayEtcd

MINUTES = 240.0


@pytest.fixture
def make() -> Iterator[Callable[[str], RealCluster]]:
    with RealCluster() as cluster:

        def up(after: str) -> RealCluster:
            maintenance = {"rejoinRemovedAfter": after}
            spec = cluster.write_spec(etcdClusters=[{"name": "main", "maintenance": maintenance}])
            try:
                return cluster.up(str(spec))
            finally:
                spec.unlink()

        yield up


def id_of(etcd: GatewayEtcd, member: str) -> int:
    return next((each.id for each in etcd.members() if each.name == f"etcd-{member}"), 0)


def remove(cluster: RealCluster, member: str) -> int:
    """As a person does it. etcd changes its members only after all of them have been connected for 5 s."""
    found = id_of(cluster.client(), member)

    def removed() -> bool:
        asked = cluster.etcdctl("member", "remove", f"{found:x}")
        return asked.returncode == 0 or "member not found" in asked.stderr.lower()  # a first answer may have been lost

    until(removed, f"{member} is removed", every=1)
    return found


def until_rejoined(cluster: RealCluster, member: str, old: int) -> None:
    etcd = cluster.client()
    until(lambda: id_of(etcd, member) not in (0, old), f"{member} is listed under a new id", MINUTES)
    until(lambda: not any(each.learner for each in etcd.members()), "every member is a voter", MINUTES)
    until(lambda: len(cluster.healthy()) == 3, "all members are healthy", MINUTES)
    until(lambda: cluster.status()["ready"], "status is ready", MINUTES)


def asides(cluster: RealCluster, member: str) -> str:
    host, volume = cluster.host_of(member), cluster.volume(member)["id"]
    return cluster.inside(host, "sh", "-c", f"ls -d /mnt/master-{volume}/var/etcd/*.aside-*").stdout


def test_a_member_that_is_removed_while_it_serves_or_while_its_host_is_down_rejoins_once(
    make: Callable[[str], RealCluster],
) -> None:
    cluster = make("20s")
    cluster.client().put("/kept", "acknowledged")

    old = remove(cluster, "b")
    told = until(
        lambda: next((x["text"] for x in cluster.notes("waiting") if "was removed from etcd" in x["text"]), ""),
        "its agent says so",
        MINUTES,
    )
    assert f"member {old:x} of main/b was removed from etcd's member list" in told
    assert "it rejoins by itself after 20 seconds" in told
    volume, host = cluster.volume("b")["id"], cluster.host_of("b")
    until(
        lambda: [x for x in cluster.status()["disks"] if x["id"] == volume and x["phase"] == "removed"],
        "status shows it as removed",
    )
    text = cluster.run("status", "--cluster", cluster.name)
    assert text.code == 3, text.out
    explained = cluster.run("explain", "member", "etcd-b", "--cluster", cluster.name).out
    assert "was removed from etcd's member list" in explained
    assert "it rejoins by itself" in explained
    assert not cluster.inside(host, "sh", "-c", "ls /etc/kubernetes/manifests | grep etcd").stdout
    until_rejoined(cluster, "b", old)
    assert "data.aside-1" in asides(cluster, "b")

    # another one, while its host is down
    cluster.admin.call("pause_group")
    cluster.admin.call("declare_dead", host=cluster.host_of("c"))
    old = remove(cluster, "c")
    cluster.admin.call("resume_group")
    until_rejoined(cluster, "c", old)
    assert "data.aside-1" in asides(cluster, "c")

    # the second removal of one within a day is meant, until a person adds it again
    old = remove(cluster, "b")
    hint = until(
        lambda: next((x["hint"] for x in cluster.notes("needsAPerson") if "taken to be meant" in x["text"]), ""),
        "its agent asks for a person",
        MINUTES,
    )
    text = cluster.run("status", "--cluster", cluster.name)
    assert text.code == 4, text.out
    words = hint.split("`")[1].split()
    assert words[:3] == ["etcdctl", "member", "add"]
    until(lambda: cluster.etcdctl(*words[1:]).returncode == 0, "it is added as the hint says", every=1)
    until_rejoined(cluster, "b", old)
    assert "data.aside-2" in asides(cluster, "b")
    for name in cluster.endpoints:
        assert [each.value for each in cluster.client(name).read("/kept")] == ["acknowledged"]
