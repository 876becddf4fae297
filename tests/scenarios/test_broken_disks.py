"""Disks that break while they serve: stopped, checked, mounted anew, given away once; then a person is asked."""

from __future__ import annotations

import pytest

from clusters.scenario.cluster import Stage
from clusters.scenario.host import Host
from protokube.host import MountVolume, WriteTest

HOUR = 3600.0


def turn_read_only(stage: Stage, volume: str, option: str = "emergency_ro") -> None:
    stage.platters[volume].option = option


def pass_hour(stage: Stage) -> None:
    """Nobody does anything meanwhile; then rounds go on."""
    stage.clock.advance(HOUR)
    stage.run(60)


def persons(stage: Stage) -> list[str]:
    return [each.text for host in stage.hosts.values() if host.round_ for each in host.round_.report.person]


def phase_of(host: Host, volume: str) -> str:
    return next(str(each["phase"]) for each in host.status["volumes"] if each["id"] == volume)


@pytest.mark.parametrize("option", ["ro", "emergency_ro", "shutdown", "abort"])
def test_a_file_system_that_turned_read_only_is_mounted_anew_and_its_member_goes_on(formed: Stage, option: str) -> None:
    volume, host = formed.volume_of("b"), formed.holder_of("b")
    epoch, starts = formed.identity(volume).epoch, formed.etcd["main"].starts
    assert formed.write()

    turn_read_only(formed, volume, option)
    formed.until(lambda: formed.identity(volume).epoch == epoch + 1)
    formed.until(formed.all_healthy)

    assert formed.holder(volume) == host.id
    assert formed.etcd["main"].starts == starts + 1
    assert not persons(formed)
    assert formed.write()


def test_counted_errors_of_ext4_are_enough(formed: Stage) -> None:
    volume = formed.volume_of("b")
    epoch = formed.identity(volume).epoch

    formed.platters[volume].errors = 2

    formed.until(lambda: formed.identity(volume).epoch == epoch + 1)
    formed.until(formed.all_healthy)


def test_a_disk_that_takes_no_writes_and_shows_nothing_is_found_by_a_write(formed: Stage) -> None:
    volume, host = formed.volume_of("b"), formed.holder_of("b")
    formed.run(61)
    formed.platters[volume].unwritable = "input/output error"

    formed.until(lambda: volume not in host.disks.table)
    formed.run(20)
    assert f"{volume} cannot be read: input/output error" in host.sentence
    assert not persons(formed), "it may end by itself"
    formed.platters[volume].unwritable = ""

    formed.until(formed.all_healthy)
    assert not persons(formed)


def test_a_disk_that_breaks_on_one_machine_is_given_to_another_one(formed: Stage) -> None:
    volume, first = formed.volume_of("b"), formed.holder_of("b")
    formed.platters[volume].broken_on.add(first.id)
    formed.boot("master-b")

    formed.until(lambda: formed.holder(volume) not in (None, first.id), 600)

    formed.until(formed.healthy, 600)
    formed.run(60)
    assert formed.holder(volume) != first.id
    assert not persons(formed)


def test_without_another_machine_it_comes_back_to_the_one_that_gave_it_away(formed: Stage) -> None:
    volume, first = formed.volume_of("b"), formed.holder_of("b")
    formed.platters[volume].broken_on.add(first.id)
    formed.until(lambda: formed.holder(volume) is None, 600)

    formed.platters[volume].broken_on.clear()
    formed.until(formed.all_healthy, 600)

    assert formed.holder(volume) == first.id


def test_a_disk_that_breaks_everywhere_is_refused_and_stays_so(formed: Stage) -> None:
    volume = formed.volume_of("b")
    formed.platters[volume].unwritable = "input/output error"

    formed.until(lambda: any("broke 3 times within an hour" in each for each in persons(formed)), 1200)
    formed.run(30)
    holder = formed.holder_of("b")
    mounts = holder.disks.mounted_times
    reasons = {each for each in persons(formed) if volume in each}
    formed.platters[volume].unwritable = ""
    formed.run(600)

    assert holder.disks.mounted_times == mounts, "it is mounted again although it is refused"
    assert {each for each in persons(formed) if volume in each} == reasons
    assert phase_of(holder, volume) == "broken"
    assert formed.write(), "the other members go on"
    assert formed.volume_of("b") == volume, "a broken disk is not a lost one: none is made in its place"


def test_a_refused_disk_is_tried_again_after_an_hour(formed: Stage) -> None:
    volume = formed.volume_of("b")
    formed.platters[volume].unwritable = "input/output error"
    formed.until(lambda: any("broke 3 times" in each for each in persons(formed)), 1200)

    formed.platters[volume].unwritable = ""
    pass_hour(formed)

    formed.until(formed.all_healthy)


def test_a_file_system_that_only_a_person_may_mend_is_refused_with_what_e2fsck_says(formed: Stage) -> None:
    volume, host = formed.volume_of("b"), formed.holder_of("b")
    host.disks.damaged = "e2fsck could not mend it by itself, it ended with 4: UNEXPECTED INCONSISTENCY"
    turn_read_only(formed, volume)

    formed.until(lambda: any("UNEXPECTED INCONSISTENCY" in each for each in persons(formed)))
    formed.run(300)
    sentences = [each for each in persons(formed) if volume in each]

    assert len(set(sentences)) == 1
    assert phase_of(host, volume) == "broken"
    host.disks.damaged = ""
    formed.until(formed.all_healthy)


def test_a_full_file_system_is_reported_and_its_member_is_not_taken_away(formed: Stage) -> None:
    volume, host = formed.volume_of("b"), formed.holder_of("b")
    epoch = formed.identity(volume).epoch

    formed.platters[volume].free = 0

    formed.until(lambda: any("its file system is full" in each for each in persons(formed)))
    formed.run(120)
    assert volume in host.disks.table
    formed.platters[volume].free = 2**29
    formed.until(formed.all_healthy)
    formed.until(lambda: not persons(formed))
    assert formed.identity(volume).epoch == epoch


def test_a_disk_that_hangs_is_said_to_and_heals_when_it_answers_again(formed: Stage) -> None:
    volume, host = formed.volume_of("b"), formed.holder_of("b")
    formed.platters[volume].hangs = True
    host.disks.stuck = True

    formed.until(lambda: "hangs when it is written" in host.sentence, 600)
    assert volume in host.disks.table, "it was unmounted although it hangs"
    formed.platters[volume].hangs = host.disks.stuck = False

    formed.until(formed.all_healthy, 600)


def test_a_machine_that_stood_still_does_not_take_its_disk_for_a_hanging_one(formed: Stage) -> None:
    volume, host = formed.volume_of("b"), formed.holder_of("b")
    epoch = formed.identity(volume).epoch
    host.disks.seconds = lambda _job: 20.0
    formed.until(lambda: any(isinstance(job, WriteTest) for job in host.disks.jobs), 120)

    formed.freeze(host)
    formed.run(90)
    formed.thaw(host)
    formed.run(120)

    assert formed.identity(volume).epoch == epoch
    assert formed.healthy()


def test_an_agent_that_is_restarted_at_any_moment_counts_a_fault_once(formed: Stage) -> None:
    volume = formed.volume_of("b")
    for _ in range(3):
        turn_read_only(formed, volume)
        host = formed.holder_of("b")
        for _ in range(6):
            formed.run(0.2)
            formed.agent_dies(host)
        formed.until(formed.all_healthy, 600)
        pass_hour(formed)

    assert not persons(formed)


def test_nothing_is_mounted_anew_before_the_fault_is_recorded(formed: Stage) -> None:
    volume, host = formed.volume_of("b"), formed.holder_of("b")
    formed.store.down = True
    turn_read_only(formed, volume)

    formed.until(lambda: volume not in host.disks.table)
    formed.run(60)

    assert volume not in host.disks.table
    formed.store.down = False
    formed.until(formed.all_healthy)


def test_a_mount_that_fails_for_a_while_is_tried_again_here(formed: Stage) -> None:
    volume, host = formed.volume_of("b"), formed.holder_of("b")
    host.disks.fails = lambda job: "input/output error" if isinstance(job, MountVolume) else ""
    turn_read_only(formed, volume)
    formed.run(30)
    host.disks.fails = lambda _job: ""

    formed.until(formed.all_healthy)

    assert formed.holder(volume) == host.id
