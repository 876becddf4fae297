"""What a cluster costs when nothing happens: an hour of rounds, counted."""

from __future__ import annotations

from clusters.scenario.cluster import Stage

HOUR = 3600.0


def test_an_idle_hour_costs_one_list_call_a_round_and_no_write_but_marks_and_a_status(formed: Stage) -> None:
    formed.run(60)
    before = dict(formed.cloud.calls)
    rounds = {each.id: each.loop.rounds for each in formed.hosts.values()}
    reads, lists, writes = formed.dns.reads, formed.dns.lists, formed.dns.writes
    store_reads, store_writes = formed.store.reads, formed.store.writes
    changes, starts = formed.cloud.changes, formed.etcd["main"].starts

    formed.run(HOUR)

    calls = {name: number - before.get(name, 0) for name, number in formed.cloud.calls.items()}
    had = sum(each.loop.rounds - rounds[each.id] for each in formed.hosts.values())
    assert had <= 3 * HOUR / 9
    assert calls["list_volumes"] == had
    assert {name for name, number in calls.items() if number} <= {"list_volumes", "device", "list_machines"}
    assert calls.get("list_machines", 0) <= 12 + 1
    assert (formed.cloud.changes, formed.dns.writes) == (changes, writes)
    assert formed.store.writes - store_writes <= 3 * (60 + 12) + 3  # a raft mark a minute, a status in five
    assert formed.dns.lists == lists
    # each of three member names, and the names of the API by the one elected, every five minutes
    assert formed.dns.reads - reads <= 12 * (3 + 1) + 4
    assert formed.store.reads - store_reads <= 3 * (3 * 60 + 3)  # raft mark, generation, rollout
    assert formed.etcd["main"].starts == starts
    assert formed.healthy()
    assert all(each.sentence == "" for each in formed.hosts.values())


def test_rounds_come_every_ten_seconds_when_all_is_well_and_faster_when_something_is_waited_for(formed: Stage) -> None:
    formed.run(60)
    host = formed.holder_of("a")
    before = host.loop.rounds
    formed.run(100)
    assert 9 <= host.loop.rounds - before <= 12
    formed.dns.unreachable = True
    other = formed.holder_of("b")
    formed.kill(other)
    new = formed.replace_machine(other)
    before = new.loop.rounds
    formed.run(10)
    assert new.loop.rounds - before > 5


def test_etcd_is_asked_for_nothing_but_leases_by_an_idle_cluster(formed: Stage) -> None:
    formed.run(60)
    client = formed.holder_of("a").edges.etcd["main"]
    before = client.calls  # type: ignore[attr-defined]
    formed.run(60)
    beats = 60 / 1.25
    assert client.calls - before <= 2 * beats + 4  # type: ignore[attr-defined]


def test_the_status_file_of_each_master_tells_what_it_holds(formed: Stage) -> None:
    host = formed.holder_of("a")
    status = host.status
    assert status["machine"]["id"] == host.id
    assert status["report"] == {"broken": [], "did": [], "needsAPerson": [], "waiting": []} or status["round"] > 0
    assert {each["phase"] for each in status["volumes"]} == {"serving", "taken"}
    (member,) = status["members"]
    assert (member["member"], member["doing"], member["linked"], member["epoch"]) == ("main/a", "going on", True, 1)
    assert sorted(status["live"]) == sorted(formed.hosts)
