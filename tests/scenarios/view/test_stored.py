"""What a reader of the store alone sees of clusters in trouble: the same causes as the agents report, with their ages.

A change shows about a minute after it happened: so every test lets that minute pass before it looks.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace

import pytest

from clusters.scenario.cluster import Stage
from protokube.agent.publish import LEAST, MOST
from protokube.cli.render.explain_member import explain_member
from protokube.cli.render.explain_record import explain_record
from protokube.cli.render.explain_volume import explain_volume
from protokube.cli.render.status import render_status
from protokube.launch.rollout import State
from protokube.members.generation import FORMED
from protokube.store import layout
from protokube.view.cluster import ClusterView
from protokube.view.stored import StoredSource

MINUTE = 60.0
SHOWN = LEAST + 20.0
"""Seconds after which a change is in the store: a minute, the agent's round, and time until leases end."""
BAD = {"quota-backend-bytes": -1}


def look(stage: Stage, after: float = SHOWN) -> ClusterView:
    stage.run(after)
    return StoredSource(stage.store.inner, stage.wanted.cluster, lambda: stage.clock.wall).look()


def same_causes(stage: Stage, view: ClusterView) -> None:
    """What the agents that run say now is in the view: word for word, as a cause and not as a memory."""
    for host in stage.hosts.values():
        if not host.runs or host.round_ is None:
            continue
        report = host.round_.report
        for said, seen in ((report.person, view.person), (report.waits, view.waits)):
            known = {each.note.text for each in seen if not each.stale}
            assert {note.text for note in said} <= known, f"{host.id}: {stage.story()}"


def text(view: ClusterView) -> str:
    return "\n".join(render_status(view))


def test_a_cluster_in_which_all_is_well_is_ready_at_any_time(formed: Stage) -> None:
    for _ in range(40):
        view = look(formed, after=17)
        assert view.ready, text(view)
        assert max(each.age for each in view.agents) <= MOST + 15
        assert view.elected in formed.hosts
    assert {each.mark for each in view.disks} == {FORMED}
    assert [each.healthy for each in view.members] == [True] * 3
    assert view.listed("main")


def test_a_master_that_was_killed_is_gone_and_its_successor_is_seen(formed: Stage) -> None:
    formed.run(MINUTE)
    host = formed.holder_of("a")
    formed.kill(host)
    view = look(formed)

    assert {each.id: each.alive for each in view.hosts}[host.id] is False
    assert any(f"etcd-a on {host.id} is not healthy" in each for each in view.lacks)
    assert view.elected != host.id
    assert f"until {host.id} has a live lease again" in explain_volume(view, formed.volume_of("a")).next

    new = formed.replace_machine(host)
    formed.until(formed.healthy)
    view = look(formed)
    assert view.ready, text(view)
    assert view.member("main/a") in [each for each in view.members if each.host == new.id]


def test_a_frozen_master_loses_its_lease_and_its_last_words_are_old(formed: Stage) -> None:
    formed.run(MINUTE)
    host = formed.holder_of("b")
    formed.freeze(host)
    view = look(formed)

    seen = view.host(host.id)
    assert seen is not None
    assert (seen.alive, seen.state) == (False, "no live lease")
    assert "serving, last known" in text(view)
    assert not view.ready


def test_a_lost_disk_is_awaited_and_then_another_one_is_in_its_place(formed: Stage) -> None:
    formed.run(MINUTE)
    lost = formed.volume_of("c")
    formed.delete_volume(lost)
    formed.run(8)
    formed.until(formed.healthy, within=300)
    view = look(formed)

    assert view.disk(lost) is None
    assert view.ready, text(view)
    record = view.generations["main"]
    assert record is not None
    assert record.volume_of("c") == formed.volume_of("c") != lost


def test_two_lost_disks_of_three_need_a_person_who_is_told_which(formed: Stage) -> None:
    gone = [formed.volume_of(member) for member in "ab"]
    for volume in gone:
        formed.delete_volume(volume)
    formed.run(3 * MINUTE)
    view = look(formed)

    same_causes(formed, view)
    needed = [each.note.text for each in view.person]
    assert any("gone for good" in each and all(volume in each for volume in gone) for each in needed), needed
    assert explain_member(view, "etcd-a").next.startswith("a person acts: keep every volume that is left")
    assert not view.has_quorum("main")


def test_without_a_quorum_whoever_does_not_report_is_not_taken_for_alive(formed: Stage) -> None:
    formed.run(MINUTE)
    dead = [formed.holder_of(member) for member in "ab"]
    for host in dead:
        formed.kill(host)
    view = look(formed, after=3 * MINUTE)  # two intervals of publishing, half a minute, and the round that notices

    same_causes(formed, view)
    assert {each.id for each in view.hosts if each.alive} == {formed.holder_of("c").id}
    assert [each.healthy for each in view.members] == [False] * 3
    assert view.elected is None
    assert "etcd has no quorum, so nobody writes the names of the API" in text(view)


def test_a_zone_that_takes_no_updates_is_the_reason_why_a_member_waits(formed: Stage) -> None:
    formed.run(MINUTE)
    host = formed.holder_of("a")
    formed.dns.unreachable = True
    formed.kill(host)
    new = formed.replace_machine(host)
    view = look(formed, after=2 * MINUTE)

    same_causes(formed, view)
    assert any(each.host == new.id and each.note.step == "names" for each in view.waits), text(view)
    name = next(each.dns_name for each in view.members if each.member == "main/a")
    assert any(name in each for each in view.lacks)
    assert new.id in explain_record(view, name).next


def test_a_disk_that_the_provider_refuses_to_attach_needs_a_person(make_stage: Callable[..., Stage]) -> None:
    stage = make_stage(clusters="main events")
    stage.boot_all()
    stage.until(stage.all_healthy)
    host, volume = stage.holder_of("main/a"), stage.volume_of("main/a")
    stage.cloud.refused[volume] = "the volume is impaired"
    stage.change_tags(volume, attached_to=None)
    stage.reboot(host)
    view = look(stage, after=2 * MINUTE)

    same_causes(stage, view)
    assert "the volume is impaired" in [each.note.text for each in view.person]
    assert "the volume is impaired" in " ".join(explain_volume(view, volume).reports)


def test_a_secret_that_the_provider_quotes_is_in_no_record(formed: Stage) -> None:
    host, volume = formed.holder_of("a"), formed.volume_of("a")
    formed.cloud.refused[volume] = r"turned away: {\"token\": \"hunter2\"}, Authorization: Basic hunter2"
    formed.change_tags(volume, attached_to=None)
    formed.reboot(host)
    view = look(formed, after=2 * MINUTE)

    assert any(each.note.text.startswith("turned away") for each in view.person), text(view)
    paths = formed.store.inner.list_paths(layout.agents(formed.wanted.cluster))
    assert paths
    assert not [path for path in paths if b"hunter2" in formed.store.inner.read(path).data]


def test_a_disk_that_is_blank_although_it_was_formed_needs_a_person(formed: Stage) -> None:
    host = formed.holder_of("b")
    formed.kill(host)
    formed.platters[formed.volume_of("b")].wipe()
    formed.replace_machine(host)
    view = look(formed, after=2 * MINUTE)

    same_causes(formed, view)
    assert any("turns up blank: the data of main/b was lost outside of us" in each.note.text for each in view.person)
    assert "turns up blank" in " ".join(explain_member(view, "etcd-b").reports)


def test_a_copy_of_a_disk_is_refused_with_what_it_says_of_itself(formed: Stage) -> None:
    original = formed.platters[formed.volume_of("a")]
    assert original.folder is not None
    copy = formed.platters["vol-copy"]
    copy.format("11111111-1111-4111-8111-111111111111")
    assert copy.folder is not None
    shutil.copytree(original.folder, copy.folder, dirs_exist_ok=True)
    listed = replace(formed.cloud.find(original.volume), id="vol-copy", attached_to=None, last_holder="", epoch=0)
    formed.cloud._keep(listed)
    formed.boot("master-a")
    view = look(formed, after=2 * MINUTE)

    same_causes(formed, view)
    assert any("the disk says volume" in each.note.text for each in view.person)


def test_a_rollout_that_stopped_says_where_and_why(formed: Stage) -> None:
    formed.etcd["main"].rejected = dict(BAD)
    etcd = tuple(
        replace(each, members=tuple(replace(m, settings={**m.settings, **BAD}) for m in each.members))
        for each in formed.wanted.etcd
    )
    number = formed.put_in_force(replace(formed.wanted, etcd=etcd))
    formed.announce()
    formed.until(lambda: formed.rollout().state is State.STOPPED and formed.rollout().turn is None, within=200)
    view = look(formed)

    same_causes(formed, view)
    assert view.rollout is not None
    assert (view.rollout.state, view.rollout.wanted) == (State.STOPPED, number)
    assert any(f"revision {number} stopped at" in each.note.text for each in view.person)


@pytest.mark.parametrize("fault", ["down", "read_only"])
def test_a_store_that_cannot_be_written_makes_the_reports_old_and_nothing_else(formed: Stage, fault: str) -> None:
    formed.run(MINUTE)
    setattr(formed.store, fault, True)
    view = look(formed, after=10 * MINUTE)

    assert formed.healthy()
    assert [each.stale for each in view.agents] == [True] * 3
    assert [each.alive for each in view.hosts] == [True] * 3, "nobody may be called dead for that"
    assert len([each for each in view.lacks if "has reported nothing for" in each]) == 3

    setattr(formed.store, fault, False)
    assert look(formed, after=2 * MINUTE).ready


def test_a_generation_record_that_is_gone_needs_a_person(formed: Stage) -> None:
    formed.run(MINUTE)
    path = layout.etcd_generation(formed.wanted.cluster, "main")
    before = formed.store.inner.read(path).data
    formed.store.inner.put(path, b"{")
    view = look(formed, after=0)
    formed.store.inner.put(path, before)

    assert "the generation record of main is missing or cannot be read" in [each.note.text for each in view.person]


def test_masters_whose_clocks_are_wrong_are_seen_all_the_same(stage: Stage) -> None:
    for number, wrong in enumerate((-40.0, 0.0, 40.0)):
        stage.boot(f"master-{'abc'[number]}", wrong_by=wrong)
    stage.until(stage.healthy)
    view = look(stage)

    assert len([each for each in view.members if each.healthy]) == 3, text(view)
    assert view.ready, text(view)


def test_an_hour_of_machines_that_come_and_go_leaves_the_living_ones_in_the_view(formed: Stage) -> None:
    for member in "abcabc":
        host = formed.holder_of(member)
        formed.kill(host)
        formed.replace_machine(host)
        formed.until(formed.healthy)
        formed.run(11 * MINUTE)
    view = look(formed)

    assert view.ready, text(view)
    assert {each.id for each in view.hosts if each.alive} == {each.id for each in formed.hosts.values() if each.alive}
    assert any(each.startswith("not shown, since they hold no live lease") for each in view.notes)
    assert len(view.hosts) < len(formed.hosts)
