"""A copy that no record tells from the original, made and put back between two raft marks: real disks, real etcd.

On code that does not listen to etcd, the copy of a follower panics for ever, and nothing says why.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from clusters.real import RealCluster, until
from protokube.etcd.fatal_messages import find
from protokube.members.fatal_messages import Ending

MINUTES = 240.0


@pytest.fixture
def cluster() -> Iterator[RealCluster]:
    with RealCluster() as made:
        yield made.up()


def leader(cluster: RealCluster) -> str:
    told = [cluster.client(name).status(name) for name in cluster.endpoints]
    ids = {each.member_id: name for each, name in zip(told, cluster.endpoints, strict=True)}
    return until(lambda: ids.get(told[0].leader), "somebody leads").removeprefix("etcd-")


def just_marked(cluster: RealCluster, member: str) -> None:
    """Wait for a raft mark to be recorded, so that the next one is a minute away."""
    folder = cluster.paths.root
    ids = {each.name: each.id for each in cluster.client().members()}
    name = f"-{ids[f'etcd-{member}']:x}"

    def marks() -> dict[Path, float]:
        return {each: each.stat().st_mtime for each in folder.glob("**/raft/*") if each.name.endswith(name)}

    before = until(marks, "a mark is recorded")
    for each in ("once", "and again: etcd writes a commit index to the disk with the next entry"):
        cluster.client().put("/marked", each)
    until(lambda: marks() != before, "the next mark is recorded", MINUTES)


def copy_then_write(cluster: RealCluster, member: str) -> Path:
    """A copy under the running etcd, and writes that it lacks."""
    just_marked(cluster, member)
    volume = cluster.volume(member)
    copied = cluster.state / f"{volume['id']}.copy"
    cluster.inside(volume["attached_to"], "fsfreeze", "--freeze", f"/mnt/master-{volume['id']}")
    try:
        shutil.copyfile(volume["image"], copied)
    finally:
        cluster.inside(volume["attached_to"], "fsfreeze", "--unfreeze", f"/mnt/master-{volume['id']}")
    etcd = cluster.client()
    for number in range(30):
        until(lambda: etcd.put("/kept", f"acknowledged {number}"), "a write is acknowledged")  # noqa: B023
    return copied


def put_back(cluster: RealCluster, member: str, copied: Path) -> Path:
    """Kill the holder while no group starts another, and put another image in place; where the former one is kept."""
    cluster.admin.call("pause_group")
    cluster.admin.call("declare_dead", host=cluster.host_of(member))
    volume = until(
        lambda: found if (found := cluster.volume(member))["device"] is None else None, "the disk is bound nowhere"
    )
    image = Path(volume["image"])
    kept = image.with_name(f"{copied.name}.former")
    image.rename(kept)
    copied.rename(image)
    return kept


def panicked(cluster: RealCluster, member: str) -> bool:
    host = cluster.host_of(member)
    log = cluster.paths.host(host) / "var/log/pods/kube-system_etcd-server/etcd-container.log"
    words = find(log.read_text(errors="replace").split("\n")) if log.exists() else ()
    return any(each.ending is Ending.LACKS_ACKNOWLEDGED for each in words)


def reads_the_last_write(cluster: RealCluster) -> None:
    until(lambda: len(cluster.healthy()) == 3, "all members are healthy", MINUTES)
    etcd = cluster.client()
    until(lambda: not any(each.learner for each in etcd.members()), "every member is a voter", MINUTES)
    for name in cluster.endpoints:
        assert [each.value for each in cluster.client(name).read("/kept")] == ["acknowledged 29"]


def reasons(cluster: RealCluster) -> list[str]:
    return [each["text"] for each in cluster.notes("needsAPerson") if "is an older copy" in each["text"]]


def test_the_copy_of_a_follower_is_found_by_its_panic_and_its_member_joins_anew(cluster: RealCluster) -> None:
    member = next(each for each in "abc" if each != leader(cluster))
    ids = {each.name: each.id for each in cluster.client().members()}
    copied = copy_then_write(cluster, member)
    put_back(cluster, member, copied).unlink()

    cluster.admin.call("resume_group")

    def joined_anew() -> bool:
        now = {each.name: each.id for each in cluster.client().members()}
        return now.get(f"etcd-{member}", 0) not in (0, ids[f"etcd-{member}"])

    until(joined_anew, "the member joins anew", MINUTES)
    reads_the_last_write(cluster)
    listed = cluster.inside(
        cluster.host_of(member), "sh", "-c", f"ls /mnt/master-{cluster.volume(member)['id']}/var/etcd"
    ).stdout
    assert "data.aside-1" in listed
    until(lambda: cluster.status()["ready"], "status is ready", MINUTES)


def test_the_copy_of_the_leader_ends_with_all_that_was_acknowledged(cluster: RealCluster) -> None:
    """Its successor knows nothing of what it acknowledged, and lets it catch up."""
    member = leader(cluster)
    copied = copy_then_write(cluster, member)
    put_back(cluster, member, copied).unlink()

    cluster.admin.call("resume_group")

    reads_the_last_write(cluster)
    until(lambda: cluster.status()["ready"], "status is ready", MINUTES)


def test_with_one_other_member_it_is_refused_and_the_original_is_taken_afterwards(cluster: RealCluster) -> None:
    first = leader(cluster)
    member, other = (each for each in "abc" if each != first)
    ids = {each.name: each.id for each in cluster.client().members()}
    copied = copy_then_write(cluster, member)
    original = put_back(cluster, member, copied)
    far = cluster.host_of(other)
    cluster.admin.call("resume_group")
    until(lambda: panicked(cluster, member), "the copy panics", MINUTES, every=0.02)
    cluster.admin.call("freeze_host", host=far)

    (reason,) = until(lambda: reasons(cluster), "the copy is refused", MINUTES)

    assert "no majority of the other voters" in reason
    disk, recorded = reason.split("; recorded are ")
    assert int(disk.rpartition("log up to ")[2]) < int(recorded.partition("log up to ")[2].partition(";")[0])
    explained = cluster.run("status", "--cluster", cluster.name)
    assert explained.code == 4, explained.out
    assert "log up to" in explained.out
    assert "protokube etcd accept" in explained.out
    host = cluster.host_of(member)
    rounds = cluster.agents()[host]["round"]
    until(lambda: cluster.agents()[host]["round"] > rounds + 2, "more rounds", MINUTES)
    assert reasons(cluster) == [reason]
    put_back(cluster, member, original).unlink()
    cluster.admin.call("resume_group")
    names = [f"etcd-{first}", f"etcd-{member}"]
    until(
        lambda: [each.value for each in cluster.client(*names).read("/kept")] == ["acknowledged 29"],
        "the original serves",
        MINUTES,
    )
    assert reasons(cluster) == []
    cluster.admin.call("thaw_host", host=far)
    reads_the_last_write(cluster)
    assert {each.name: each.id for each in cluster.client().members()} == ids, "no member was replaced"
