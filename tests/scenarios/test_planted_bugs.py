"""Scenarios find the bugs they are there for: one at a time is planted into the product, and has to be seen.

The same scenario goes well without the bug. This is the only place where a function of ours is replaced.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from clusters.scenario.acts import (
    accept,
    asides,
    attach_by_hand,
    boot,
    copy_within_the_window,
    panicked,
    power_off,
    refused_after_a_panic,
    remove_by_hand,
    remove_the_one_that_came_furthest,
    restore_while_down,
    started_old,
    take_over,
)
from clusters.scenario.checks import Broken, Watch
from clusters.scenario.cluster import Stage
from clusters.scenario.edges import AgentDied
from clusters.scenario.histories import failure
from clusters.scenario.host import tmpfs
from clusters.scenario.player import Step
from protokube.agent import links
from protokube.agent.edges import Edges
from protokube.agent.volume import (
    claims,
    evidence,
    fatal_messages,
    fence,
    formatgate,
    inventory,
    leaving,
    lost,
    mounted_volumes,
    ownership,
    raftmarks,
    removals,
    unused,
    verified,
)
from protokube.host import Mount
from protokube.members import fatal_messages as members_fatal_messages
from protokube.members import older_copy, raftmark, removal, start
from protokube.members.generation import Accepted, is_unformed
from protokube.members.identity import Identity, Unreadable
from protokube.members.older_copy import Majority
from protokube.members.start_values import Start
from protokube.records import member as records
from protokube.store import layout

pytestmark = pytest.mark.usefixtures("unmeasured")

Plant = Callable[[pytest.MonkeyPatch], None]
Scenario = Callable[[], str]
"""What went wrong in it; "" if nothing did."""


def history(*steps: Step) -> Scenario:
    return lambda: failure(steps)


def formed(play: Callable[[Stage], None], *, clusters: str = "main") -> Scenario:
    """A scenario that begins with three masters that have come up; in the end everything that must hold is asked."""

    def run() -> str:
        with tmpfs() as folder:
            stage = Stage(folder, clusters=clusters)
            stage.boot_all()
            stage.until(stage.all_healthy)
            stage.run(10)
            try:
                play(stage)
                Watch(stage).after_event()
            except (Broken, AssertionError) as wrong:
                return str(wrong) or "it does not do what it should"
        return ""

    return run


def planted(owner: Any, name: str, bug: Any) -> Plant:
    return lambda patch: patch.setattr(owner, name, bug)


# Scenarios.


def a_copy_from_before_a_takeover(stage: Stage) -> None:
    copied = stage.copy_disk(stage.volume_of("b"))
    take_over(stage, "b")
    assert stage.write()
    restore_while_down(stage, "b", copied)
    stage.until(stage.healthy)
    assert not started_old(stage)


def a_copy_without_a_takeover(stage: Stage) -> None:
    copied = stage.copy_disk(stage.volume_of("b"))
    assert stage.write()
    stage.run(70)
    restore_while_down(stage, "b", copied)
    stage.until(stage.healthy)
    assert not started_old(stage)


def a_copy_is_restored_while_its_machine_is_down(stage: Stage) -> None:
    host, volume = stage.holder_of("b"), stage.volume_of("b")
    copied = stage.copy_disk(volume)
    assert stage.write()
    stage.run(70)
    stage._go_down(host)
    stage.put_back(volume, copied)
    stage.reboot(host)
    stage.until(stage.healthy)
    assert not started_old(stage)


def a_copy_within_the_window(stage: Stage) -> None:
    """It is started once, since nothing tells it: that it was is not what is asked here."""
    copied = copy_within_the_window(stage, "b")
    restore_while_down(stage, "b", copied)
    panicked(stage, list(stage.hosts.values())[-1])
    stage.run(30)
    panics = len(stage.etcd["main"].panics)
    stage.run(30)
    stage.etcd["main"].started_old.clear()
    assert len(stage.etcd["main"].panics) == panics, "it is started again and again"
    assert stage.healthy()
    assert asides(stage, "b") == ["data.aside-1"]


def the_original_comes_back_after_its_copy(stage: Stage) -> None:
    volume, copied = stage.volume_of("b"), copy_within_the_window(stage, "b")
    power_off(stage, "b")
    original = stage.copy_disk(volume)
    stage.put_back(volume, copied)
    refused_after_a_panic(stage, boot(stage, "b")[0])
    restore_while_down(stage, "b", original)
    stage.thaw(stage.holder_of("c"))
    stage.until(stage.healthy)
    stage.etcd["main"].started_old.clear()
    assert asides(stage, "b") == []


def a_copy_that_a_person_accepts_after_its_panic(stage: Stage) -> None:
    copied = copy_within_the_window(stage, "b")
    restore_while_down(stage, "b", copied)
    host, model = list(stage.hosts.values())[-1], stage.etcd["main"]
    refused_after_a_panic(stage, host)
    power_off(stage, "a", "c")
    model.acknowledged.clear()
    assert host.round_ is not None
    disk = host.round_.older[stage.volume_of("b")].disk
    accept(stage, stage.volume_of("b"), Accepted(epoch=disk.epoch, term=disk.term, commit=disk.commit))
    stage.until(lambda: host.id in model.processes)
    stage.run(60)
    model.started_old.clear()
    assert host.id in model.processes


def a_member_with_words_of_another_on_its_machine(stage: Stage) -> None:
    copied = copy_within_the_window(stage, "b")
    restore_while_down(stage, "b", copied)
    stage.until(stage.healthy)
    host, other = stage.holder_of("b"), stage.holder_of("c")
    output = "var/log/pods/kube-system_etcd-server/etcd-container.log"
    (other.root / output).parent.mkdir(parents=True, exist_ok=True)
    text = (host.root / output).read_text().replace("tocommit(", "tocommit(9")
    (other.root / output).write_text(text)
    stage.etcd["main"].started_old.clear()
    stage.run(60)
    assert stage.healthy()


def die() -> None:
    raise AgentDied


def the_others_lack_what_a_suspect_has(stage: Stage) -> None:
    """The copy of a is one that no record tells from the original, so a and c go on without the last write."""
    stage.run(70)
    lacking, volume = stage.copy_disk(stage.volume_of("a")), stage.volume_of("b")
    stage.freeze(stage.holder_of("c"))
    assert all(stage.write() for _ in range(100))
    power_off(stage, "a", "b")
    stage.put_back(stage.volume_of("a"), lacking)
    stage.change_tags(volume, epoch=5)
    stage.thaw(stage.holder_of("c"))
    boot(stage, "a", "b")
    stage.run(30)
    kept = asides(stage, "b")
    stage.etcd["main"].acknowledged.clear()  # lost by the copy of a, which is not what is asked here
    stage.etcd["main"].started_old.clear()
    assert kept == []


def an_agent_dies_between_the_two_epochs(stage: Stage) -> None:
    power_off(stage, "b")
    (new,) = boot(stage, "b")
    new.fuse.set(1, die, "write_epoch")
    stage.rounds(3)
    stage.until(stage.healthy)
    assert asides(stage, "b") == []


def a_wiped_disk_whose_mark_was_stripped(stage: Stage) -> None:
    power_off(stage, "b")
    stage.platters[stage.volume_of("b")].wipe()
    stage.change_tags(stage.volume_of("b"), mark="")
    boot(stage, "b")
    stage.run(20)


def a_disk_that_was_away_while_the_others_went_on(stage: Stage) -> None:
    power_off(stage, "c")
    assert all(stage.write() for _ in range(10))
    stage.run(70)
    boot(stage, "c")
    stage.until(stage.healthy)
    assert asides(stage, "c") == []


def two_disks_without_data_while_the_third_is_away(marks: str | None = None) -> Callable[[Stage], None]:
    def play(stage: Stage) -> None:
        power_off(stage, "a", "b", "c")
        for short in "ab":
            folder = stage.platters[stage.volume_of(short)].folder
            assert folder is not None
            shutil.rmtree(folder / "var")
            if marks is not None:
                stage.change_tags(stage.volume_of(short), mark=marks)
        boot(stage, "a", "b")
        stage.run(20)
        assert stage.serving() == {}

    return play


def tags_that_come_back_while_the_replacement_joins(stage: Stage) -> None:
    volume, host = stage.volume_of("a"), stage.holder_of("a")
    members = {each.id for each in stage.etcd["main"].led()[0].db.state.members}
    stage.hide(volume)
    stage.kill(host)
    stage.declare_dead(host)
    (new,) = boot(stage, "a")
    for _ in range(20):
        new.fuse.set(0, die, "remove")  # after it has an identity, and before anything is removed
        stage.rounds(1)
        if any(each.member == "a" and each.mark == "forming" for each in stage.cloud.volumes()):
            break
    new.fuse.left = -1
    stage.show(volume)
    stage.rounds(5)
    assert {each.id for each in stage.etcd["main"].led()[0].db.state.members} == members


def a_superseded_volume_is_back(stage: Stage) -> None:
    volume, host = stage.volume_of("a"), stage.holder_of("a")
    stage.hide(volume)
    stage.kill(host)
    stage.declare_dead(host)
    boot(stage, "a")
    stage.until(stage.healthy)
    stage.show(volume)
    boot(stage, "a")
    stage.run(30)
    assert stage.holder(volume) is None
    assert stage.write()


def two_volumes_of_one_etcd_cluster_on_one_machine(stage: Stage) -> None:
    host = stage.holder_of("a")
    attach_by_hand(stage, "b", host)
    stage.rounds(6)
    for _ in range(2):
        stage.rounds(1)
        assert host.round_ is not None
        assert host.round_.report.did == []


def a_volume_is_missing_from_one_list(stage: Stage) -> None:
    volume = stage.volume_of("a")
    stage.hide(volume)
    stage.rounds(2)
    stage.show(volume)
    assert [each.id for each in stage.cloud.volumes() if each.member == "a"] == [volume]


def events_lose_their_quorum(stage: Stage) -> None:
    for short in "ab":
        stage.delete_volume(stage.volume_of(f"events/{short}"))
    stage.run(30)
    assert len(stage.cloud.volumes()) == 4


def a_holder_loses_its_volume_and_lives(stage: Stage) -> None:
    host, volume = stage.holder_of("a"), stage.volume_of("a")
    stage.declare_dead(host)
    stage.round(host)
    assert volume not in host.links().values()


def a_holder_sleeps_before_it_reads_its_name_and_wakes_up_as_the_former_one(stage: Stage) -> None:
    power_off(stage, "b")
    (late,) = boot(stage, "b")

    def sleep() -> None:
        stage.freeze(late)
        stage.declare_dead(late)
        (new,) = boot(stage, "b")
        for _ in range(4):
            stage.round(new)
            stage.clock.advance(1.0)
        stage.thaw(late)

    late.fuse.set(0, sleep, "dns.read")
    for _ in range(4):
        stage.round(late)
    assert stage.dns.addresses("etcd-b.internal.laptop") == (stage.holder_of("b").address,)


def a_majority_is_counted(_stage: Stage) -> None:
    """No scenario has a leader that two of five follow: raft itself keeps that from happening. The table is asked."""
    voters = {
        f"etcd-{each}": older_copy.Voter(member_id=each, cluster_id=7, leader=2, term=1, commit=9) for each in (1, 2)
    }
    assert older_copy.majority_without(1, [1, 2, 3], voters) is None


# Bugs.


def epoch_at_the_provider_first(patch: pytest.MonkeyPatch) -> None:
    write = ownership._write

    def bug(round_: Any, home: Any, identity: Identity, what: str) -> None:
        edges = round_.edges
        edges.volumes.write_epoch(home.volume, identity.epoch, edges.me.id, generation=identity.generation)
        write(round_, home, identity, what)

    patch.setattr(ownership, "_write", bug)


def counting_the_suspect(patch: pytest.MonkeyPatch) -> None:
    right = older_copy.majority_without

    def bug(_suspect: int, voters: Any, answers: Any) -> Majority | None:
        return right(0, voters, answers)

    patch.setattr(older_copy, "majority_without", bug)
    patch.setattr(evidence, "majority_without", bug)


def always_verified(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(mounted_volumes, "is_verified", lambda *_: True)
    patch.setattr(verified, "is_verified", lambda *_: True)


def a_member_is_removed_by_hand(stage: Stage) -> None:
    remove_by_hand(stage, "b")
    began = stage.clock.seconds
    stage.until(lambda: asides(stage, "b"), within=450)
    assert stage.clock.seconds - began >= 300
    stage.until(stage.healthy, within=90)


def a_clock_jumps_after_a_removal(stage: Stage) -> None:
    remove_by_hand(stage, "b")
    stage.run(100)
    stage.clock.wall += 86400
    stage.run(100)
    assert not asides(stage, "b")


def a_member_is_removed_twice(stage: Stage) -> None:
    a_member_is_removed_by_hand(stage)
    remove_by_hand(stage, "b")
    stage.run(450)
    assert len(asides(stage, "b")) == 1


def the_one_that_came_furthest_is_removed(stage: Stage) -> None:
    remove_the_one_that_came_furthest(stage)
    stage.run(360)
    assert not asides(stage, "b")


def a_member_is_removed_and_the_others_lose_their_quorum(stage: Stage) -> None:
    remove_by_hand(stage, "b")
    stage.run(60)
    stage.freeze(stage.holder_of("c"))
    stage.run(60)
    assert not stage.holder_of("b").links()


def verified_by_its_holder(patch: pytest.MonkeyPatch) -> None:
    def bug(edges: Edges, _volume: str, _mount: Mount, identity: Identity | Unreadable | None) -> bool:
        return isinstance(identity, Identity) and identity.holder == edges.me.id

    patch.setattr(mounted_volumes, "is_verified", bug)
    patch.setattr(verified, "is_verified", bug)


def one_mark_for_all_members(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        raftmarks, "_path", lambda round_, key, *_: layout.etcd_raft_mark(round_.wanted.cluster, key, "g", 0, 0)
    )
    patch.setattr(raftmark.RaftMark, "key", ("g1", 0, 0))
    behind = raftmark.is_behind
    patch.setattr(
        older_copy,
        "is_behind",
        lambda position, mark, _generation: behind(replace(position, cluster_id=0, member_id=0), mark, "g1"),
    )


def several_members_on_one_machine(patch: pytest.MonkeyPatch) -> None:
    why_leave = claims._why_leave
    patch.setattr(
        claims,
        "_why_leave",
        lambda volume, me, wanted, _held, *, zonal: why_leave(volume, me, wanted, set(), zonal=zonal),
    )


def forgetting_what_etcd_said(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        fatal_messages, "record", lambda round_, home, _position: fatal_messages.forget(round_.edges, home.volume)
    )


def the_copys_epoch_counts(patch: pytest.MonkeyPatch) -> None:
    right = raftmarks.acknowledge

    def bug(*given: Any, acknowledged: int, **_: int) -> None:
        right(*given, acknowledged=acknowledged, copied_epoch=0)

    patch.setattr(raftmarks, "acknowledge", bug)


def words_without_a_time_or_a_member(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(members_fatal_messages, "about", lambda *_: True)


NO_LINKS = SimpleNamespace(dangling=links.dangling, pointing_into=lambda *_: [], remove=links.remove)

BUGS: dict[str, tuple[Plant, Scenario]] = {
    "the fence does nothing": (
        planted(fence, "reason", lambda *_, **__: ""),
        formed(a_holder_loses_its_volume_and_lives),
    ),
    "the epoch is not raised at a mount": (
        planted(Identity, "taken_over_by", lambda self, holder, seen=0: replace(self, holder=holder)),
        formed(a_copy_from_before_a_takeover),
    ),
    "the epoch is written at the provider before the disk": (
        epoch_at_the_provider_first,
        formed(an_agent_dies_between_the_two_epochs),
    ),
    "no copy is ever older": (
        planted(evidence, "older_copy", lambda *_: None),
        formed(a_copy_from_before_a_takeover),
    ),
    "the raft mark is not compared": (
        planted(older_copy, "is_behind", lambda *_: False),
        formed(a_copy_without_a_takeover),
    ),
    "an older copy is set aside whatever the others have": (
        planted(start, "why_not_rejoin", lambda *_, **__: ""),
        formed(the_others_lack_what_a_suspect_has),
    ),
    "the suspect counts for a majority": (counting_the_suspect, formed(a_majority_is_counted)),
    "a disk is formatted without proof": (
        planted(formatgate, "_not_proven_ours", lambda *_: None),
        formed(a_wiped_disk_whose_mark_was_stripped),
    ),
    "a member is started on whatever data is there": (
        planted(start, "_with_data", lambda *_: Start(fresh=False)),
        formed(a_copy_from_before_a_takeover),
    ),
    "every mount counts as verified": (always_verified, formed(a_copy_from_before_a_takeover)),
    "a disk that names this machine counts as verified": (
        verified_by_its_holder,
        formed(a_copy_is_restored_while_its_machine_is_down),
    ),
    "a closed generation is taken for an open one": (
        planted(start, "is_open", lambda generation, mark: generation is not None and is_unformed(mark)),
        formed(two_disks_without_data_while_the_third_is_away(marks="forming")),
    ),
    "everybody may found": (
        planted(start, "may_found", lambda _seen: True),
        formed(two_disks_without_data_while_the_third_is_away()),
    ),
    "another volume of the member is ignored": (
        planted(start, "_alone", lambda *_: None),
        formed(tags_that_come_back_while_the_replacement_joins),
    ),
    "all members share one raft mark": (
        one_mark_for_all_members,
        formed(a_disk_that_was_away_while_the_others_went_on),
    ),
    "superseded volumes are claimed": (
        planted(unused, "superseded", lambda _turn: set()),
        formed(a_superseded_volume_is_back),
    ),
    "one machine takes several members of an etcd cluster": (
        several_members_on_one_machine,
        history(("boot", 0, 0), *[("all", 0, 1)] * 4),
    ),
    "one machine serves several members of an etcd cluster": (
        planted(ownership, "refuse_second_volume", lambda *_: None),
        formed(two_volumes_of_one_etcd_cluster_on_one_machine),
    ),
    "a lower epoch overwrites a name": (
        planted(records, "_outranked", lambda *_: None),
        formed(a_holder_sleeps_before_it_reads_its_name_and_wakes_up_as_the_former_one),
    ),
    "a volume is replaced as soon as it is missing": (
        planted(
            inventory, "member_is_gone", lambda round_, etcd, member: inventory.volume_of(round_, etcd, member) is None
        ),
        formed(a_volume_is_missing_from_one_list),
    ),
    "nobody is asked for a quorum before a volume is made": (
        planted(lost, "quorum", SimpleNamespace(members=lambda *_: ())),
        formed(events_lose_their_quorum, clusters="main events"),
    ),
    "nobody listens to etcd": (
        planted(fatal_messages, "proof_of_a_copy", lambda *_: None),
        formed(a_copy_within_the_window),
    ),
    "an acknowledged index is not compared": (
        planted(raftmark, "lacks_acknowledged", lambda *_: False),
        formed(a_copy_within_the_window),
    ),
    "what etcd said is forgotten before it is recorded": (
        forgetting_what_etcd_said,
        formed(a_copy_within_the_window),
    ),
    "the epoch that a copy got counts against the original": (
        the_copys_epoch_counts,
        formed(the_original_comes_back_after_its_copy),
    ),
    "words of an earlier mount count": (
        words_without_a_time_or_a_member,
        formed(a_copy_that_a_person_accepts_after_its_panic),
    ),
    "words of another member count": (
        words_without_a_time_or_a_member,
        formed(a_member_with_words_of_another_on_its_machine),
    ),
    "links are not removed where a volume is left": (
        planted(leaving, "links", NO_LINKS),
        formed(a_holder_loses_its_volume_and_lives),
    ),
    "a removed member rejoins at once": (
        planted(removal, "is_over", lambda *_: True),
        formed(a_member_is_removed_by_hand),
    ),
    "the wall clock alone counts the five minutes": (
        planted(removal, "is_over", lambda lacking, now, after: now - lacking.since >= after),
        formed(a_clock_jumps_after_a_removal),
    ),
    "no removal is ever meant": (
        planted(removal, "is_meant", lambda *_: False),
        formed(a_member_is_removed_twice),
    ),
    "nobody looks for a member that does not answer": (
        planted(removals, "of_served", lambda *_: None),
        formed(a_member_is_removed_by_hand),
    ),
    "a removed member is set aside whatever the others have": (
        planted(removal, "why_not_rejoin", lambda *_, **__: ""),
        formed(the_one_that_came_furthest_is_removed),
    ),
    "a removed member starts when nobody can be asked": (
        planted(start, "_known_to_be_removed", lambda *_: None),
        formed(a_member_is_removed_and_the_others_lose_their_quorum),
    ),
}


@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_found_by_a_scenario_that_goes_well_without_it(
    bug: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant, scenario = BUGS[bug]
    assert scenario() == ""
    plant(monkeypatch)
    assert scenario() != ""
