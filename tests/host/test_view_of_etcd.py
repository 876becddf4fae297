"""What a look learns from real members of etcd, and from what stands in their place."""

from __future__ import annotations

import shutil
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from clusters.etcd import EtcdCluster, make_cluster
from clusters.real import until
from protokube.etcd import NoSpace
from protokube.etcd.client import GatewayEtcd
from protokube.local.base.paths import Paths
from protokube.local.drill.ground import PREFIX, LocalGround
from protokube.local.drill.writer import lost
from protokube.local.view.look import Looker
from protokube.view.cluster import ClusterView
from protokube.view.values import DaemonView, MemberView


@pytest.fixture(scope="module")
def etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdCluster]:
    cluster = make_cluster(tmp_path_factory.mktemp("etcd"), "3.5")
    try:
        cluster.start()
        cluster.wait()
        yield cluster
    finally:
        cluster.close()


@pytest.fixture
def paths(tmp_path: Path, etcd: EtcdCluster) -> Paths:
    made = Paths.at(tmp_path / "dev.local")
    made.create()
    folder = made.root / "client"
    folder.mkdir()
    for name, file in (("ca.crt", etcd.tls.ca), ("client.crt", etcd.tls.cert), ("client.key", etcd.tls.key)):
        shutil.copy(file, folder / name)
    return made


def member(etcd: EtcdCluster, name: str, *, url: str = "") -> MemberView:
    return MemberView(
        member=f"main/{name}", name=name, dns_name=f"etcd-{name}.internal.dev", volume="vol-1", host="master-0",
        url=url or etcd.endpoints[name],
    )  # fmt: skip


def test_members_say_who_leads_and_list_each_other_behind_a_quorum(paths: Paths, etcd: EtcdCluster) -> None:
    with Looker(paths) as looker:
        seen = until(lambda: in_one_term([looker.ask(member(etcd, name)) for name in "abc"]), "all answer in one term")

    assert [each.leader for each in seen].count(True) == 1
    assert len({each.cluster_id for each in seen}) == 1
    assert len({each.listed for each in seen}) == 1
    assert {each.name for each in seen[0].listed} == {"a", "b", "c"}
    assert all(each.version.startswith("3.5") and each.db_size > 0 and each.raft_term > 0 for each in seen)


def in_one_term(seen: list[MemberView]) -> list[MemberView] | None:
    """A member that stood still answers too late, or another one leads after that."""
    return seen if all(each.healthy for each in seen) and len({each.raft_term for each in seen}) == 1 else None


def test_another_member_in_the_place_of_the_one_that_was_asked_is_not_healthy(paths: Paths, etcd: EtcdCluster) -> None:
    with Looker(paths) as looker:
        asked = member(etcd, "a", url=etcd.endpoints["b"])
        seen = until(lambda: told if "in time" not in (told := looker.ask(asked)).why else None, "an answer in time")

    assert (seen.healthy, seen.why) == (False, "b answers in its place")


def test_a_port_with_nothing_behind_it_and_one_that_is_silent_are_said_in_words(
    paths: Paths, etcd: EtcdCluster
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent, Looker(paths) as looker:
        url = f"https://127.0.0.1:{silent.getsockname()[1]}"
        waiting = looker.ask(member(etcd, "a", url=url))
        silent.close()
        nobody = looker.ask(member(etcd, "a", url=url))

    assert waiting.why == "etcd-a.internal.dev does not answer in time"
    assert nobody.why == "nothing answers at etcd-a.internal.dev yet"


def test_a_frozen_member_holds_nobody_up_and_counts_again_when_it_goes_on(tmp_path: Path, paths: Paths) -> None:
    folder = tmp_path / "own"
    folder.mkdir()
    own = make_cluster(folder, "3.5")
    files = paths.root / "client"
    for name, file in (("ca.crt", own.tls.ca), ("client.crt", own.tls.cert), ("client.key", own.tls.key)):
        shutil.copy(file, files / name)
    try:
        own.start()
        own.wait()
        with Looker(paths) as looker:
            expected = [member(own, name) for name in "abc"]
            own.members["b"].freeze()
            # who had waited for it would have heard that it does not answer in time, as we do if we stood still
            late = until(
                lambda: told if "in time" not in (told := looker.answers(expected, 0.3)[1]).why else None, "no wait"
            )
            assert (late.healthy, late.why) == (False, "it has not answered yet")
            own.members["b"].thaw()
            until(lambda: all(each.healthy for each in looker.answers(expected, 2)), "all healthy again")
    finally:
        own.members["b"].thaw()
        own.close()


def test_a_drill_writes_to_real_etcd_reads_all_of_it_back_and_leaves_nothing(paths: Paths, etcd: EtcdCluster) -> None:
    view = ClusterView(
        cluster="dev.local", at=0.0, daemon=DaemonView(alive=True), members=tuple(member(etcd, name) for name in "abc")
    )
    ground = LocalGround(paths)
    try:
        with ground.writing(view, "main") as session:
            until(lambda: len(session.writer.log().acknowledged) >= 20, "twenty writes are acknowledged")
            log = session.writer.stop()
            found = session.read_back()
            there, absent = session.landed(next(iter(found))), session.landed("/nowhere")
    finally:
        ground.close()

    assert len(log.acknowledged) >= 20
    assert (lost(log, found), there, absent) == ((), True, False)
    assert etcd.client().read(PREFIX) == ()


def test_a_full_etcd_is_seen_as_out_of_space_and_its_members_are_still_listed(tmp_path: Path) -> None:
    (tmp_path / "etcd").mkdir()
    cluster = make_cluster(tmp_path / "etcd", "3.5")
    try:
        for each in cluster.members.values():
            each.start(quota_backend_bytes=str(16 * 2**20))
        cluster.wait()
        client = cluster.client()
        with pytest.raises(NoSpace):
            fill(client)
        seen = look_at(cluster, tmp_path)
    finally:
        cluster.close()

    assert [each.healthy for each in seen] == [False] * 3
    assert all("NOSPACE of " in each.why and "a database reached its quota" in each.why for each in seen)
    assert all({one.name for one in each.listed} == {"a", "b", "c"} for each in seen)
    assert all(each.db_in_use > 8 * 2**20 and each.alarms for each in seen)


def fill(client: GatewayEtcd) -> None:
    for number in range(200):
        client.put(f"full/{number}", "x" * 300_000)


def look_at(cluster: EtcdCluster, folder: Path) -> list[MemberView]:
    made = Paths.at(folder / "dev.local")
    made.create()
    (made.root / "client").mkdir()
    files = (("ca.crt", cluster.tls.ca), ("client.crt", cluster.tls.cert), ("client.key", cluster.tls.key))
    for name, file in files:
        shutil.copy(file, made.root / "client" / name)
    with Looker(made) as looker:
        return until(lambda: all_alarmed([looker.ask(member(cluster, name)) for name in "abc"]), "all report it")


def all_alarmed(seen: list[MemberView]) -> list[MemberView] | None:
    return seen if all(each.alarms for each in seen) else None
