"""Every row of the table of etcd's errors, brought about at a real etcd, 3.4 and 3.5: code and text are etcd's own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from clusters.etcd import SERIES, EtcdCluster, eventually, make_cluster
from protokube.errors import Refused, TryLater
from protokube.etcd import Alarm, NoSpace
from protokube.etcd.client import GatewayEtcd
from protokube.etcd.deadline import Deadline
from protokube.etcd.faults import KNOWN, Cause, Fault
from protokube.etcd.messages import to_wire
from protokube.etcd.wire import NoAnswer

QUOTA = 16 * 2**20


@pytest.fixture(scope="module", params=SERIES)
def series(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def cluster(series: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdCluster]:
    """Three members with a small quota."""
    made = make_cluster(tmp_path_factory.mktemp("etcd"), series, election=3000)
    try:
        for member in made.members.values():
            member.start(quota_backend_bytes=str(QUOTA))
        made.wait()
        yield made
    finally:
        made.close()


def fault(cluster: EtcdCluster, member: str, path: str, body: Mapping[str, Any]) -> Fault:
    """The error that one member answers."""
    with pytest.raises(Fault) as caught:
        cluster.client(member)._ask(member, path, body, by=Deadline.after(20))
    return caught.value


def seen(found: Fault, cause: Cause) -> Fault:
    assert found.cause is cause, f"{found.code}: {found.message}"
    return found


def leader(cluster: EtcdCluster) -> str:
    told = {name: cluster.client(name).status(name) for name in cluster.members}
    return next(name for name, status in told.items() if status.leader == status.member_id)


def test_a_lease_that_is_gone(cluster: EtcdCluster) -> None:
    body = {"key": to_wire("k"), "value": to_wire("v"), "lease": "12345"}
    found = seen(fault(cluster, "a", "/v3/kv/put", body), Cause.LEASE_GONE)
    assert "take a new one" in found.explained("x").hint


def test_a_revision_that_was_compacted_before(cluster: EtcdCluster) -> None:
    etcd = cluster.client()
    revision = [etcd.put("compacted", value) for value in "123"][-1]
    etcd.compact(revision - 1)
    etcd.compact(revision - 1)  # nothing
    seen(fault(cluster, "a", "/v3/kv/compaction", {"revision": str(revision - 1)}), Cause.COMPACTED)
    with pytest.raises(TryLater, match="future revision"):
        etcd.compact(revision + 1000)


def test_leadership_moved_from_one_that_does_not_lead_or_to_nobody(cluster: EtcdCluster) -> None:
    etcd, first = cluster.client(), leader(cluster)
    follower = next(name for name in "abc" if name != first)
    path, target = "/v3/maintenance/transfer-leadership", etcd.status(follower).member_id
    seen(fault(cluster, follower, path, {"targetID": str(target)}), Cause.NOT_LEADER)
    seen(fault(cluster, first, path, {"targetID": "7"}), Cause.BAD_TRANSFEREE)

    etcd.move_leader(first, target)

    assert leader(cluster) == follower


def test_a_member_is_added_only_while_all_are_connected_and_one_learner_at_a_time(cluster: EtcdCluster) -> None:
    etcd, other = cluster.client(), next(name for name in "abc" if name != leader(cluster))
    body = {"peerURLs": ["https://127.9.9.9:2380"], "isLearner": True}
    asked = leader(cluster)
    cluster.members[other].stop()
    seen(fault(cluster, asked, "/v3/cluster/member/add", body), Cause.NOT_CONNECTED)
    cluster.members[other].start(quota_backend_bytes=str(QUOTA))
    cluster.wait(other)

    def add() -> str:
        try:
            etcd.add_learner("https://127.9.9.9:2380")
        except TryLater as why:
            return why.message
        return ""

    assert eventually(add, seconds=60) == ""
    again = body | {"peerURLs": ["https://127.9.9.8:2380"]}
    seen(fault(cluster, leader(cluster), "/v3/cluster/member/add", again), Cause.TOO_MANY_LEARNERS)
    learner = next(each for each in etcd.members() if each.learner)
    promote = "/v3/cluster/member/promote"
    seen(fault(cluster, leader(cluster), promote, {"ID": str(learner.id)}), Cause.NOT_IN_SYNC)
    voter = next(each for each in etcd.members() if not each.learner)
    seen(fault(cluster, leader(cluster), promote, {"ID": str(voter.id)}), Cause.NOT_A_LEARNER)
    etcd.remove(learner.id)
    etcd.remove(learner.id)


def test_a_member_that_never_started_keeps_the_next_one_out(tmp_path: Path, series: str) -> None:
    alone = make_cluster(tmp_path, series, "a")
    try:
        alone.start()
        alone.wait()
        body = {"peerURLs": ["https://127.9.9.9:2380"]}
        alone.client("a")._ask("a", "/v3/cluster/member/add", body, by=Deadline.after(20))
        again = {"peerURLs": ["https://127.9.9.8:2380"]}
        seen(fault(alone, "a", "/v3/cluster/member/add", again), Cause.NOT_ENOUGH_STARTED)
    finally:
        alone.close()


def test_a_learner_answers_no_request_that_needs_a_quorum(tmp_path: Path, series: str) -> None:
    cluster = make_cluster(tmp_path, series, "ab")
    try:
        first, second = cluster.members["a"], cluster.members["b"]
        first.start(initial_cluster=f"a={first.peer_url}")
        cluster.wait("a")
        assert eventually(lambda: _added(cluster, second.peer_url), seconds=60) == ""
        second.start(initial_cluster_state="existing")
        body = {"key": to_wire("k")}

        def asked() -> str:
            try:
                cluster.client("b", timeout=2.0)._ask("b", "/v3/kv/range", body, by=Deadline.after(2))
            except Fault as found:
                return "" if found.cause is Cause.IS_A_LEARNER else found.message
            except (NoAnswer, TimeoutError) as why:  # it is still starting
                return str(why)
            return "it answered"

        assert eventually(asked, seconds=60) == ""
        seen(fault(cluster, "b", "/v3/kv/range", body), Cause.IS_A_LEARNER)
    finally:
        cluster.close()


def _added(cluster: EtcdCluster, peer_url: str) -> str:
    try:
        cluster.client("a").add_learner(peer_url)
    except TryLater as why:
        return why.message
    return ""


def fill(etcd: GatewayEtcd) -> None:
    for number in range(200):
        etcd.put(f"full/{number % 4}", "x" * 300_000)


def test_a_full_etcd_refuses_puts_and_new_leases_and_does_the_rest(cluster: EtcdCluster) -> None:
    etcd = cluster.client()
    lease = etcd.grant(3600)
    etcd.put("leased", "x", lease)
    with pytest.raises(NoSpace, match="space exceeded"):
        fill(etcd)
    found = fault(cluster, "a", "/v3/kv/put", {"key": to_wire("k"), "value": to_wire("v")})
    seen(found, Cause.NO_SPACE)
    with pytest.raises(NoSpace):
        etcd.grant(10)

    assert etcd.keep(lease)
    assert [each.key for each in etcd.read("leased")] == ["leased"]
    assert {each.name for each in etcd.alarms()} == {"NOSPACE"}
    assert etcd.status("a").errors
    assert etcd.status("a").db_size_in_use > QUOTA // 2
    etcd.revoke(lease)
    assert not etcd.read("leased")

    etcd.compact(etcd.status("a").revision)
    for name in "abc":
        etcd.defragment(name)
    for alarm in etcd.alarms():
        etcd.disarm(alarm)
        etcd.disarm(alarm)
    assert etcd.alarms() == ()
    assert etcd.put("again", "x")
    assert max(etcd.status(name).db_size for name in "abc") < QUOTA // 2


def test_a_corrupt_cluster_refuses_every_write(cluster: EtcdCluster) -> None:
    etcd = cluster.client()
    member = etcd.status("a").member_id
    raised = {"action": "ACTIVATE", "memberID": str(member), "alarm": "CORRUPT"}
    etcd._anywhere("cannot raise", lambda ask: ask("/v3/maintenance/alarm", raised))
    found = fault(cluster, "a", "/v3/kv/put", {"key": to_wire("k"), "value": to_wire("v")})

    assert isinstance(seen(found, Cause.CORRUPT).explained("x"), Refused)
    assert etcd.alarms() == (Alarm(member, "CORRUPT"),)


def test_every_row_of_the_table_has_a_test_here() -> None:
    here = Path(__file__).read_text()
    assert [each.cause for each in KNOWN if f"Cause.{each.cause.name})" not in here] == []
