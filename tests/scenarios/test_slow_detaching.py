"""A cloud that takes its time to detach a volume: nobody gets it before it is free, and everybody says why not."""

from __future__ import annotations

import pytest

from clusters.scenario.acts import waits
from clusters.scenario.cluster import Stage
from protokube.host import Content
from protokube.members.generation import encode
from protokube.providers.volumes import AttachmentState
from protokube.store import layout

MINUTE = 60.0


def test_a_volume_that_is_being_detached_is_waited_for_and_taken_once_it_is_free(formed: Stage) -> None:
    old, volume = formed.holder_of("b"), formed.volume_of("b")
    formed.cloud.detaches_slowly = True
    formed.kill(old)
    new = formed.replace_machine(old)
    attaches = formed.cloud.calls["attach"]
    formed.run(MINUTE)

    assert formed.cloud.find(volume).state is AttachmentState.DETACHING
    assert f"cannot be attached yet: it is being detached from {old.id}" in waits(formed)
    assert formed.cloud.calls["attach"] == attaches, "nobody tries it"
    assert new.links() == {}
    assert formed.write(), "two of three go on"

    formed.finish_detaching()
    formed.until(formed.healthy, within=15)
    assert formed.holder_of("b") is new
    assert formed.volume_of("b") == volume
    assert not any("detached" in each for each in waits(formed))


def test_only_a_machine_that_would_take_it_waits_for_it(formed: Stage) -> None:
    old = formed.holder_of("b")
    formed.cloud.detaches_slowly = True
    formed.kill(old)
    formed.declare_dead(old)
    formed.run(MINUTE)

    assert not any("detached" in each for each in waits(formed)), "all others hold a member"


def test_of_two_that_wait_for_one_volume_one_gets_it(formed: Stage) -> None:
    old = formed.holder_of("b")
    formed.cloud.detaches_slowly = True
    formed.kill(old)
    new = [formed.replace_machine(old), formed.boot(old.machine.group)]
    formed.run(MINUTE)
    assert len([each for each in new if "it is being detached" in each.sentence]) == 2

    formed.finish_detaching()
    formed.until(formed.healthy, within=15)
    assert sum(bool(each.links()) for each in new) == 1


def test_a_machine_that_wakes_up_while_its_volume_is_being_detached_serves_it_until_it_is_cut_off(
    formed: Stage,
) -> None:
    """No other machine can have it yet; and once it is detached, its former holder cannot reach it."""
    old = formed.holder_of("b")
    formed.freeze(old)
    formed.cloud.detaches_slowly = True
    new = formed.replace_machine(old)
    formed.run(MINUTE)
    formed.thaw(old)
    formed.run(MINUTE)
    assert formed.holder_of("b") is old
    assert new.links() == {}

    formed.finish_detaching()
    formed.until(lambda: formed.healthy() and old.links() == {}, within=15)
    assert formed.holder_of("b") is new


def test_a_volume_that_a_machine_gives_away_is_not_mounted_again_while_it_is_being_detached(formed: Stage) -> None:
    host, volume = formed.holder_of("a"), formed.volume_of("a")
    formed.reboot(host)
    path = layout.etcd_generation(formed.wanted.cluster, "main")
    stored = formed.store.inner.read(path)
    formed.store.inner.replace(path, encode(formed.generation().with_superseded(volume, "a")), stored.version)
    formed.cloud.detaches_slowly = True
    formed.run(MINUTE)

    assert formed.cloud.find(volume).state is AttachmentState.DETACHING
    assert f"{volume} is being detached from this machine" in waits(formed)
    assert (host.disks.table, formed.cloud.calls["release"]) == ({}, 1)
    formed.finish_detaching()
    formed.run(MINUTE)
    assert formed.cloud.find(volume).is_free


@pytest.mark.parametrize("state", [AttachmentState.DETACHING, AttachmentState.BUSY])
def test_a_blank_volume_of_ours_is_not_formatted_while_it_is_detached_or_busy(
    stage: Stage, state: AttachmentState
) -> None:
    host, volume = stage.boot("master-a"), stage.volume_of("a")
    stage.change_tags(volume, attached_to=host.id, state=state)
    stage.run(MINUTE)

    assert host.disks.table == {}
    assert stage.platters[volume].content is Content.BLANK
    assert stage.cloud.find(volume).mark == ""
    assert f"{volume} is b" in host.sentence

    stage.change_tags(volume, state=AttachmentState.SETTLED)
    stage.boot("master-b")
    stage.boot("master-c")
    stage.until(stage.healthy)
    assert stage.holder_of("a") is host


@pytest.mark.parametrize("state", [AttachmentState.SETTLED, AttachmentState.ATTACHING])
def test_a_blank_volume_of_ours_is_formatted_once_its_device_is_there(stage: Stage, state: AttachmentState) -> None:
    stage.boot_all()
    stage.change_tags(stage.volume_of("a"), attached_to=next(iter(stage.hosts)), state=state)
    stage.until(lambda: len(stage.serving()) == 3)


def test_a_volume_that_becomes_busy_between_its_mark_and_its_format_is_not_formatted(stage: Stage) -> None:
    host, volume = stage.boot("master-a"), stage.volume_of("a")
    host.fuse.set(1, lambda: stage.change_tags(volume, state=AttachmentState.BUSY), "cloud.write_mark")
    stage.run(MINUTE)

    assert stage.cloud.find(volume).mark.startswith("formatting:")
    assert (stage.platters[volume].content, host.disks.table) == (Content.BLANK, {})


@pytest.mark.parametrize("state", [AttachmentState.DETACHING, AttachmentState.BUSY])
def test_a_volume_with_data_is_not_mounted_while_it_is_detached_or_busy(formed: Stage, state: AttachmentState) -> None:
    host, volume = formed.holder_of("a"), formed.volume_of("a")
    formed.reboot(host)
    formed.change_tags(volume, state=state)
    formed.run(MINUTE)
    assert (host.disks.table, host.links()) == ({}, {})
    assert any(each.startswith(f"{volume} is b") for each in waits(formed))

    formed.change_tags(volume, state=AttachmentState.SETTLED)
    formed.until(formed.healthy, within=15)
    assert formed.holder_of("a") is host


@pytest.mark.parametrize(
    ("state", "why"),
    [(AttachmentState.DETACHING, "being detached from this machine"), (AttachmentState.BUSY, "busy")],
)
def test_a_served_volume_that_is_detached_or_busy_is_served_on_with_a_warning(
    formed: Stage, state: AttachmentState, why: str
) -> None:
    host, volume, starts = formed.holder_of("a"), formed.volume_of("a"), formed.etcd["main"].starts
    formed.change_tags(volume, state=state)
    formed.run(MINUTE)

    assert host.links() == {"etcd.manifest": volume}
    assert formed.etcd["main"].starts == starts
    assert formed.write()
    assert host.round_ is not None
    warned = [(each.about, each.text) for each in host.round_.report.warnings]
    assert ("main/a", f"{volume} is {why} according to its provider; what uses it goes on") in warned
