"""A disk goes: another one is made for its member, which learns everything from the others. Or a person is asked."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace

import pytest

from clusters.scenario.acts import attach_by_hand, boot, power_off
from clusters.scenario.cluster import Stage
from protokube.host import Content
from protokube.members.identity import FILE

MINUTE = 60.0


def lose(stage: Stage, member: str) -> str:
    """Its volume is deleted; the id it had."""
    volume = stage.volume_of(member)
    stage.delete_volume(volume)
    return volume


def test_a_lost_volume_is_replaced_and_its_member_joins_as_a_learner_and_is_promoted(formed: Stage) -> None:
    host, old = formed.holder_of("c"), lose(formed, "c")

    formed.until(formed.healthy, within=MINUTE)

    new = formed.volume_of("c")
    assert new != old
    assert formed.generation().replacements == {"c": new}
    assert formed.holder_of("c") is host  # it is free for a new one
    assert formed.platters[new].formats != []
    members = formed.etcd["main"].led()[0].db.state.members
    assert len(members) == 3
    assert not any(each.learner for each in members)
    assert formed.etcd["main"].histories == [1]
    assert formed.write()


def test_it_was_the_elected_master_that_made_it_and_only_one_was_made(formed: Stage) -> None:
    lose(formed, "a")
    made = set()
    for _ in range(240):
        formed.run(0.25)
        made |= {each.id for each in formed.cloud.volumes() if each.member == "a"}
    assert len(made) == 1
    assert formed.healthy()


def test_a_volume_that_was_held_by_many_before_it_was_lost_can_be_replaced_too(formed: Stage) -> None:
    """The name of the member carries the epoch of the lost volume: the new one has to begin above it."""
    for _ in range(3):
        old = formed.holder_of("b")
        formed.kill(old)
        formed.replace_machine(old)
        formed.until(formed.healthy)
    lose(formed, "b")

    formed.until(formed.healthy, within=MINUTE)

    assert formed.identity(formed.volume_of("b")).epoch == 5
    assert formed.dns.addresses("etcd-b.internal.laptop") == (formed.holder_of("b").address,)


def test_a_machine_is_lost_together_with_its_volume(formed: Stage) -> None:
    host = formed.holder_of("a")
    formed.kill(host)
    lose(formed, "a")
    formed.run(30)
    assert formed.write()
    formed.replace_machine(host)
    formed.until(formed.healthy, within=MINUTE)
    assert formed.write()


def test_the_replacement_is_lost_as_well_and_replaced_in_turn(formed: Stage) -> None:
    lose(formed, "a")
    formed.until(lambda: any(each.member == "a" for each in formed.cloud.volumes()))
    lose(formed, "a")
    formed.until(formed.healthy, within=2 * MINUTE)
    lose(formed, "a")
    formed.until(formed.healthy, within=2 * MINUTE)
    assert formed.etcd["main"].histories == [1]


def test_one_after_the_other_every_volume_is_lost_and_no_write_is(formed: Stage) -> None:
    for short in "abcab":
        lose(formed, short)
        assert formed.write()
        formed.until(formed.healthy, within=MINUTE)
    assert formed.write()
    assert len(formed.etcd["main"].acknowledged) == 106


def test_a_volume_missing_from_a_list_or_two_is_waited_for(formed: Stage) -> None:
    volume = formed.cloud.find(formed.volume_of("a"))
    formed.cloud.delete_volume(volume.id)
    formed.run(3)
    assert any("it may come back" in each.sentence for each in formed.hosts.values())
    formed.cloud._keep(volume)
    formed.until(formed.healthy, within=30)
    formed.run(MINUTE)
    assert formed.volume_of("a") == volume.id
    assert formed.generation().replacements == {}


def test_a_spec_can_forbid_to_make_new_volumes(formed: Stage) -> None:
    formed.wanted = replace(
        formed.wanted, etcd=tuple(replace(each, replace_lost_volumes=False) for each in formed.wanted.etcd)
    )
    lose(formed, "a")
    for _ in range(10):
        formed.rounds(seconds=2)
    assert len(formed.cloud.volumes()) == 2
    assert all("the spec forbids to make a new one" in each.sentence for each in formed.hosts.values())


def test_without_a_quorum_nothing_is_made_and_a_person_is_told_once_volumes_are_gone(formed: Stage) -> None:
    lose(formed, "a")
    lose(formed, "b")
    formed.run(2 * MINUTE)
    assert len(formed.cloud.volumes()) == 1
    assert formed.etcd["main"].histories == [1]
    assert not formed.write()
    for host in formed.hosts.values():
        assert "gone for good: the volumes of main/a (" in host.sentence
        assert "main keeps 1 of 3 volumes and needs 2 for a quorum" in host.sentence
        assert "the elected master makes a new one" not in host.sentence


def test_without_a_quorum_no_agent_promises_what_only_an_elected_master_can_do(formed: Stage) -> None:
    """One volume is gone for good, and of the two members that are left one is only down."""
    down = formed.holder_of("b")
    lose(formed, "a")
    formed.kill(down)
    formed.run(MINUTE)

    for host in formed.hosts.values():
        if host is not down:
            assert "its volume is gone, and no quorum is known" in host.sentence
            assert "the elected master makes a new one" not in host.sentence
            assert "gone for good" not in host.sentence
    assert len(formed.cloud.volumes()) == 2


def test_events_without_a_quorum_get_no_new_volumes_though_main_could_elect_somebody(
    make_stage: Callable[..., Stage],
) -> None:
    stage = make_stage(clusters="main events")
    stage.boot_all()
    stage.until(stage.all_healthy)
    lose(stage, "events/a")
    lose(stage, "events/b")
    stage.run(2 * MINUTE)
    assert len(stage.cloud.volumes()) == 4
    assert stage.healthy("main")
    assert stage.etcd["events"].histories == [1]
    for host in stage.hosts.values():
        assert "events keeps 1 of 3 volumes and needs 2 for a quorum" in host.sentence
        assert "the elected master makes a new one" not in host.sentence


def test_a_volume_lost_before_the_cluster_was_formed_is_not_replaced(stage: Stage) -> None:
    stage.boot("master-a")
    stage.run(10)
    free = next(each.id for each in stage.cloud.volumes() if each.attached_to is None)
    stage.delete_volume(free)
    stage.run(30)
    assert len(stage.cloud.volumes()) == 2
    assert stage.generation().open


def test_a_crash_between_making_and_recording_a_replacement_is_finished_by_the_next_elected(formed: Stage) -> None:
    lose(formed, "a")
    formed.store.read_only = True
    formed.until(lambda: any(each.member == "a" for each in formed.cloud.volumes()), within=2 * MINUTE)
    for host in formed.hosts.values():
        formed.agent_dies(host)
    formed.run(MINUTE)
    assert formed.generation().replacements == {}
    formed.store.read_only = False
    formed.until(formed.healthy, within=2 * MINUTE)
    assert formed.generation().replacements == {"a": formed.volume_of("a")}


@pytest.mark.parametrize("at_once", [True, False])
def test_two_wiped_volumes_of_three_never_form_a_second_cluster(formed: Stage, at_once: bool) -> None:
    """Whether the survivor is back at once or much later."""
    old = list(formed.hosts.values())
    survivor = formed.holder_of("c")
    for host in old:
        formed.kill(host)
    for short in "ab":
        formed.platters[formed.volume_of(short)].wipe()
    for host in old:
        if host is not survivor or at_once:
            formed.replace_machine(host)
    formed.run(MINUTE)
    if not at_once:
        formed.replace_machine(survivor)
    formed.run(2 * MINUTE)

    assert formed.etcd["main"].histories == [1]
    assert not formed.write()
    sentences = [each.sentence for each in formed.hosts.values() if each.alive]
    assert sum("turns up blank: the data of main/" in each for each in sentences) == 2, sentences


@pytest.mark.parametrize("stripped", [True, False])
def test_two_volumes_whose_data_was_deleted_but_not_their_identity_found_nothing(formed: Stage, stripped: bool) -> None:
    old = list(formed.hosts.values())
    for host in old:
        formed.kill(host)
    for short in "ab":
        folder = formed.platters[formed.volume_of(short)].folder
        assert folder is not None
        shutil.rmtree(folder / "var")
        if stripped:
            formed.change_tags(formed.volume_of(short), mark="", epoch=0, last_holder="")
    for host in old:
        if host.machine.group != "master-c":
            formed.replace_machine(host)
    formed.run(MINUTE)
    assert formed.etcd["main"].histories == [1]
    assert formed.serving() == {}
    formed.replace_machine(next(host for host in old if host.machine.group == "master-c"))
    formed.run(MINUTE)
    assert formed.etcd["main"].histories == [1]
    sentences = [each.sentence for each in formed.hosts.values() if each.alive]
    assert sum("is gone, and the other members have no quorum" in each for each in sentences) == 2


def test_data_that_was_deleted_on_one_volume_comes_back_from_the_others(formed: Stage) -> None:
    host = formed.holder_of("a")
    formed.kill(host)
    folder = formed.platters[formed.volume_of("a")].folder
    assert folder is not None
    shutil.rmtree(folder / "var/etcd/data/member/wal")
    formed.replace_machine(host)
    formed.until(formed.healthy, within=MINUTE)
    assert [each.name for each in (folder / "var/etcd").iterdir() if "aside" in each.name] == ["data.aside-1"]
    assert formed.write()


def test_a_marked_volume_that_turns_up_blank_is_shown_to_a_person_and_the_others_go_on(formed: Stage) -> None:
    host = formed.holder_of("b")
    formed.kill(host)
    formed.platters[formed.volume_of("b")].wipe()
    new = formed.replace_machine(host)
    formed.run(2 * MINUTE)
    assert "turns up blank: the data of main/b was lost outside of us" in new.sentence
    assert "NEEDS A PERSON" in new.sentence
    assert formed.write()
    assert new.status["report"]["needsAPerson"][0]["about"] == "main/b"


def test_what_needs_a_person_is_said_in_every_round_also_while_the_disk_is_read_once_more(formed: Stage) -> None:
    host = formed.holder_of("b")
    formed.kill(host)
    formed.platters[formed.volume_of("b")].wipe()
    new = formed.replace_machine(host)
    formed.until(lambda: "NEEDS A PERSON" in new.sentence, within=MINUTE)
    for _ in range(3500):  # every round of more than a minute: it is read again after half of one
        formed.run(0.02)
        assert "NEEDS A PERSON: vol" in new.sentence


def test_tags_that_a_tool_stripped_are_written_again_by_the_holder(formed: Stage) -> None:
    for volume in formed.cloud.volumes():
        formed.change_tags(volume.id, mark="", epoch=0, last_holder="")
    formed.run(15)
    assert {(each.mark, each.epoch, each.last_holder == each.attached_to) for each in formed.cloud.volumes()} == {
        ("formed", 1, True)
    }
    assert formed.healthy()


def test_a_blank_volume_whose_marks_were_stripped_too_is_made_anew_only_through_the_others(formed: Stage) -> None:
    """It was made by us, it is blank, nothing says otherwise: it joins the others, and founds nothing."""
    host, volume = formed.holder_of("b"), formed.volume_of("b")
    formed.kill(host)
    formed.platters[volume].wipe()
    formed.platters[volume].carried_data = False  # the test itself put a new disk there
    formed.change_tags(volume, mark="", epoch=0, last_holder="")
    formed.replace_machine(host)
    formed.until(formed.healthy, within=MINUTE)
    assert formed.etcd["main"].histories == [1]
    assert formed.write()


def test_two_volumes_for_one_member_are_both_named_and_neither_is_formatted(formed: Stage) -> None:
    """Somebody made a second one by hand."""
    like = formed.like("main", "a")
    extra = formed.cloud.create_founders([replace(like, member="a", zone="local")])
    second = replace(extra[0], id="vol-by-hand", request="")
    formed.cloud._keep(second)
    formed.boot("master-a")
    formed.run(MINUTE)
    assert formed.platters["vol-by-hand"].formats == []
    assert len(formed.serving()) == 3
    assert formed.write()


def test_two_volumes_for_one_member_where_the_old_one_is_blank_wait_for_a_person(formed: Stage) -> None:
    host, volume = formed.holder_of("a"), formed.volume_of("a")
    formed.kill(host)
    formed.platters[volume].wipe()
    formed.platters[volume].carried_data = False
    formed.change_tags(volume, mark="", epoch=0, last_holder="")
    formed.cloud._keep(replace(formed.like("main", "a"), id="vol-by-hand"))
    formed.declare_dead(host)
    formed.boot("master-a"), formed.boot("master-a")
    formed.run(MINUTE)
    sentences = " ".join(each.sentence for each in formed.hosts.values() if each.alive)
    assert f"main/a has several volumes: {volume}, vol-by-hand" in sentences
    assert formed.platters[volume].formats == [formed.platters[volume].formats[0]]
    assert formed.platters["vol-by-hand"].formats == []


def test_a_copy_of_a_volume_that_carries_its_tags_is_refused(formed: Stage) -> None:
    """The disk says which volume it is."""
    original = formed.platters[formed.volume_of("a")]
    assert original.folder is not None
    copy = formed.platters["vol-copy"]
    copy.format("11111111-1111-4111-8111-111111111111")
    assert copy.folder is not None
    shutil.copytree(original.folder, copy.folder, dirs_exist_ok=True)
    formed.cloud._keep(
        replace(formed.cloud.find(original.volume), id="vol-copy", attached_to=None, last_holder="", epoch=0)
    )
    new = formed.boot("master-a")
    formed.run(MINUTE)
    assert "the disk says volume" in new.sentence
    assert new.links() == {}
    assert formed.healthy()


@pytest.mark.parametrize("text", [b"", b"{", b'{"cluster": "other"}'])
def test_a_volume_whose_identity_cannot_be_read_is_refused_and_not_written(formed: Stage, text: bytes) -> None:
    host, volume = formed.holder_of("a"), formed.volume_of("a")
    formed.kill(host)
    folder = formed.platters[volume].folder
    assert folder is not None
    kept = (folder / FILE).read_bytes()
    (folder / FILE).write_bytes(text)
    new = formed.replace_machine(host)
    formed.run(30)
    assert "cannot be read" in new.sentence
    assert (folder / FILE).read_bytes() == text
    assert new.links() == {}
    (folder / FILE).write_bytes(kept)
    formed.until(formed.healthy, within=MINUTE)


def test_a_volume_of_the_original_is_refused_with_the_way_to_adopt_it(stage: Stage) -> None:
    platter = stage.platters["vol-00000001"]
    platter.format("22222222-2222-4222-8222-222222222222")
    assert platter.folder is not None
    (platter.folder / "k8s.io/manifests").mkdir(parents=True)
    (platter.folder / "var/etcd/data/member/wal").mkdir(parents=True)
    (platter.folder / "var/etcd/data/member/wal/0-0.wal").touch()
    stage.boot_all()
    stage.run(30)
    notes = [note for host in stage.hosts.values() if host.round_ for note in host.round_.report.person]
    assert [note.hint for note in notes] == ["protokube etcd adopt vol-00000001"]


def test_a_strange_file_system_is_mounted_and_left_alone(stage: Stage) -> None:
    platter = stage.platters["vol-00000001"]
    platter.format("33333333-3333-4333-8333-333333333333")
    assert platter.folder is not None
    (platter.folder / "pgdata").mkdir()
    stage.boot_all()
    stage.run(30)
    holder = stage.hosts[stage.holder("vol-00000001") or ""]
    assert "has no identity and is not proven blank" in holder.sentence
    assert sorted(each.name for each in platter.folder.iterdir()) == ["lost+found", "pgdata"]
    assert platter.content is Content.EXT4


def test_a_machine_that_ends_up_with_two_volumes_of_one_etcd_cluster_serves_one_of_them(formed: Stage) -> None:
    host, first = formed.holder_of("a"), formed.volume_of("a")
    second = attach_by_hand(formed, "b", host)
    formed.run(30)

    starts = formed.etcd["main"].starts
    formed.run(MINUTE)
    assert formed.etcd["main"].starts == starts
    assert host.links() == {"etcd.manifest": first}
    assert f"{second} is attached here beside {first}" in host.sentence
    assert formed.write()


def test_a_machine_takes_nothing_beside_a_mounted_volume_that_the_provider_denies(formed: Stage) -> None:
    """It serves on until that is sure; another volume would only stop a member that runs."""
    host, first = formed.holder_of("a"), formed.volume_of("a")
    formed.hide(first)
    formed.round(host)
    power_off(formed, "b")
    for _ in range(3):
        formed.round(host)
        formed.clock.advance(1)
        assert formed.holder(formed.volume_of("b")) is None
        assert host.links() == {"etcd.manifest": first}
        assert formed.write(), "a and c are a majority"

    formed.show(first)
    formed.run(30)
    assert host.links() == {"etcd.manifest": first}
    boot(formed, "b")
    formed.until(formed.healthy)


def test_a_volume_that_the_provider_denies_is_let_go_once_that_is_sure_and_taken_again_when_it_is_back(
    formed: Stage,
) -> None:
    host, volume = formed.holder_of("a"), formed.volume_of("a")
    formed.hide(volume)
    formed.round(host)
    assert host.links() != {}, "one word is not enough"
    for _ in range(60):  # only its rounds: the elected master may be as sure in the same moment, and make another one
        for each in formed.hosts.values():
            formed.beat(each)
        if formed.round(host) and host.links() == {}:
            break
        formed.clock.advance(1.0)
    assert host.links() == {}
    formed.show(volume)
    formed.until(lambda: len(formed.serving()) == 3, within=30)
    formed.run(MINUTE)
    assert formed.serving()["a"] is host
    assert host.links() == {"etcd.manifest": volume}, "a replacement that is blank is not used"


def ids(stage: Stage) -> set[int]:
    return {each.id for each in stage.etcd["main"].led()[0].db.state.members}


def test_data_that_vanishes_under_a_running_etcd_is_made_anew_only_after_that_etcd_is_gone(formed: Stage) -> None:
    """However long that takes, and however often the agent is restarted meanwhile: it has nothing to remember."""
    host, model = formed.holder_of("a"), formed.etcd["main"]
    folder = formed.platters[formed.volume_of("a")].folder
    assert folder is not None
    old, running = ids(formed), model.processes[host.id]
    model.lingering.add(host.id)
    shutil.rmtree(folder / "var/etcd/data/member")

    for _ in range(20):
        formed.run(6)
        formed.agent_dies(host)
    assert model.processes[host.id] is running
    assert host.links() == {}
    assert "its volume is still in use, so its etcd may run: etcd (pid 12) has open its log" in host.sentence
    assert ids(formed) == old
    model.lingering.clear()
    formed.until(lambda: model.processes.get(host.id) is not running and formed.healthy(), within=MINUTE)
    assert len(old - ids(formed)) == 1
    assert model.removed_running == []
    assert formed.write()


def test_a_member_whose_data_is_gone_is_not_removed_while_nobody_can_tell_whether_it_runs(formed: Stage) -> None:
    host, old = formed.holder_of("a"), ids(formed)
    folder = formed.platters[formed.volume_of("a")].folder
    assert folder is not None
    host.disks.blind = True
    shutil.rmtree(folder / "var/etcd/data/member")
    formed.run(2 * MINUTE)
    assert ids(formed) == old
    assert "processes are hidden" in host.sentence
    host.disks.blind = False
    formed.until(formed.healthy, within=MINUTE)
    assert len(old - ids(formed)) == 1


def test_a_member_whose_link_went_while_there_was_no_quorum_is_not_removed_before_its_etcd_is_gone(
    formed: Stage,
) -> None:
    """Its data vanishes without a quorum: the link goes, and the quorum comes back before that etcd has ended."""
    host, model = formed.holder_of("a"), formed.etcd["main"]
    others = [formed.holder_of(each) for each in ("b", "c")]
    folder = formed.platters[formed.volume_of("a")].folder
    assert folder is not None
    old = ids(formed)
    model.lingering.add(host.id)
    for each in others:
        formed.freeze(each)
    shutil.rmtree(folder / "var/etcd/data/member")
    formed.run(20)
    assert host.links() == {}
    for each in others:
        formed.thaw(each)
    formed.run(MINUTE)
    assert ids(formed) == old
    assert model.removed_running == []
    model.lingering.clear()
    formed.until(lambda: ids(formed) != old and formed.healthy(), within=MINUTE)


def test_what_is_left_of_old_data_is_never_moved_over_what_was_kept_before(formed: Stage) -> None:
    """It happened twice before, and a person deleted the first of the two."""
    folder = formed.platters[formed.volume_of("a")].folder
    assert folder is not None
    (folder / "var/etcd/data.aside-2/member").mkdir(parents=True)
    host = formed.holder_of("a")
    formed.kill(host)
    shutil.rmtree(folder / "var/etcd/data/member/wal")
    formed.replace_machine(host)
    formed.until(formed.healthy, within=MINUTE)
    assert sorted(each.name for each in (folder / "var/etcd").iterdir()) == ["data", "data.aside-1", "data.aside-2"]
    assert formed.write()
