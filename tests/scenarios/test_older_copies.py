"""A disk that is an older copy of itself is never started by itself, and nothing that was acknowledged is lost.

A copy is known by the epoch of its last mount, or by the raft mark. Its data is set aside only where a majority of all
voters, the copy's member not counted, has everything that the disk and the records know of.
"""

from __future__ import annotations

import pytest

from clusters.scenario.acts import accept, asides, boot, power_off, refusals, restore_while_down, started_old, take_over
from clusters.scenario.cluster import Stage
from clusters.scenario.edges import AgentDied
from protokube.members.generation import Accepted

MARKED = 75.0
"""Seconds after which the position of every log is recorded once more: a minute, and a round of 9 to 11 seconds."""


def test_a_copy_from_before_a_takeover_is_set_aside_and_its_member_joins_anew(formed: Stage) -> None:
    copied = formed.copy_disk(formed.volume_of("b"))
    take_over(formed, "b")
    assert formed.write()
    restore_while_down(formed, "b", copied)
    formed.until(formed.healthy)
    assert not started_old(formed)
    assert asides(formed, "b") == ["data.aside-1"]
    assert formed.generation().rejoined.keys() == {"b"}
    assert formed.etcd["main"].acknowledged <= formed.etcd["main"].led()[0].db.state.writes


def test_a_copy_that_was_made_after_the_takeover_is_known_by_the_raft_mark(formed: Stage) -> None:
    take_over(formed, "b")
    copied = formed.copy_disk(formed.volume_of("b"))
    assert formed.write()
    formed.run(MARKED)
    restore_while_down(formed, "b", copied)
    formed.until(formed.healthy)
    assert not started_old(formed)
    assert asides(formed, "b") == ["data.aside-1"]


def test_a_copy_without_any_takeover_is_known_by_the_raft_mark(formed: Stage) -> None:
    copied = formed.copy_disk(formed.volume_of("b"))
    assert formed.write()
    formed.run(MARKED)
    restore_while_down(formed, "b", copied)
    formed.until(formed.healthy)
    assert not started_old(formed)


def test_with_one_other_member_up_nothing_starts_and_no_write_is_lost(formed: Stage) -> None:
    """Seen once: the older copy and a member that was cut off formed a quorum, and a write was gone."""
    copied = formed.copy_disk(formed.volume_of("b"))
    take_over(formed, "b")
    formed.freeze(formed.holder_of("c"))
    assert formed.write()  # acknowledged by a and b alone
    power_off(formed, "b")
    formed.put_back(formed.volume_of("b"), copied)
    formed.freeze(formed.holder_of("a"))
    formed.thaw(formed.holder_of("c"))
    boot(formed, "b")
    formed.run(120)
    assert not started_old(formed)
    assert formed.etcd["main"].leader() is None
    assert any("is an older copy" in text for text in refusals(formed))
    formed.thaw(formed.holder_of("a"))
    formed.until(formed.healthy)
    assert not started_old(formed)
    assert formed.etcd["main"].acknowledged <= formed.etcd["main"].led()[0].db.state.writes


def test_with_no_other_member_up_nothing_starts_and_both_figures_are_shown(formed: Stage) -> None:
    copied = formed.copy_disk(formed.volume_of("b"))
    take_over(formed, "b")
    power_off(formed, "a", "b", "c")
    formed.put_back(formed.volume_of("b"), copied)
    boot(formed, "b")
    formed.run(60)
    assert not started_old(formed)
    (refusal,) = (text for text in refusals(formed) if "older copy" in text)
    assert "the disk has epoch 1" in refusal
    assert "recorded are epoch 2" in refusal


def test_the_suspect_with_the_only_newest_data_is_kept_as_it_is(formed: Stage) -> None:
    """Its epoch is behind, but it holds a write that the others lack: setting it aside would lose that."""
    volume = formed.volume_of("b")
    hosts = {member: formed.holder_of(member) for member in "abc"}
    formed.freeze(hosts["c"])
    assert formed.write()
    newest = formed.copy_disk(volume)
    formed.kill(hosts["a"])
    formed.declare_dead(hosts["a"])
    formed.platters[formed.volume_of("a")].wipe()  # the other copy of that write is gone
    formed.kill(hosts["b"])
    formed.declare_dead(hosts["b"])
    formed.put_back(volume, newest)
    formed.change_tags(volume, epoch=5)
    formed.thaw(hosts["c"])
    boot(formed, "b")
    formed.run(120)
    assert not asides(formed, "b")
    assert not started_old(formed)
    assert any("is an older copy" in text for text in refusals(formed))


def test_the_second_older_copy_of_a_member_is_a_persons(formed: Stage) -> None:
    copied = formed.copy_disk(formed.volume_of("b"))
    take_over(formed, "b")
    restore_while_down(formed, "b", copied)
    formed.until(formed.healthy)
    again = formed.copy_disk(formed.volume_of("b"))
    take_over(formed, "b")
    restore_while_down(formed, "b", again)
    formed.run(60)
    assert any("was set aside once already" in text for text in refusals(formed))
    assert not started_old(formed)
    assert len(formed.serving()) == 2


@pytest.mark.parametrize("passages", range(0, 60, 2))
def test_an_agent_that_dies_anywhere_while_a_copy_is_set_aside_never_starts_it(formed: Stage, passages: int) -> None:
    copied = formed.copy_disk(formed.volume_of("b"))
    take_over(formed, "b")
    assert formed.write()
    volume = formed.volume_of("b")
    power_off(formed, "b")
    formed.put_back(volume, copied)
    (new,) = boot(formed, "b")
    formed.round(new)
    formed.round(new)

    def die() -> None:
        raise AgentDied

    new.fuse.set(passages, die)
    formed.rounds(8)
    new.fuse.left = -1
    formed.until(formed.healthy)
    assert not started_old(formed)
    assert formed.etcd["main"].acknowledged <= formed.etcd["main"].led()[0].db.state.writes


def test_a_person_accepts_an_older_copy_by_naming_what_is_on_it_and_only_once(formed: Stage) -> None:
    volumes = {member: formed.volume_of(member) for member in "abc"}
    copies = {member: formed.copy_disk(volume) for member, volume in volumes.items()}
    figures = {
        member: Accepted(epoch=1, term=1, commit=next(iter(copied.dbs[0].values())).state.sequence)
        for member, copied in copies.items()
    }
    for member in "abc":
        take_over(formed, member)
    power_off(formed, "a", "b", "c")
    formed.etcd["main"].acknowledged.clear()  # the person knows what is given up
    for member, volume in volumes.items():
        formed.put_back(volume, copies[member])
    boot(formed, "a", "b", "c")
    formed.run(60)
    assert not started_old(formed)
    accept(formed, volumes["a"], Accepted(epoch=1, term=1, commit=figures["a"].commit + 1))
    formed.run(60)
    assert not started_old(formed), "other figures were accepted than those of the disk"
    for member, volume in volumes.items():
        accept(formed, volume, figures[member])
    formed.until(formed.healthy, within=180)
    assert len(started_old(formed)) == 3
    assert formed.generation().accepted == {}
    assert not refusals(formed)
    formed.etcd["main"].started_old.clear()  # as that person wanted


def test_an_acceptance_counts_from_the_next_round_on(formed: Stage) -> None:
    """The record that was read a minute ago does not know of it."""
    volume, copied = formed.volume_of("b"), formed.copy_disk(formed.volume_of("b"))
    take_over(formed, "b")
    power_off(formed, "a", "b", "c")
    formed.put_back(volume, copied)
    (host,) = boot(formed, "b")
    formed.run(30)
    assert any("is an older copy" in text for text in refusals(formed))
    commit = next(iter(copied.dbs[0].values())).state.sequence
    accept(formed, volume, Accepted(epoch=1, term=1, commit=commit))
    formed.round(host)
    assert host.links() != {}
    formed.etcd["main"].started_old.clear()  # as that person wanted


def test_a_clone_of_another_members_disk_is_refused_and_no_member_is_changed(formed: Stage) -> None:
    formed.run(MARKED)
    before = formed.etcd["main"].led()[0].db.state.members
    copied = formed.copy_disk(formed.volume_of("a"))
    restore_while_down(formed, "b", copied)
    formed.run(120)
    assert any("the disk says" in text for text in refusals(formed))
    assert formed.etcd["main"].led()[0].db.state.members == before
    assert not started_old(formed)


def test_what_was_refused_is_mounted_once_and_gives_one_reason(formed: Stage) -> None:
    copied = formed.copy_disk(formed.volume_of("b"))
    take_over(formed, "b")
    power_off(formed, "a", "b", "c")
    formed.put_back(formed.volume_of("b"), copied)
    (host,) = boot(formed, "b")
    formed.until(lambda: formed.volume_of("b") in host.disks.table)
    seen = set()
    for _ in range(40):
        formed.round(host)
        formed.clock.advance(2.5)
        assert formed.volume_of("b") in host.disks.table
        seen.add(tuple(note.text for note in host.round_.report.person) if host.round_ else ())
    assert len(seen) == 1
    (reasons,) = seen
    assert len(reasons) == 1
