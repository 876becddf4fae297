"""A full etcd under the fake clock: the agents heal it, or say why a person has to."""

from __future__ import annotations

from dataclasses import replace

import pytest

from clusters.scenario.cluster import Stage
from protokube.etcd import Alarm
from protokube.members.remedy import Remedy, decode
from protokube.store import layout
from protokube.store.memory import MemoryStore

MB = 2**20
QUOTA = 16 * MB
PATH = layout.etcd_maintenance("laptop", "main")


def record(stage: Stage) -> Remedy | None:
    inner = stage.store.inner
    assert isinstance(inner, MemoryStore)
    return decode(inner.read(PATH).data) if PATH in inner.list_paths() else None


@pytest.fixture
def small(stage: Stage) -> Stage:
    """Three masters for a quarter of an hour, with a quota of 16 MiB; the agents may compact."""
    etcd = stage.wanted.etcd[0]
    members = tuple(replace(each, settings=each.settings | {"quota-backend-bytes": QUOTA}) for each in etcd.members)
    stage.wanted = replace(stage.wanted, etcd=(replace(etcd, members=members, compact=True),))
    stage.etcd["main"].quota = QUOTA
    stage.boot_all()
    stage.until(stage.healthy)
    stage.run(900)
    return stage


def alarms(stage: Stage) -> frozenset[Alarm]:
    found = stage.etcd["main"].leader()
    assert found is not None
    return found[0].db.state.alarms


def sizes(stage: Stage) -> set[int]:
    return {each.db.size for each in stage.etcd["main"].processes.values()}


def sentence(stage: Stage) -> str:
    return "\n".join(host.sentence for host in stage.hosts.values())


def test_old_revisions_that_fill_it_are_compacted_and_it_takes_writes_again(small: Stage) -> None:
    small.etcd["main"].fill(live=2 * MB, old=20 * MB)
    assert alarms(small)

    took = small.until(lambda: not alarms(small), within=1200)

    assert took >= 600, "a revision is compacted only when it is 10 minutes old"
    assert sizes(small) == {2 * MB}
    assert small.write()
    done = record(small)
    assert done is not None
    assert len(done.done) == 3
    small.run(60)
    assert all(host.sentence == "" for host in small.hosts.values())


def test_the_masters_stay_elected_and_alive_while_it_is_full(small: Stage) -> None:
    elected = [host.id for host in small.hosts.values() if host.presence.elected()]
    small.etcd["main"].fill(old=20 * MB)
    small.run(300)
    assert [host.id for host in small.hosts.values() if host.presence.elected()] == elected
    assert all(len(host.presence.live() or ()) == 3 for host in small.hosts.values())


def test_an_agent_that_lost_its_lease_says_the_true_cause_and_the_remedy_goes_on(small: Stage) -> None:
    small.etcd["main"].fill(old=20 * MB)
    for host in small.hosts.values():
        small.agent_dies(host)
        host.presence._lease = None
    small.run(20)
    assert "etcd is out of space and grants no leases, so nobody writes the names of the API" in sentence(small)
    small.until(lambda: not alarms(small), within=1500)
    small.run(30)
    assert sum(host.presence.elected() for host in small.hosts.values()) == 1


def test_live_data_that_fills_it_is_reported_once_with_figures(small: Stage) -> None:
    small.etcd["main"].fill(live=18 * MB)
    small.run(1500)
    notes = [note for host in small.hosts.values() if host.round_ for note in host.round_.report.person]
    (note,) = notes
    assert (
        note.text == "NOSPACE of etcd-a, NOSPACE of etcd-b, NOSPACE of etcd-c: current data fills it, not old revisions"
    )
    assert "etcd-a 18.0 MiB of a quota of 16.0 MiB, 18.0 MiB of it in use" in note.saw
    assert "most of it: /protokube" in note.saw
    assert sizes(small) == {18 * MB}


def test_what_a_person_deletes_then_heals_it(small: Stage) -> None:
    small.etcd["main"].fill(live=18 * MB)
    small.run(1500)
    small.etcd["main"].fill(live=-17 * MB, old=17 * MB)
    small.until(lambda: not alarms(small), within=1500)
    assert sizes(small) == {1 * MB}


def test_a_second_time_within_a_day_is_for_a_person_and_the_next_day_it_heals_again(small: Stage) -> None:
    small.etcd["main"].fill(old=20 * MB)
    small.until(lambda: not alarms(small), within=1200)
    small.etcd["main"].fill(old=20 * MB)
    small.run(900)
    assert alarms(small)
    assert "full again less than a day" in sentence(small)
    small.clock.advance(86400)
    small.until(lambda: not alarms(small), within=900)


def test_a_member_that_is_down_stops_the_remedy_until_it_is_back(small: Stage) -> None:
    small.etcd["main"].fill(old=20 * MB)
    host = small.holder_of("c")
    small.freeze(host)
    small.run(1500)
    assert alarms(small)
    assert "etcd-c must answer before anything is done about it" in sentence(small)
    small.thaw(host)
    small.until(lambda: not alarms(small), within=1500)


def test_an_agent_that_dies_in_the_middle_of_it_is_followed_by_one_that_goes_on(small: Stage) -> None:
    small.etcd["main"].fill(old=20 * MB)

    def begun() -> bool:
        found = record(small)
        return found is not None and found.turn != 0

    small.until(begun, within=1200)
    for host in small.hosts.values():
        small.agent_dies(host)
    small.until(lambda: not alarms(small), within=1500)
    assert sizes(small) == {0}


def test_a_corrupt_alarm_is_for_a_person_and_nothing_is_touched(small: Stage) -> None:
    model = small.etcd["main"]
    found = model.led()
    corrupt = Alarm(found[1][1].db.member, "CORRUPT")
    model.carry_out(found, lambda state: replace(state, alarms=frozenset({corrupt})))
    small.run(1500)
    assert "differs from the others' and takes no writes" in sentence(small)
    assert alarms(small) == {corrupt}
    assert record(small) is None


def test_without_the_right_to_compact_only_free_pages_are_given_back(small: Stage) -> None:
    small.wanted = replace(small.wanted, etcd=tuple(replace(each, compact=False) for each in small.wanted.etcd))
    for host in small.hosts.values():
        small.agent_dies(host)
    small.etcd["main"].fill(old=20 * MB)
    small.run(300)
    assert "set maintenance.compact: true" in str([h.round_.report.person for h in small.hosts.values() if h.round_])
    its_user_compacts(small)
    small.until(lambda: not alarms(small), within=300)


def its_user_compacts(stage: Stage) -> None:
    """The user of etcd compacts it."""
    host = next(iter(stage.hosts.values()))
    assert host.edges.space is not None
    host.edges.space.etcd["main"].compact(10**9)


def test_a_database_that_is_nearly_full_is_a_warning(small: Stage) -> None:
    small.etcd["main"].fill(live=13 * MB)
    small.run(60)
    warnings = [note for host in small.hosts.values() if host.round_ for note in host.round_.report.warnings]
    assert len(warnings) == 3
    assert "the database of main/a has 13.0 MiB, 13.0 MiB of it in use; at its quota of 16.0 MiB" in warnings[0].text
