"""Our client against real etcd, 3.4 and 3.5, three members with TLS: every call, and what happens as members fail."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from builders.certificates import write_certificates
from clusters.etcd import SERIES, EtcdCluster, answers, eventually, make_cluster
from protokube.errors import ProtokubeError, Refused, TryLater
from protokube.etcd.client import GatewayEtcd
from protokube.etcd.tls import TlsFiles


@pytest.fixture(scope="module", params=SERIES)
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdCluster]:
    """Three members; a test that stops or freezes one brings it back."""
    made = make_cluster(tmp_path_factory.mktemp("etcd"), request.param, election=3000)
    try:
        made.start()
        made.wait()
        yield made
    finally:
        made.close()


@pytest.fixture
def etcd(cluster: EtcdCluster) -> GatewayEtcd:
    return cluster.client()


def tried(call: object) -> str:
    """Why a call does not succeed; empty when it does."""
    assert callable(call)
    try:
        call()
    except ProtokubeError as why:
        return str(why)
    return ""


def a_follower(cluster: EtcdCluster) -> str:
    told = {name: cluster.client(name).status(name) for name in "abc"}
    return next(name for name, status in told.items() if status.leader != status.member_id)


def test_the_members_are_listed_with_their_urls_sorted_by_id(cluster: EtcdCluster, etcd: GatewayEtcd) -> None:
    listed = etcd.members()

    assert sorted(each.name for each in listed) == ["a", "b", "c"]
    assert list(listed) == sorted(listed, key=lambda each: each.id)
    for each in listed:
        assert each.peer_urls == (cluster.members[each.name].peer_url,)
        assert each.client_urls == (cluster.members[each.name].client_url,)
        assert not each.learner


def test_each_member_tells_its_own_status_and_list(cluster: EtcdCluster, etcd: GatewayEtcd) -> None:
    ids = {each.name: each.id for each in etcd.members()}
    told = {name: etcd.status(name) for name in "abc"}

    assert {name: status.member_id for name, status in told.items()} == ids
    assert len({status.cluster_id for status in told.values()}) == 1
    assert {status.leader for status in told.values()} <= set(ids.values())
    assert all(status.version.startswith("3.") and status.db_size > 0 and not status.errors for status in told.values())
    assert all(etcd.listed_by(name) == etcd.members() for name in "abc")


def test_the_members_agree_on_the_version_of_their_programs(cluster: EtcdCluster, etcd: GatewayEtcd) -> None:
    series = etcd.status("a").version.rpartition(".")[0]

    def unlike() -> str:
        found = etcd.cluster_version()
        return "" if found == f"{series}.0" else f"{found!r} is agreed on"

    assert eventually(unlike) == ""


def test_what_is_written_is_read_by_prefix_sorted_and_from_every_member(
    cluster: EtcdCluster, etcd: GatewayEtcd
) -> None:
    revisions = [etcd.put(f"sorted/{name}", value) for name, value in (("b", "2"), ("a", "1ä"), ("c", ""))]
    etcd.put("sorted0", "a neighbour that does not begin so")

    for name in "abc":
        found = cluster.client(name).read("sorted/")
        assert [(each.key, each.value) for each in found] == [("sorted/a", "1ä"), ("sorted/b", "2"), ("sorted/c", "")]
        assert [each.mod_revision for each in found] == [revisions[1], revisions[0], revisions[2]]
    assert revisions == sorted(set(revisions))
    assert len(etcd.read("")) >= 4


def test_a_key_is_created_once(etcd: GatewayEtcd) -> None:
    assert [etcd.create("created", value) for value in "12"] == [True, False]
    assert [each.value for each in etcd.read("created")] == ["1"]


def test_of_eight_threads_racing_for_one_key_exactly_one_wins(cluster: EtcdCluster) -> None:
    shared, barrier = cluster.client(), threading.Barrier(8)
    for race in range(5):
        winners: list[int] = []

        def run(number: int, key: str = f"race/{race}", won: list[int] = winners) -> None:
            client = shared if number % 2 else cluster.client("abc"[number % 3])
            barrier.wait()
            if client.create(key, str(number)):
                won.append(number)

        threads = [threading.Thread(target=run, args=(number,)) for number in range(8)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        (winner,) = winners
        assert [each.value for each in shared.read(f"race/{race}")] == [str(winner)]


def test_leases_are_kept_given_back_and_expire_with_their_keys(etcd: GatewayEtcd) -> None:
    kept, given, left = etcd.grant(60), etcd.grant(60), etcd.grant(5)
    etcd.put("lease/kept", "x", kept)
    assert etcd.create("lease/given", "x", given)
    etcd.put("lease/left", "x", left)
    assert {each.key: each.lease for each in etcd.read("lease/")} == {
        "lease/given": given,
        "lease/kept": kept,
        "lease/left": left,
    }

    etcd.revoke(given)
    etcd.revoke(given)

    assert etcd.keep(kept)
    assert not etcd.keep(given)
    assert eventually(lambda: "still there" if etcd.read("lease/left") else "") == ""
    assert not etcd.keep(left)
    assert [each.key for each in etcd.read("lease/")] == ["lease/kept"]


def test_writing_under_a_lease_that_is_gone_is_for_later(etcd: GatewayEtcd) -> None:
    with pytest.raises(TryLater, match="lease not found"):
        etcd.put("orphan", "x", 12345)
    with pytest.raises(TryLater, match="lease not found"):
        etcd.create("orphan", "x", 12345)

    assert not etcd.read("orphan")


def test_hashes_at_one_revision_are_equal_and_those_of_two_revisions_are_not(etcd: GatewayEtcd) -> None:
    before, after = (etcd.put("hashed", value) for value in "12")
    for name in "abc":  # who did not take the write itself may be behind
        assert eventually(lambda: tried(lambda: etcd.hash(name, after))) == ""  # noqa: B023

    hashes = {name: (etcd.hash(name, before), etcd.hash(name, after)) for name in "abc"}

    assert len({(first.hash, first.compacted) for first, _ in hashes.values()}) == 1
    assert all(first.hash != second.hash for first, second in hashes.values())
    assert {each.member_id for each, _ in hashes.values()} == {each.id for each in etcd.members()}
    with pytest.raises(TryLater, match="has no hash at revision"):
        etcd.hash("a", after + 1000)


def test_the_hash_says_up_to_where_it_was_compacted_and_there_is_none_before(etcd: GatewayEtcd) -> None:
    revision = [etcd.put("compacted", str(number)) for number in range(3)][-1]
    etcd._anywhere("cannot compact", lambda ask: ask("/v3/kv/compaction", {"revision": str(revision - 1)}))

    def compacted() -> int:
        return etcd.hash("a", revision).compacted

    assert eventually(lambda: tried(compacted) or ("" if compacted() == revision - 1 else "not yet")) == ""
    with pytest.raises(TryLater, match="has no hash"):
        etcd.hash("a", revision - 2)


def test_nobody_gets_in_without_a_certificate_or_with_one_of_another_authority(
    cluster: EtcdCluster, tmp_path: Path
) -> None:
    told = {"authority": "ca", "commonName": "client", "organizations": [], "names": [], "usages": ["client auth"]}
    write_certificates(tmp_path / "others", {"client": told})
    others = TlsFiles(ca=cluster.tls.ca, cert=tmp_path / "others/client.crt", key=tmp_path / "others/client.key")

    for tls in (None, others):
        stranger = GatewayEtcd(cluster.endpoints, tls, timeout=20)
        with pytest.raises(TryLater, match="no member of etcd answered"):
            stranger.members()
        stranger.close()


def test_a_certificate_that_is_replaced_on_disk_is_used_for_the_next_call(cluster: EtcdCluster, tmp_path: Path) -> None:
    """An expired or wrong certificate heals without a restart, and a good one that goes bad is noticed."""
    told = {"authority": "ca", "commonName": "client", "organizations": [], "names": [], "usages": ["client auth"]}
    write_certificates(tmp_path / "wrong", {"client": told})
    files = TlsFiles(ca=tmp_path / "ca.crt", cert=tmp_path / "client.crt", key=tmp_path / "client.key")
    shutil.copy(cluster.tls.ca, files.ca)

    def use(folder: Path) -> None:
        for name in ("client.crt", "client.key"):
            shutil.copy(folder / name, tmp_path / f"{name}.new")
            (tmp_path / f"{name}.new").replace(tmp_path / name)

    use(tmp_path / "wrong")
    client = GatewayEtcd(cluster.endpoints, files, timeout=20)
    assert "no member" in tried(client.members)
    use(cluster.tls.cert.parent)
    assert tried(client.members) == ""
    use(tmp_path / "wrong")
    assert "no member" in tried(client.members)
    client.close()


def test_a_learner_is_added_started_promoted_and_removed(cluster: EtcdCluster) -> None:
    """The way of a replaced disk: it is removed, its disk is blank, and it comes back under the same name and URL."""
    new = a_follower(cluster)  # without its leader, a cluster would lose what is proposed next
    voters = [name for name in "abc" if name != new]
    etcd, member = cluster.client(*voters), cluster.members[new]
    old = next(each.id for each in etcd.members() if each.name == new)
    assert eventually(lambda: tried(lambda: etcd.remove(old)), seconds=60) == ""  # etcd wants 5 s of peace before
    etcd.remove(old)
    member.stop()
    member.wipe()

    added = etcd.add_learner(member.peer_url)

    assert added.learner
    assert not added.started
    with pytest.raises(TryLater, match="too many learner"):
        etcd.add_learner("https://127.9.9.9:2380")
    with pytest.raises(Refused, match="exist"):
        etcd.add_learner(member.peer_url)
    with pytest.raises(TryLater, match="in sync"):
        etcd.promote(added.id)

    member.start(initial_cluster_state="existing")
    a_learner_alone_answers_nothing_that_needs_a_quorum(cluster, new, voters[0])
    assert eventually(lambda: tried(lambda: etcd.promote(added.id))) == ""
    etcd.promote(added.id)
    cluster.wait(new)
    back = next(each for each in etcd.members() if each.id == added.id)
    assert (back.name, back.learner, back.started) == (new, False, True)


def a_learner_alone_answers_nothing_that_needs_a_quorum(cluster: EtcdCluster, new: str, voter: str) -> None:
    """It says so, and whoever asked it first goes on to a voter, even with a write."""
    alone = cluster.client(new, timeout=2.0)
    assert eventually(lambda: "" if "learner" in tried(alone.members) else "it does not answer yet") == ""

    assert cluster.client(new).status(new).learner
    assert len(cluster.client(new, voter).members()) == 3
    assert cluster.client(new, voter).put("through", "a voter") > 0


def test_one_member_stopped_is_not_noticed_and_it_is_used_again_when_it_is_back(cluster: EtcdCluster) -> None:
    etcd = cluster.client()
    etcd.put("stopped", "before")
    hasty = cluster.client(timeout=2.0)
    cluster.members["a"].stop()

    assert eventually(lambda: tried(lambda: hasty.put("stopped", "while"))) == ""
    assert len(etcd.members()) == 3
    assert [each.value for each in etcd.read("stopped")] == ["while"]
    with pytest.raises(TryLater, match="a did not answer"):
        etcd.status("a")

    cluster.members["a"].start()
    cluster.wait("a")
    assert [each.value for each in cluster.client("a").read("stopped")] == ["while"]


def test_a_frozen_member_costs_a_part_of_the_time_and_the_next_one_answers(cluster: EtcdCluster) -> None:
    """Its kernel still takes connections and data; only nobody ever answers."""
    follower = a_follower(cluster)
    others = [name for name in "abc" if name != follower]
    connected, fresh = (cluster.client(follower, *others, timeout=9) for _ in range(2))
    connected.members()
    cluster.members[follower].freeze()
    try:
        for client, call in ((connected, connected.members), (fresh, lambda: fresh.grant(10))):
            took = []
            for _ in range(4):
                started = time.monotonic()
                assert call()
                took.append(time.monotonic() - started)
            assert took[0] < 12
            assert min(took[1:]) < 2.5, "the other calls begin with the member that answered the first"
            assert client.put("frozen", "a write") > 0
    finally:
        cluster.members[follower].thaw()


def test_a_frozen_member_alone_is_given_up_in_time(cluster: EtcdCluster) -> None:
    client = cluster.client("b", timeout=0.5)
    assert eventually(lambda: answers(client)) == ""
    cluster.members["b"].freeze()
    try:
        calls = (client.members, lambda: client.put("k", "v"), lambda: client.hash("b", 2), lambda: client.status("b"))
        for call in calls:
            started = time.monotonic()
            assert tried(call)
            assert time.monotonic() - started < 10
    finally:
        cluster.members["b"].thaw()


def test_without_a_quorum_nothing_is_listed_within_the_time_though_a_member_answers(cluster: EtcdCluster) -> None:
    etcd, hasty = cluster.client(timeout=2.0), cluster.client(timeout=0.5)
    assert eventually(lambda: answers(etcd)) == ""
    cluster.members["b"].stop()
    cluster.members["c"].stop()
    try:
        for call in (etcd.members, lambda: hasty.read("k"), lambda: hasty.put("k", "v")):
            started = time.monotonic()
            with pytest.raises(TryLater):
                call()
            assert time.monotonic() - started < 15
        assert cluster.client("a").status("a").version
        assert len(cluster.client("a").listed_by("a")) == 3
    finally:
        cluster.start("b", "c")
        cluster.wait()


FROZEN_RESOLVER = """
import fcntl, socket, struct, subprocess, sys, time
from protokube.errors import TryLater
from protokube.etcd.client import GatewayEtcd
with socket.socket() as any_socket:
    fcntl.ioctl(any_socket, 0x8914, struct.pack("16sH14x", b"lo", 0x41))
subprocess.run(["mount", "--make-rprivate", "/"], check=True)
subprocess.run(["mount", "--bind", sys.argv[1], "/etc/resolv.conf"], check=True)
silent = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
silent.bind(("127.0.0.1", 53))
client = GatewayEtcd({name: f"http://etcd-{name}.internal.test:4001" for name in "abc"}, timeout=0.9)
for _ in range(2):
    started = time.monotonic()
    try:
        client.members()
    except TryLater as why:
        print(f"{time.monotonic() - started:.1f}", "resolver" in why.saw)
"""


def test_a_resolver_that_does_not_answer_cannot_stretch_a_call(tmp_path: Path) -> None:
    assert os.geteuid() == 0, "this test makes namespaces: run it as root"
    (tmp_path / "resolv.conf").write_text("nameserver 127.0.0.1\noptions timeout:30\n")
    command = ["unshare", "--mount", "--net", sys.executable, "-c", FROZEN_RESOLVER, str(tmp_path / "resolv.conf")]

    ran = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)

    assert ran.returncode == 0, ran.stderr
    took, told = ran.stdout.split()[::2], ran.stdout.split()[1::2]
    assert told == ["True", "True"]
    assert all(0.8 < float(each) < 15 for each in took), "the resolver itself would try for half a minute"
