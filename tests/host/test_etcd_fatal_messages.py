"""Every row of the table of etcd's last words, brought about at a real etcd, 3.4 and 3.5: the sentences are its own."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from random import Random

import pytest

from clusters.etcd import SERIES, EtcdCluster, Member, etcd_binary, eventually, make_cluster
from protokube.errors import TryLater
from protokube.etcd.fatal_messages import find
from protokube.etcd.faults import FATAL_MESSAGES
from protokube.etcd.wal import read_position
from protokube.members.fatal_messages import Ending, FatalMessage, corrupt_message, proof_of_a_copy, too_new_message

KINDS = [("3.4", "capnslog"), *((series, "zap") for series in SERIES)]
DOWNGRADES = [("3.4", "capnslog", "3.5"), ("3.4", "zap", "3.5"), *([("3.5", "zap", "3.6")] if "3.6" in SERIES else [])]
ONLY_IN_3_6 = ("cannot use none", "assertion failed")
"""How the rows begin that only 3.6 says, and later releases of 3.5 than the one that we test."""
SEEN: set[str] = set()
"""Patterns of the rows that were brought about."""


IDS = [f"{series}-{logger}" for series, logger in KINDS]


@pytest.fixture(params=KINDS, ids=IDS)
def cluster(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[EtcdCluster]:
    with running(tmp_path, *request.param) as made:
        yield made


@pytest.fixture(scope="module", params=KINDS, ids=IDS)
def shared(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdCluster]:
    """For tests that leave it as it was."""
    with running(tmp_path_factory.mktemp("shared"), *request.param) as made:
        yield made


@contextmanager
def running(folder: Path, series: str, logger: str) -> Iterator[EtcdCluster]:
    made = make_cluster(folder, series, election=3000)
    for member in made.members.values():
        member.command = [word.replace("--logger=zap", f"--logger={logger}") for word in member.command]
    try:
        made.start()
        made.wait()
        yield made
    finally:
        made.close()


def follower(cluster: EtcdCluster) -> Member:
    told = {name: cluster.client(name).status(name) for name in cluster.members}
    return next(cluster.members[name] for name, each in told.items() if each.leader != each.member_id)


def ended(member: Member, seconds: float = 20) -> tuple[FatalMessage, ...]:
    """Start it, and what it says until it ends; its earlier output is kept, as a pod's is."""
    member.start()
    assert member.process is not None
    member.process.wait(seconds)
    member.process = None
    return found(member)


def found(member: Member) -> tuple[FatalMessage, ...]:
    words = find(member.log.split("\n"))
    SEEN.update(row.text.pattern for each in words for row in FATAL_MESSAGES if row.text.fullmatch(each.sentence))
    return words


def write(cluster: EtcdCluster, count: int) -> None:
    etcd = cluster.client()
    for number in range(count):
        etcd.put(f"k{number}", "y" * 100)


def test_a_copy_that_lacks_what_it_acknowledged(cluster: EtcdCluster) -> None:
    write(cluster, 5)
    member = follower(cluster)
    member.freeze()
    copied = shutil.copytree(member.data, member.directory / "copy")
    member.thaw()
    write(cluster, 40)
    assert found(member) == ()
    member.stop()
    original = member.data.rename(member.directory / "original")
    shutil.copytree(copied, member.data)
    checked = time.time()

    words = ended(member)

    (last,) = words
    assert last.ending is Ending.LACKS_ACKNOWLEDGED
    disk = read_position(member.data / "member" / "wal")
    assert (last.cluster_id, last.member_id) == (disk.cluster_id, disk.member_id)
    assert disk.last_index < last.acknowledged
    assert proof_of_a_copy(words, disk, checked) == last
    assert proof_of_a_copy(words, disk, time.time() + 1) is None
    whole = read_position(original / "member" / "wal")
    assert whole.last_index >= last.acknowledged
    assert proof_of_a_copy(words, whole, checked) is None


def garble(path: Path, at: int, count: int) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(Random(at).randbytes(count))


def flip_in_log(member: Member) -> None:
    (segment,) = sorted((member.data / "member" / "wal").glob("*.wal"))[-1:]
    content = bytearray(segment.read_bytes())
    content[content.index(b"y" * 50)] ^= 1
    segment.write_bytes(content)


def garble_lengths(member: Member) -> None:
    (segment,) = sorted((member.data / "member" / "wal").glob("*.wal"))[-1:]
    with segment.open("r+b") as file:
        file.write(b"\xff" * 64)


def garble_head_of_database(member: Member) -> None:
    garble(member.data / "member" / "snap" / "db", 0, 8192)


def garble_pages(member: Member) -> None:
    """All behind the first two: which of them are in use depends on when etcd wrote them."""
    database = member.data / "member" / "snap" / "db"
    garble(database, 8192, database.stat().st_size - 8192)


def garble_kinds_of_pages(member: Member) -> None:
    """Each page still says its own number, and of itself that it is what there is not."""
    database = member.data / "member" / "snap" / "db"
    with database.open("r+b") as file:
        for at in range(8192, database.stat().st_size, 4096):
            file.seek(at + 8)
            file.write(b"\x40\x00")


def empty_pages(member: Member) -> None:
    """Each page that held keys says that it branches, to nothing: bbolt looks for the first branch, and panics."""
    database = member.data / "member" / "snap" / "db"
    with database.open("r+b") as file:
        for at in range(8192, database.stat().st_size, 4096):
            file.seek(at + 8)
            if file.read(2) in (b"\x01\x00", b"\x02\x00"):
                file.seek(at + 8)
                file.write(b"\x01\x00\x00\x00")


DAMAGES = [flip_in_log, garble_lengths, garble_head_of_database, garble_pages, garble_kinds_of_pages, empty_pages]


@pytest.mark.parametrize("damage", DAMAGES)
def test_corrupt_data(shared: EtcdCluster, damage: Callable[[Member], None]) -> None:
    write(shared, 100)
    member = shared.members["a"]
    member.stop()
    (member.directory / "log").unlink()  # of the damage before this one
    checked = time.time()
    whole = shutil.copytree(member.data, member.directory / "whole")
    try:
        damage(member)

        words = ended(member)

        last = corrupt_message(words, checked - 1)
        assert last is not None, member.log[-2000:]
        assert last.sentence
        assert proof_of_a_copy(words, read_position(whole / "member" / "wal"), checked) is None
    finally:  # the next damage is done to the same member
        member.stop()
        shutil.rmtree(member.data)
        whole.rename(member.data)
        member.start()
        shared.wait("a")
    assert corrupt_message(found(member), checked - 1) is None, "it runs again, and its former words are over"


def test_a_removed_member(cluster: EtcdCluster) -> None:
    member, etcd = cluster.members["a"], cluster.client("b", "c")
    own = cluster.client("a").status("a").member_id

    def remove() -> str:
        try:
            etcd.remove(own)
        except TryLater as why:
            return why.message
        return ""

    assert eventually(remove, seconds=60) == ""
    assert member.process is not None
    member.process.wait(20)
    member.process = None
    assert [each.ending for each in found(member)] == [Ending.REMOVED], member.log[-3000:]
    assert [each.ending for each in ended(member)] == [Ending.REMOVED]
    assert found(member)[-1].member_id == own


def refuse_newer_data(cluster: EtcdCluster, older: str, logger: str) -> None:
    """Start one member with an older program, and again with its own: to have tried did no harm."""
    member, agreed = follower(cluster), cluster.client().cluster_version
    assert eventually(lambda: "" if not agreed().startswith(older) else "not raised yet", seconds=60) == ""
    member.stop()
    checked, own = time.time(), list(member.command)
    member.command = [etcd_binary(older), *(word for word in own[1:] if not word.startswith("--logger"))]
    member.command.append(f"--logger={logger}")

    words = ended(member)

    assert [each.ending for each in words] == [Ending.TOO_NEW], member.log[-3000:]
    assert too_new_message(words, checked - 1) == words[-1]
    assert too_new_message(words, time.time() + 1) is None
    member.command = own
    member.start()
    cluster.wait(member.name)
    assert too_new_message(found(member), checked - 1) is None


@pytest.mark.parametrize(("older", "logger", "newer"), DOWNGRADES)
def test_data_of_a_newer_version_is_refused_unchanged(tmp_path: Path, older: str, logger: str, newer: str) -> None:
    with running(tmp_path, newer, "zap") as cluster:
        write(cluster, 5)
        refuse_newer_data(cluster, older, logger)


def test_every_row_of_the_table_was_brought_about(tmp_path: Path) -> None:
    """By the tests above; if not all of them ran before, here."""
    if missing():
        cases: list[Callable[[EtcdCluster], None]] = [partial(test_corrupt_data, damage=damage) for damage in DAMAGES]
        for kind in KINDS:
            for each in (cases, [test_a_copy_that_lacks_what_it_acknowledged], [test_a_removed_member]):
                folder = tmp_path / "cluster"
                folder.mkdir()
                with running(folder, *kind) as cluster:
                    for case in each:
                        case(cluster)
                shutil.rmtree(folder)
        for older, logger, newer in DOWNGRADES:
            (folder := tmp_path / f"{older}-{logger}").mkdir()
            test_data_of_a_newer_version_is_refused_unchanged(folder, older, logger, newer)
    assert missing() == []


def missing() -> list[str]:
    """Rows that nothing brought about yet."""
    rows = [row.text.pattern for row in FATAL_MESSAGES]
    possible = [each for each in rows if "3.6" in SERIES or not each.startswith(ONLY_IN_3_6)]
    return [each for each in possible if each not in SEEN]
