"""What is different where disks are bolted to their machines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from builders.volumes import a_volume
from conformance.volumes.worlds import FileWorld
from protokube.errors import InvalidRequest, Refused
from protokube.members.generation import is_unformed, is_untouched
from protokube.providers.volumes import Lock, VolumeTaken
from protokube.providers.volumes.file import FileVolumes


@pytest.fixture
def rack(tmp_path: Path) -> FileWorld:
    return FileWorld(tmp_path)


def test_a_disk_belongs_to_its_machine_whether_anybody_attached_it_or_not(rack: FileWorld) -> None:
    volumes = rack.seen_from("rack-a")

    assert volumes.lock is Lock.PIN
    assert [volume.attached_to for volume in volumes.list_volumes()] == ["rack-a", "rack-b", "rack-c"]
    with pytest.raises(VolumeTaken, match="bolted to rack-b"):
        volumes.attach("Sb")


def test_nothing_is_known_about_the_marks_of_other_machines_disks_and_that_permits_nothing(rack: FileWorld) -> None:
    rack.seen_from("rack-b").write_mark("Sb", "formed")

    mine, theirs, _ = rack.seen_from("rack-a").list_volumes()

    assert (mine.mark, theirs.mark) == ("", "unknown")
    assert is_untouched(mine.mark)
    assert not is_untouched(theirs.mark)
    assert not is_unformed(theirs.mark)


def test_only_its_own_machine_writes_about_a_disk(rack: FileWorld) -> None:
    volumes = rack.seen_from("rack-a")

    with pytest.raises(Refused, match="not ours"):
        volumes.write_mark("Sb", "formed")
    with pytest.raises(Refused, match="not ours"):
        volumes.write_epoch("Sb", 4, "rack-a", generation="g1")
    with pytest.raises(Refused, match="not ours"):
        volumes.release("Sb")


def test_a_bolted_disk_is_not_given_away(rack: FileWorld) -> None:
    volumes = rack.seen_from("rack-a")
    before = volumes.list_volumes()

    with pytest.raises(Refused, match="bolted to rack-a"):
        volumes.release("Sa")

    assert volumes.list_volumes() == before


def test_what_a_former_version_wrote_about_a_disk_is_read_and_its_epoch_counts(rack: FileWorld) -> None:
    rack.seen_from("rack-a").write_mark("Sa", "formed")
    (rack.folder / "rack-a" / "Sa.json").write_text('{"mark": "formed", "epoch": 4, "last_holder": "rack-a"}')

    volume = rack.seen_from("rack-a").list_volumes()[0]

    assert (volume.epoch, volume.epoch_of, volume.epoch_for("g1")) == (4, "", 4)
    rack.seen_from("rack-a").write_epoch("Sa", 3, "rack-a", generation="g1")
    assert rack.seen_from("rack-a").list_volumes()[0].epoch == 4


def test_what_a_machine_wrote_outlives_its_agent(rack: FileWorld) -> None:
    rack.seen_from("rack-a").write_mark("Sa", "forming")
    rack.seen_from("rack-a").write_epoch("Sa", 3, "rack-a", generation="g1")

    again = rack.seen_from("rack-a").list_volumes()[0]

    assert (again.mark, again.epoch, again.last_holder) == ("forming", 3, "rack-a")


@pytest.mark.parametrize("content", ["", "{", '{"mark": "formed"}', '{"mark": 1, "epoch": 0, "last_holder": ""}', "[]"])
def test_a_mark_that_cannot_be_read_permits_nothing_and_is_not_written_over(rack: FileWorld, content: str) -> None:
    kept = rack.folder / "rack-a" / "Sa.json"
    kept.parent.mkdir()
    kept.write_text(content)
    volumes = rack.seen_from("rack-a")

    assert volumes.list_volumes()[0].mark == "unknown"
    with pytest.raises(Refused, match=r"Sa\.json cannot be read"):
        volumes.write_mark("Sa", "forming")
    with pytest.raises(Refused, match=r"Sa\.json cannot be read"):
        volumes.write_epoch("Sa", 9, "rack-a", generation="g1")
    assert kept.read_text() == content


def test_half_a_write_is_never_read(rack: FileWorld) -> None:
    volumes = rack.seen_from("rack-a")
    volumes.write_mark("Sa", "formed")
    (rack.folder / "rack-a" / ".Sa.json.new").write_text('{"mark": "for')

    assert volumes.list_volumes()[0].mark == "formed"
    volumes.write_epoch("Sa", 2, "rack-a", generation="g1")
    assert json.loads((rack.folder / "rack-a" / "Sa.json").read_text())["epoch"] == 2


def test_a_disk_cannot_be_made_and_the_error_says_who_can(rack: FileWorld) -> None:
    with pytest.raises(Refused, match="has to be built in") as caught:
        rack.seen_from("rack-a").create_volume(a_volume(), request="r")

    assert "blank: true" in caught.value.hint


def test_a_disk_that_was_exchanged_is_seen_without_a_restart(rack: FileWorld) -> None:
    volumes = rack.seen_from("rack-a")

    rack.inventory.write_text(rack.inventory.read_text().replace("serial: Sa", "serial: Snew"))

    assert [volume.id for volume in volumes.list_volumes()] == ["Sb", "Sc", "Snew"]


def test_a_disk_is_empty_only_if_the_operator_says_so(rack: FileWorld) -> None:
    rack.inventory.write_text(rack.inventory.read_text().replace("member: a, blank: true", "member: a"))

    assert [volume.made_empty for volume in rack.seen_from("rack-a").list_volumes()] == [False, True, True]


def test_an_inventory_that_went_bad_is_for_a_person_and_one_that_never_was_good_for_the_user(rack: FileWorld) -> None:
    volumes = rack.seen_from("rack-a")
    rack.inventory.write_text("machines: []\n")

    with pytest.raises(Refused, match="problems in the inventory"):
        volumes.list_volumes()
    with pytest.raises(InvalidRequest, match="problems in the inventory"):
        FileVolumes(rack.inventory, "rack-a", rack.folder)
