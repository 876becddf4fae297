"""The raft position read from the log of a real etcd, 3.4 and 3.5: it is etcd's own, and it never falls."""

from __future__ import annotations

import shutil
import signal
import threading
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from clusters.etcd import SERIES, EtcdCluster, eventually, make_cluster
from protokube.etcd import Status
from protokube.etcd.client import GatewayEtcd
from protokube.etcd.wal import LogReader, read_position
from protokube.members.raftmark import LogPosition, RaftMark, is_behind, raised

MEGABYTE = 1_000_000


@pytest.fixture(params=SERIES)
def cluster(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[EtcdCluster]:
    """One member that serves."""
    made = make_cluster(tmp_path, request.param, "a", election=3000)
    try:
        made.start()
        made.wait()
        yield made
    finally:
        made.close()


def log_of(cluster: EtcdCluster, name: str = "a") -> Path:
    return cluster.members[name].data / "member" / "wal"


def segments(wal_dir: Path) -> list[str]:
    return sorted(path.name for path in wal_dir.glob("*.wal"))


def write(etcd: GatewayEtcd, count: int, value: str = "value") -> None:
    for number in range(count):
        etcd.put(f"key-{number % 7}", value)


def mark_of(position: LogPosition, generation: str = "g1") -> RaftMark:
    return RaftMark(
        generation=generation,
        cluster_id=position.cluster_id,
        member_id=position.member_id,
        term=position.term,
        commit=position.commit,
    )


def difference(position: LogPosition, status: Status) -> str:
    """How the disk differs from what etcd answers; etcd may write the last commit index only with the next entry."""
    if (position.cluster_id, position.member_id) != (status.cluster_id, status.member_id):
        return "another member"
    if position.term != status.raft_term:
        return f"term {position.term}, not {status.raft_term}"
    if not status.raft_index - 1 <= position.commit <= status.raft_index:
        return f"commit {position.commit}, not {status.raft_index}"
    return "" if position.last_index == status.raft_index else f"last index {position.last_index}"


def test_the_position_on_the_disk_is_that_of_etcd(cluster: EtcdCluster) -> None:
    etcd, reader = cluster.client(), LogReader(log_of(cluster))
    for _ in range(5):
        write(etcd, 20)

        assert eventually(lambda: difference(reader.sync_and_read(), etcd.status("a"))) == ""
    cluster.members["a"].stop()
    assert read_position(log_of(cluster)) == reader.read()


def test_each_of_three_members_has_its_own_position(tmp_path: Path) -> None:
    cluster = make_cluster(tmp_path, "3.5", election=3000)
    try:
        cluster.start()
        cluster.wait()
        etcd = cluster.client()

        def differs(name: str) -> str:
            write(etcd, 1)  # a follower writes the commit of one entry together with the next entry
            return difference(read_position(log_of(cluster, name)), etcd.status(name))

        write(etcd, 30)
        for name in "abc":
            assert eventually(lambda: differs(name)) == ""  # noqa: B023
    finally:
        cluster.close()


def test_the_position_never_falls_over_writes_kills_and_restarts(cluster: EtcdCluster) -> None:
    member, reader = cluster.members["a"], LogReader(log_of(cluster))
    read: list[LogPosition] = []
    stopped = threading.Event()

    def watch() -> None:
        while not stopped.wait(0.02):
            read.append(reader.sync_and_read())

    watching = threading.Thread(target=watch)
    watching.start()
    try:
        for how in (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM):
            etcd = cluster.client()
            write(etcd, 40)
            acknowledged = etcd.status("a")
            member.stop(how)
            at_rest = read_position(log_of(cluster))
            member.start()
            cluster.wait()

            assert at_rest.commit >= acknowledged.raft_index - 1
            assert at_rest.term == acknowledged.raft_term
            assert read_position(log_of(cluster)).term > at_rest.term
    finally:
        stopped.set()
        watching.join()

    member.stop()
    assert len(read) > 3
    for before, after in pairwise(read):
        assert not is_behind(after, mark_of(before), "g1")
    assert reader.read() == read_position(log_of(cluster))


def test_the_position_never_falls_over_the_cut_of_a_segment(cluster: EtcdCluster) -> None:
    etcd, reader = cluster.client(), LogReader(log_of(cluster))
    first = segments(log_of(cluster))
    mark: RaftMark | None = None
    for _ in range(70):
        write(etcd, 1, "v" * MEGABYTE)
        position = reader.sync_and_read()
        assert not is_behind(position, mark, "g1")
        mark = raised(mark, mark_of(position))

    assert len(segments(log_of(cluster))) > len(first) == 1
    assert eventually(lambda: difference(reader.read(), etcd.status("a"))) == ""
    cluster.members["a"].stop()
    assert reader.read() == read_position(log_of(cluster))


def test_a_copy_of_the_data_taken_earlier_is_behind_a_mark_made_later(cluster: EtcdCluster, tmp_path: Path) -> None:
    etcd, member = cluster.client(), cluster.members["a"]
    write(etcd, 20)
    member.stop()
    shutil.copytree(member.data, tmp_path / "copy")
    copied = read_position(log_of(cluster))
    member.start()
    cluster.wait()
    write(etcd, 20)

    mark = mark_of(LogReader(log_of(cluster)).sync_and_read())

    assert not is_behind(read_position(log_of(cluster)), mark, "g1")
    older = read_position(tmp_path / "copy" / "member" / "wal")
    assert older == copied
    assert is_behind(older, mark, "g1")
    assert not is_behind(older, mark, "another generation")
    assert not is_behind(older, mark_of(older), "g1")
