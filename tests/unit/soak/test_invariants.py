"""What a watcher takes for broken, and what it does not."""

from __future__ import annotations

from dataclasses import replace

from soak.chaos.invariants import (
    LONGEST_LIE,
    LONGEST_SILENCE,
    MOST_ROUNDS,
    MOST_STARTS,
    Etcd,
    Judge,
    Look,
    Process,
)


def judged(*looks: Look) -> list[str]:
    judge = Judge()
    return [each for look in looks for each in judge.feed(look)]


def an_etcd(host: str, volume: str, member: str, pid: int) -> Etcd:
    return Etcd(host, volume, member, Process(pid, 1))


def test_a_volume_that_moves_from_host_to_host_is_fine() -> None:
    old, new = frozenset({("vol-1", "a")}), frozenset({("vol-1", "b")})

    assert judged(Look(at=0, mounts=old), Look(at=1, mounts=old | new), Look(at=2, mounts=new)) == []


def test_a_volume_mounted_by_two_hosts_in_two_looks_is_broken() -> None:
    both = Look(at=0, mounts=frozenset({("vol-1", "a"), ("vol-1", "b")}))

    assert judged(both, replace(both, at=1), replace(both, at=2)) == ["vol-1 is mounted by a and b"]


def test_two_devices_for_one_disk_are_broken() -> None:
    both = Look(at=0, devices={"vol-1": 2, "vol-2": 1})

    assert judged(both, replace(both, at=1)) == ["2 devices show the disk of vol-1"]


class TestEtcd:
    def test_a_restart_is_fine(self) -> None:
        old, new = an_etcd("a", "vol-1", "main/a", 10), an_etcd("a", "vol-1", "main/a", 11)

        assert judged(Look(at=0, etcds=frozenset({old, new})), Look(at=1, etcds=frozenset({new}))) == []

    def test_members_of_two_clusters_on_one_host_are_fine(self) -> None:
        both = frozenset({an_etcd("a", "vol-1", "main/a", 10), an_etcd("a", "vol-2", "events/a", 11)})

        assert judged(Look(at=0, etcds=both), Look(at=1, etcds=both)) == []

    def test_two_processes_on_one_volume_are_broken(self) -> None:
        both = frozenset({an_etcd("a", "vol-1", "main/a", 10), an_etcd("b", "vol-1", "main/a", 11)})

        found = judged(Look(at=0, etcds=both), Look(at=1, etcds=both))

        assert found == ["two etcd run on vol-1 (a, b): processes 10 and 11"]

    def test_two_processes_for_one_member_on_two_volumes_are_broken(self) -> None:
        both = frozenset({an_etcd("a", "vol-1", "main/a", 10), an_etcd("b", "vol-2", "main/a", 11)})

        found = judged(Look(at=0, etcds=both), Look(at=1, etcds=both))

        assert found == ["two etcd run for main/a (a, b): processes 10 and 11"]

    def test_two_members_of_one_cluster_on_one_host_are_broken(self) -> None:
        both = frozenset({an_etcd("a", "vol-1", "main/a", 10), an_etcd("a", "vol-2", "main/b", 11)})

        found = judged(Look(at=0, etcds=both), Look(at=1, etcds=both))

        assert found == ["a runs two members of one etcd cluster, main/a and main/b: processes 10 and 11"]

    def test_one_that_starts_again_and_again_is_broken_and_named_once(self) -> None:
        looks = [Look(at=at, etcds=frozenset({an_etcd("a", "vol-1", "main/a", at)})) for at in range(20)]

        found = judged(*looks)

        assert found == [f"etcd on vol-1 of a starts more than {MOST_STARTS} times in a minute"]

    def test_one_that_starts_now_and_then_is_fine(self) -> None:
        looks = [Look(at=10 * at, etcds=frozenset({an_etcd("a", "vol-1", "main/a", at)})) for at in range(40)]

        assert judged(*looks) == []


class TestRounds:
    def test_many_in_a_minute_are_broken(self) -> None:
        looks = [Look(at=at, rounds={"a": at * 10}) for at in range(60)]

        assert judged(*looks) == [f"the agent of a runs more than {MOST_ROUNDS} rounds in a minute"]

    def test_many_in_an_hour_are_fine(self) -> None:
        looks = [Look(at=at, rounds={"a": at * 2}) for at in range(3600)]

        assert judged(*looks) == []

    def test_a_new_agent_counts_from_the_start(self) -> None:
        looks = [Look(at=0, rounds={"a": 5000}), Look(at=1, rounds={"a": 1}), Look(at=2, rounds={"a": 2})]

        assert judged(*looks) == []


class TestReady:
    def test_while_nobody_has_a_reply_is_broken_after_a_while(self) -> None:
        looks = [Look(at=at, ready=True, answered=5.0) for at in range(60)]

        assert judged(*looks) == [f"`status` says ready for {LONGEST_LIE:g} s while no member answers any client"]

    def test_just_after_a_time_without_replies_is_fine(self) -> None:
        looks = [Look(at=at, ready=at > 50, answered=5.0) for at in range(60)]

        assert judged(*looks) == []

    def test_while_nobody_calls_is_fine(self) -> None:
        looks = [Look(at=at, ready=True, answered=5.0, calling=False) for at in range(60)]

        assert judged(*looks) == []


class TestAMemberThatIsNotServed:
    def test_is_broken_if_no_reason_is_given_for_long(self) -> None:
        looks = [Look(at=at, unexplained=frozenset({"main/a on a"})) for at in range(60)]

        assert judged(*looks) == [f"main/a on a is not served for {LONGEST_SILENCE:g} s, and no reason is given"]

    def test_is_fine_if_a_reason_comes_now_and_then(self) -> None:
        looks = [Look(at=at, unexplained=frozenset({"main/a on a"} if at % 30 else ())) for at in range(90)]

        assert judged(*looks) == []


def test_an_error_in_an_agent_is_broken_at_once() -> None:
    found = judged(Look(at=0, bugs=frozenset({"a: volumes KeyError"})))

    assert found == ["unexpected error in an agent: a: volumes KeyError"]
