"""An older copy of a member's disk, put back in place as a restored snapshot is: real disks, real etcd.

On code that does not look for it, the copy is taken for the member: with one other member it forms a quorum that lacks
acknowledged writes, and with two it panics for ever.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from clusters.real import RealCluster, until

MINUTES = 240.0
LOOKS = 8
"""A second apart: without a memory of it, a refused disk was mounted and unmounted every 2.5 s."""


@pytest.fixture
def cluster() -> Iterator[RealCluster]:
    with RealCluster() as made:
        yield made.up()


def copy_image(cluster: RealCluster, member: str) -> Path:
    """What a snapshot of the disk would hold: taken under the running etcd, as clouds do."""
    volume = cluster.volume(member)
    copied = cluster.state / f"{volume['id']}.copy"
    cluster.inside(volume["attached_to"], "sync")
    shutil.copyfile(volume["image"], copied)
    return copied


def take_over(cluster: RealCluster, member: str) -> None:
    before = cluster.volume(member)["epoch"]
    cluster.admin.call("kill_host", host=cluster.host_of(member))
    until(lambda: cluster.volume(member)["epoch"] > before, f"{member} was taken over")
    until(lambda: len(cluster.healthy()) == 3, "all members are healthy again")


def put_back(cluster: RealCluster, member: str, copied: Path) -> None:
    """Kill the holder while no group starts another, and restore the copy in place."""
    cluster.admin.call("pause_group")
    host = cluster.host_of(member)
    cluster.admin.call("declare_dead", host=host)
    volume = until(
        lambda: found if (found := cluster.volume(member))["device"] is None else None, "the disk is bound nowhere"
    )
    shutil.copyfile(copied, volume["image"])
    copied.unlink()


def person(cluster: RealCluster) -> list[str]:
    return [each["text"] for each in cluster.notes("needsAPerson")]


def refusal(cluster: RealCluster) -> str | None:
    """Why the copy of b's disk is refused, as its agent says it now."""
    return next((each for each in person(cluster) if "is an older copy of the disk of main/b" in each), None)


def mount_of(cluster: RealCluster, member: str) -> str:
    """The line about a member's volume in the mount table of its host: another mount is another line."""
    return cluster.inside(
        cluster.host_of(member), "grep", f"/mnt/master-{cluster.volume(member)['id']} ", "/proc/self/mountinfo"
    ).stdout


def test_with_all_others_alive_an_older_copy_is_set_aside_and_the_member_joins_anew(cluster: RealCluster) -> None:
    etcd = cluster.client()
    old_id = next(each.id for each in etcd.members() if each.name == "etcd-b")
    copied = copy_image(cluster, "b")
    take_over(cluster, "b")
    etcd.put("/kept", "acknowledged")
    put_back(cluster, "b", copied)

    cluster.admin.call("resume_group")

    until(lambda: len(cluster.healthy()) == 3, "all members are healthy", MINUTES)
    until(lambda: not any(each.learner for each in etcd.members()), "every member is a voter", MINUTES)
    new_id = next(each.id for each in etcd.members() if each.name == "etcd-b")
    assert new_id != old_id
    for name in cluster.endpoints:
        assert [each.value for each in cluster.client(name).read("/kept")] == ["acknowledged"]
    host = cluster.host_of("b")
    listed = cluster.inside(host, "sh", "-c", f"ls /mnt/master-{cluster.volume('b')['id']}/var/etcd").stdout
    assert "data.aside-1" in listed


def test_an_older_copy_and_a_member_that_missed_writes_never_form_a_quorum(cluster: RealCluster) -> None:
    copied = copy_image(cluster, "b")
    take_over(cluster, "b")
    cluster.admin.call("cut_host", host=cluster.host_of("c"), down=True)
    etcd = cluster.client("etcd-a")
    until(lambda: etcd.put("/kept", "acknowledged"), "a write is acknowledged by a and b")
    put_back(cluster, "b", copied)
    cluster.admin.call("freeze_host", host=cluster.host_of("a"))
    cluster.admin.call("cut_host", host=cluster.host_of("c"), down=False)
    cluster.admin.call("resume_group")

    reason = until(lambda: refusal(cluster), "the older copy is refused", MINUTES)

    assert "the disk has epoch" in reason
    assert "recorded are epoch" in reason
    mounted = mount_of(cluster, "b")
    for _ in range(LOOKS):
        time.sleep(1)
        assert refusal(cluster) == reason, "what was refused gives one reason, in every round"
        assert mount_of(cluster, "b") == mounted != "", "what was refused is mounted once"
    said = cluster.run("status", "--cluster", cluster.name)
    assert said.code == 4, said.out
    assert "protokube etcd accept" in said.out
    cluster.admin.call("thaw_host", host=cluster.host_of("a"))
    until(lambda: len(cluster.healthy()) == 3, "all members are healthy", MINUTES)
    for name in cluster.endpoints:
        assert [each.value for each in cluster.client(name).read("/kept")] == ["acknowledged"]
    until(lambda: cluster.status()["ready"], "status is ready again", MINUTES)


def test_a_person_accepts_an_older_copy_of_the_only_member(tmp_path: Path) -> None:
    """With one master nobody else has the data: nothing starts until a person names what is on the disk."""
    with RealCluster() as cluster:
        cluster.up("--masters", "1")
        etcd = cluster.client()
        etcd.put("/before", "the copy")
        copied = copy_image(cluster, "a")
        epoch = cluster.volume("a")["epoch"]
        cluster.admin.call("kill_host", host=cluster.host_of("a"))
        until(lambda: cluster.volume("a")["epoch"] > epoch, "a was taken over")
        until(lambda: etcd.put("/after", "the copy"), "it serves again")
        put_back(cluster, "a", copied)
        cluster.admin.call("resume_group")
        hint = until(
            lambda: next((each["hint"] for each in cluster.notes("needsAPerson") if "etcd accept" in each["hint"]), ""),
            "the older copy is refused",
            MINUTES,
        )
        words = hint.split("protokube ")[1].split()
        volume = words[2]

        wrong = cluster.run(*words[:-1], "0", "--cluster", cluster.name, "--yes")
        assert wrong.code == 2, wrong.out
        assert "other figures" in wrong.err
        plan = cluster.run(*words, "--cluster", cluster.name)
        assert plan.code == 0, plan.err
        assert "--yes accepts it" in plan.out
        done = cluster.run(*words, "--cluster", cluster.name, "--yes")
        assert done.code == 0, done.err

        until(lambda: cluster.healthy() == {"main/a"}, "it serves the older data", MINUTES)
        assert [each.key for each in etcd.read("/")] == ["/before"] or "/after" not in {x.key for x in etcd.read("/")}
        again = cluster.run(*words, "--cluster", cluster.name, "--yes")
        assert again.code == 4, again.out
        assert volume in again.err
