"""A copy that no record tells from the original: etcd itself shows what it lacks, and that is then on record.

Such a copy was made and put back between two raft marks, without a mount in between. It starts, and its leader asks it
to commit what it acknowledged and does not have.
"""

from __future__ import annotations

import json

import pytest

from clusters.scenario.acts import (
    accept,
    asides,
    boot,
    copy_within_the_window,
    panicked,
    power_off,
    refusals,
    refused_after_a_panic,
    restore_while_down,
)
from clusters.scenario.cluster import Stage
from clusters.scenario.edges import AgentDied
from clusters.scenario.host import Host
from protokube.members.generation import Accepted
from protokube.members.raftmark import RaftMark, decode


@pytest.fixture
def window(formed: Stage) -> Stage:
    formed.etcd["main"].preferred = next(
        each.id for each in formed.etcd["main"].led()[0].db.state.members if each.name == "etcd-a"
    )
    return formed


@pytest.fixture(autouse=True)
def started_on_purpose(formed: Stage):  # type: ignore[no-untyped-def]
    """Nothing can keep such a copy from being started once; what matters is that nothing is lost by it."""
    yield
    model = formed.etcd["main"]
    found = model.leader()
    if found is not None:
        assert model.acknowledged <= found[0].db.state.writes
    model.started_old.clear()


def mark_of(stage: Stage, member: str) -> RaftMark:
    ids = {each.name: each.id for each in stage.etcd["main"].led()[0].db.state.members}
    paths = stage.store.inner.list_paths(f"{stage.wanted.cluster}/etcd/main/raft")
    marks = [decode(stage.store.inner.read(each).data.decode().strip()) for each in paths]
    return next(each for each in marks if each is not None and each.member_id == ids[f"etcd-{member}"])


def restored(stage: Stage, member: str) -> Host:
    """A copy in the window is put back, and a new machine comes up with it."""
    copied = copy_within_the_window(stage, member)
    restore_while_down(stage, member, copied)
    return list(stage.hosts.values())[-1]


def test_the_copy_of_a_follower_is_set_aside_and_its_member_joins_anew(window: Stage) -> None:
    restored(window, "b")
    window.until(window.healthy)
    assert window.etcd["main"].panics != []
    assert asides(window, "b") == ["data.aside-1"]
    assert window.generation().rejoined.keys() == {"b"}
    panics = len(window.etcd["main"].panics)
    window.run(120)
    assert len(window.etcd["main"].panics) == panics
    assert window.healthy()


def test_the_copy_of_a_leader_catches_up_with_its_successor(window: Stage) -> None:
    restored(window, "a")
    window.until(window.healthy)
    assert window.etcd["main"].panics == []
    assert asides(window, "a") == []


def test_without_a_majority_of_others_it_is_refused_with_both_figures_and_one_reason(window: Stage) -> None:
    host = restored(window, "b")
    lacks = window.etcd["main"].led()[0].db.state.sequence
    reason = refused_after_a_panic(window, host)
    assert "log up to" in reason.split("; recorded are")[0]
    assert f"log up to {lacks}" in reason.split("; recorded are")[1]
    assert window.etcd["main"].processes.keys() & {host.id} == set()
    starts = window.etcd["main"].starts
    for _ in range(40):
        window.round(host)
        window.clock.advance(2.5)
        assert host.round_ is not None
        assert [each.text for each in host.round_.report.person if "older copy" in each.text] == [reason]
    assert window.etcd["main"].starts == starts
    assert asides(window, "b") == []
    window.thaw(window.holder_of("c"))
    window.until(window.healthy)
    assert asides(window, "b") == ["data.aside-1"]


def test_the_original_is_taken_when_a_person_puts_it_back(window: Stage) -> None:
    """The copy was mounted and got a newer epoch than the original ever had."""
    volume, copied = window.volume_of("b"), copy_within_the_window(window, "b")
    power_off(window, "b")
    original = window.copy_disk(volume)
    window.put_back(volume, copied)
    refused_after_a_panic(window, boot(window, "b")[0])
    restore_while_down(window, "b", original)
    window.until(lambda: set(window.serving()) == {"a", "b"})
    assert asides(window, "b") == []
    window.thaw(window.holder_of("c"))
    window.until(window.healthy)
    assert window.generation().rejoined == {}
    assert not any("older copy" in each for each in refusals(window))


def test_the_copy_is_known_on_another_machine_by_the_record(window: Stage) -> None:
    host = restored(window, "b")
    refused_after_a_panic(window, host)
    starts = window.etcd["main"].starts
    window.kill(host)
    window.declare_dead(host)
    boot(window, "b")
    window.run(60)
    assert window.etcd["main"].starts == starts
    assert any("is an older copy" in each for each in refusals(window))


def test_the_mark_keeps_term_and_commit_as_the_log_had_them(window: Stage) -> None:
    before = mark_of(window, "b")
    host = restored(window, "b")
    lacks = window.etcd["main"].led()[0].db.state.sequence
    refused_after_a_panic(window, host)
    window.thaw(window.holder_of("c"))
    after = mark_of(window, "b")
    assert after.acknowledged == lacks
    assert after.commit < lacks
    assert after.key == before.key


def test_a_person_accepts_a_copy_that_etcd_proved_and_it_is_not_stopped_again(window: Stage) -> None:
    """What etcd said before is about the mount before."""
    host = restored(window, "b")
    refused_after_a_panic(window, host)
    power_off(window, "a", "c")
    window.etcd["main"].acknowledged.clear()  # the person knows what is given up
    assert host.round_ is not None
    older = host.round_.older[window.volume_of("b")].disk
    accept(window, window.volume_of("b"), Accepted(epoch=older.epoch, term=older.term, commit=older.commit))
    window.until(lambda: host.id in window.etcd["main"].processes)
    starts = window.etcd["main"].starts
    window.run(60)
    assert window.etcd["main"].starts == starts
    assert host.id in window.etcd["main"].processes


def test_while_the_store_is_away_nothing_starts_on_the_copy(window: Stage) -> None:
    host = restored(window, "b")
    panicked(window, host)
    window.store.down = True
    window.run(60)
    starts = window.etcd["main"].starts
    window.run(60)
    assert window.etcd["main"].starts == starts
    assert host.id not in window.etcd["main"].processes
    window.store.down = False
    window.until(window.healthy)
    assert asides(window, "b") == ["data.aside-1"]


@pytest.mark.parametrize("passages", range(0, 40, 2))
def test_an_agent_that_dies_anywhere_between_the_panic_and_the_rejoining_loses_nothing(
    window: Stage, passages: int
) -> None:
    host = restored(window, "b")
    panicked(window, host)

    def die() -> None:
        raise AgentDied

    host.fuse.set(passages, die)
    window.rounds(8)
    host.fuse.left = -1
    window.until(window.healthy)
    assert asides(window, "b") == ["data.aside-1"]


def say(host: Host, *lines: dict[str, str]) -> None:
    file = host.root / "var/log/pods/kube-system_etcd-server/etcd-container.log"
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a") as opened:
        opened.writelines(json.dumps(each) + "\n" for each in lines)


def panic(index: int, at: str = "2001-01-01T00:00:00Z", member: int | None = None) -> list[dict[str, str]]:
    lasts = "Was the raft log corrupted, truncated, or lost?"
    ids = {"cluster-id": "1", "local-member-id": f"{member:x}"} if member is not None else {}
    return [
        {"level": "info", "ts": at, "msg": "restarting local member", **ids},
        {"level": "panic", "ts": at, "msg": f"tocommit({index}) is out of range [lastIndex(1)]. {lasts}"},
    ]


@pytest.mark.parametrize("index", [2, 10**6])
def test_what_an_etcd_said_in_an_earlier_life_stops_nobody(window: Stage, index: int) -> None:
    host = window.holder_of("b")
    say(host, *panic(index))
    starts = window.etcd["main"].starts
    window.run(120)
    assert window.etcd["main"].starts == starts
    assert window.healthy()


def test_what_another_member_said_on_this_machine_stops_nobody(window: Stage) -> None:
    host = window.holder_of("b")
    say(host, *panic(10**6, at="2999-01-01T00:00:00Z", member=12345))
    window.run(120)
    assert window.healthy()
    assert mark_of(window, "b").acknowledged == 0


def test_what_the_disk_has_stops_nobody(window: Stage) -> None:
    """The proof is about this mount and this member, and the member caught up since."""
    host = window.holder_of("b")
    say(host, panic(2, at="2999-01-01T00:00:00Z")[1])
    starts = window.etcd["main"].starts
    window.run(120)
    assert window.etcd["main"].starts == starts
    assert window.healthy()


def corrupt(stage: Stage, member: str) -> Host:
    """The data of a member is damaged while its machine is down."""
    power_off(stage, member)
    folder = stage.platters[stage.volume_of(member)].folder
    assert folder is not None
    for db in stage.etcd["main"].dbs.values():
        if db.file.is_relative_to(folder):
            db.corrupt = True
    return boot(stage, member)[0]


def test_corrupt_data_is_not_started_again_and_etcds_own_sentence_is_the_reason(window: Stage) -> None:
    host = corrupt(window, "b")
    window.until(lambda: any("is corrupt" in each for each in refusals(window)))
    assert host.links() == {}
    seen = set()
    for _ in range(20):
        window.round(host)
        window.clock.advance(2.5)
        assert host.round_ is not None
        seen.add(tuple(each.text for each in host.round_.report.person))
        assert host.links() == {}
    assert seen == {("etcd says the data of main/b is corrupt: walpb: crc mismatch",)}
    window.start_agent(host)
    window.round(host)
    assert refusals(window) == {"etcd says the data of main/b is corrupt: walpb: crc mismatch"}
    assert len(window.serving()) == 2


def test_a_disk_that_a_person_restored_is_checked_anew(window: Stage) -> None:
    original = window.copy_disk(window.volume_of("b"))
    host = corrupt(window, "b")
    window.until(lambda: any("is corrupt" in each for each in refusals(window)))
    volume = window.volume_of("b")
    window._go_down(host)
    window.put_back(volume, original)
    window.reboot(host)
    window.until(lambda: set(window.serving()) == {"a", "b", "c"})
    assert refusals(window) == set()


def test_a_member_that_answers_has_no_corrupt_data_whatever_its_output_says(window: Stage) -> None:
    host = window.holder_of("b")
    say(host, {"level": "fatal", "ts": "2999-01-01T00:00:00Z", "msg": "failed", "error": "walpb: crc mismatch"})
    window.run(120)
    assert window.healthy()
