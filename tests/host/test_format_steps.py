"""An agent killed after any single step of taking a volume: the next one finishes what it began, and nothing else.

Real rounds of real agents on real loop devices, in a mount namespace that is their place. Every step between an
untouched disk and a linked manifest has its turn. Then disks of others, or that are not what they should be: they are
never formatted, and the report says why.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from builders.signatures import xfs
from builders.volumes import check_file_system
from clusters.disks import digest, lying, patch, wait_until
from clusters.format_steps import SIZE, Life, Place, Task, made_by
from protokube.host.child.writing import FILE as WRITE_TEST
from protokube.local.disk import loops, mounts

KILLED = -9
STEPS = (
    "before attach",
    "after attach",
    "Probe begun",
    "Probe ended: Probed",
    "before write_mark formatting",
    "after write_mark formatting",
    "Format begun",
    "Format ended: Done",
    "MountVolume begun",
    "write draft of protokube.json on the volume",
    "rename protokube.json on the volume",
    "before write_epoch",
    "after write_epoch",
    "before write_mark forming",
    "after write_mark forming",
    "write draft of the note that it is verified",
    "rename the note that it is verified",
    "before apply",
    "after apply",
    "write draft of etcd.yaml",
    "rename etcd.yaml",
    "write draft of etcd.manifest on the volume",
    "rename etcd.manifest on the volume",
    "symlink draft of etcd.manifest",
    "rename etcd.manifest",
)
"""All there are, in their order, from an untouched disk to a manifest that the kubelet sees; one test makes sure."""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    made = Place(tmp_path_factory.mktemp("m"))
    with made.cloud:
        try:
            yield made
        finally:
            made.close()
            bound = loops.bound_under(made.cloud.paths.disks)
            wait_until(lambda: not mounts.who_has({each.number for each in bound}), "a disk stays mounted")


def is_taken_as_it_should_be(task: Task, life: Life, *, most: int = 2) -> None:
    """Formatted, with an identity, an epoch and a mark that all say the same; and its manifest is linked."""
    assert life.code == 0
    assert life.told["report"]["broken"] == []
    assert life.told["report"]["needsAPerson"] == [], life.person
    (member,) = life.told["members"]
    assert (member["doing"], member["linked"]) == ("founding", True)
    listed, identity = task.listed(), task.identity()
    assert listed.mark == "forming"
    assert listed.epoch == identity.epoch
    assert 1 <= identity.epoch <= most, "it rises once for each life that ended before the mount was noted as verified"
    assert listed.last_holder == identity.holder == task.name
    assert (identity.etcd_cluster, identity.member, identity.volume) == (task.etcd.key, "a", task.volume.id)
    inside = Path(f"/proc/{task.place.program.pid}/root{task.point}")
    drafts = [each.name for each in inside.iterdir() if each.name.startswith(".") and each.name != WRITE_TEST]
    assert drafts == []


def test_an_agent_that_lives_goes_through_these_steps_and_formats_once(place: Place) -> None:
    task = place.new_volume()

    life = task.agent()

    is_taken_as_it_should_be(task, life, most=1)
    assert tuple(dict.fromkeys(life.steps)) == STEPS
    assert life.formats == 1


@pytest.mark.parametrize("step", STEPS)
def test_killed_at_any_step_the_next_agent_finishes_the_right_thing(place: Place, step: str) -> None:
    task = place.new_volume()

    killed = task.agent(kill=step)
    assert killed.code == KILLED
    assert killed.steps[-1] == step
    task.until_idle()
    seed = made_by(task.image)
    life = task.agent()

    is_taken_as_it_should_be(task, life)
    if step != "Format begun":  # killed within mkfs, a format is begun once more
        assert life.formats == (0 if STEPS.index(step) > STEPS.index("Format begun") else 1)
        assert seed in (None, made_by(task.image)), "what was formatted once is never formatted again"
        assert (seed is None) == (life.formats == 1)


@pytest.mark.parametrize("delay", [0.0, 0.05, 0.1, 0.15, 0.2, 0.3])
def test_killed_within_mkfs_with_all_it_had_started_the_next_agent_makes_the_disk_whole(
    place: Place, delay: float
) -> None:
    """As when the power fails: the child that writes the file system dies in the same moment."""
    task = place.new_volume()

    killed = task.agent(kill="Format begun", children=True, delay=delay)
    assert killed.code == KILLED
    task.until_idle()
    seed = made_by(task.image)
    life = task.agent()

    is_taken_as_it_should_be(task, life)
    assert seed is None or life.formats == 0 or seed == made_by(task.image)


def test_killed_again_and_again_it_still_comes_to_its_end_with_one_format(place: Place) -> None:
    """One life for each step, all on one volume."""
    task = place.new_volume()
    formats, seeds = 0, set()
    for step in STEPS:
        life = task.agent(kill=step)
        assert life.code in (0, KILLED), "who has nothing to do at that step comes to its end"
        task.until_idle()
        formats += life.formats
        seeds.add(made_by(task.image))

    life = task.agent()

    is_taken_as_it_should_be(task, life, most=len(STEPS))
    assert formats + life.formats <= 2, "one, and one more because one was killed within mkfs"
    assert len(seeds - {None}) <= 2
    unmount = ["nsenter", f"--target={place.program.pid}", "--mount", "umount", str(task.point)]
    subprocess.run(unmount, check=True, capture_output=True)
    assert check_file_system(task.image) == ""


def never_formatted(task: Task, before: str, mark: str = "") -> None:
    assert digest(task.image) == before
    assert task.listed().mark == mark


REFUSED = {
    "an xfs with a database": (xfs(SIZE), "it is not blank: an xfs file system labelled"),
    "a partition table": ({440: b"\x01\x02\x03\x04", 446: bytes.fromhex("00 0002 00 83 030303 00080000 00f80000"),
                           510: b"\x55\xaa"}, "it is not blank"),
    "data in the first block": ({100: b"x"}, "it has no file system, but it is not blank"),
    "data in the middle": ({SIZE // 2 + 10: b"x"}, "it has no file system, but it is not blank"),
    "data only at the end": ({-1: b"x"}, "it has no file system, but it is not blank"),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_a_disk_with_content_is_never_formatted_and_the_report_says_what_is_on_it(place: Place, what: str) -> None:
    content, said = REFUSED[what]
    task = place.new_volume()
    patch(task.image, content)
    before = digest(task.image)

    life = task.agent()

    assert f"refusing to format {task.volume.id}: {said}" in life.person
    assert "it was not touched" in life.person
    assert "Format begun" not in life.steps
    never_formatted(task, before)


def test_an_ext4_of_somebody_else_is_looked_at_and_left_alone(place: Place) -> None:
    task = place.new_volume()
    subprocess.run(["mkfs.ext4", "-q", "-F", task.image], check=True)
    seed = made_by(task.image)

    life = task.agent()

    assert f"{task.volume.id} has no identity and is not proven blank" in life.person
    assert "Format begun" not in life.steps
    assert made_by(task.image) == seed
    assert task.listed().mark == ""
    assert task.listed().epoch == 0


def test_a_disk_that_cannot_be_read_is_never_formatted(place: Place, tmp_path: Path) -> None:
    task = place.new_volume()
    copy = tmp_path / task.image.name
    copy.write_bytes(b"")
    os.truncate(copy, SIZE)
    with lying(copy) as liar:
        liar.tell("error", SIZE - 4096, SIZE)
        before = digest(copy)

        life = task.agent(device={"path": str(liar.block.path), "serial": task.volume.id})

        assert f"{task.volume.id} cannot be read" in life.person
        assert "Format begun" not in life.steps
        assert liar.tell("writes") == "0"
        assert digest(copy) == before
        assert task.listed().mark == ""


def test_a_disk_of_another_size_is_never_formatted(place: Place) -> None:
    task = place.new_volume()
    os.truncate(task.image, SIZE // 2)
    before = digest(task.image)

    life = task.agent()

    assert f"has {SIZE // 2} bytes, {task.volume.id} has {SIZE}" in life.person
    assert life.steps == ["before attach", "after attach"], "it is not even read"
    never_formatted(task, before)


def test_a_disk_with_another_serial_is_never_formatted(place: Place, tmp_path: Path) -> None:
    """The name leads to a disk that is not the volume, and no disk on this machine is."""
    task, other = place.new_volume(), place.new_volume()
    assert other.agent(kill="after attach").code == KILLED
    wrong = loops.bound(other.image)[0].path
    before, others = digest(task.image), digest(other.image)

    life = task.agent(device={"path": str(wrong), "serial": "vol-nowhere"})

    assert f"{wrong} is not {task.volume.id}: its serial is {other.volume.id}" in life.person
    never_formatted(task, before)
    never_formatted(other, others)


def test_a_disk_that_appears_late_is_waited_for_and_then_formatted_once(place: Place) -> None:
    task = place.new_volume()
    late = place.folder / "late"

    waiting = task.agent(seconds=3, device={"path": str(late)})
    assert waiting.code == 0
    assert f"{task.volume.id} is attached, its device {late} is not there yet" in waiting.waits
    assert "Probe begun" not in waiting.steps
    late.symlink_to(loops.bound(task.image)[0].path)
    life = task.agent(device={"path": str(late)})

    is_taken_as_it_should_be(task, life)
    assert life.formats == 1


@pytest.mark.parametrize("mark", ["forming", "formed"])
def test_a_volume_that_was_used_and_turns_up_blank_is_never_formatted(place: Place, mark: str) -> None:
    task = place.new_volume()
    assert task.agent(kill="after attach").code == KILLED
    place.cloud.client(task.name).call("write_mark", volume=task.volume.id, mark=mark)
    before = digest(task.image)

    life = task.agent()

    assert f"{task.volume.id} was marked {mark!r} and turns up blank" in life.person
    assert "was lost outside of us" in life.person
    assert "Format begun" not in life.steps
    never_formatted(task, before, mark)


def test_a_volume_that_was_held_before_and_lost_its_mark_is_never_formatted(place: Place) -> None:
    task = place.new_volume()
    assert task.agent(kill="after attach").code == KILLED
    place.cloud.change_tags(task.volume.id, epoch=3, last_holder="somebody")
    before = digest(task.image)

    life = task.agent()

    assert f"{task.volume.id} was held before (epoch 3) and turns up blank" in life.person
    never_formatted(task, before)


def test_a_volume_that_no_record_names_is_never_formatted(place: Place) -> None:
    task = place.new_volume(recorded=False)
    before = digest(task.image)

    life = task.agent()

    assert f"{task.volume.id} is not a volume that we made for {task.etcd.key}/a" in life.person
    never_formatted(task, before)
