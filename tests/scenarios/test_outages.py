"""Something outside does not answer: what runs goes on, every master says what it waits for, and all of it recovers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from clusters.scenario.cluster import Stage
from protokube.errors import TryLater
from protokube.host import Unmount

MINUTE = 60.0


def test_the_provider_is_away_for_ten_minutes_and_nothing_stops(formed: Stage) -> None:
    starts = formed.etcd["main"].starts
    formed.cloud.down = True
    formed.run(10 * MINUTE)
    assert len(formed.serving()) == 3
    assert formed.write()
    for host in formed.hosts.values():
        assert "the memory cloud does not answer" in host.sentence
        assert "goes on, since the attachment is the lock" in host.sentence
        assert host.round_ is not None
        assert host.round_.report.bugs == host.round_.report.person == []
    formed.cloud.down = False
    formed.run(15)
    assert [each.sentence for each in formed.hosts.values()] == ["", "", ""]
    assert formed.etcd["main"].starts == starts


def test_an_agent_that_starts_while_the_provider_is_away_leaves_what_serves_alone(formed: Stage) -> None:
    formed.cloud.down = True
    for host in formed.hosts.values():
        formed.agent_dies(host)
    formed.run(2 * MINUTE)
    assert all(each.links() for each in formed.hosts.values())
    assert len(formed.serving()) == 3


def test_a_master_killed_while_the_provider_is_away_is_replaced_when_it_is_back(formed: Stage) -> None:
    old = formed.holder_of("a")
    formed.cloud.down = True
    formed.kill(old)
    formed.run(10 * MINUTE)
    assert formed.write()
    formed.cloud.down = False
    formed.replace_machine(old)
    formed.until(formed.healthy, within=30)


def test_the_zone_is_away_for_ten_minutes_and_a_master_is_killed_meanwhile(formed: Stage) -> None:
    old = formed.holder_of("a")
    formed.dns.unreachable = True
    formed.run(MINUTE)
    assert len(formed.serving()) == 3  # connections outlive the DNS server
    formed.kill(old)
    new = formed.replace_machine(old)
    formed.run(9 * MINUTE)

    assert formed.write()
    assert new.links() == {}  # a member is not started before its peers can find it
    assert "the DNS server of laptop does not answer" in new.sentence
    assert "peers would turn us away" in new.sentence
    assert new.round_ is not None
    assert new.round_.report.bugs == []
    assert formed.dns.addresses("etcd-a.internal.laptop") == (old.address,)

    formed.dns.unreachable = False
    formed.until(formed.healthy, within=30)
    assert formed.dns.addresses("etcd-a.internal.laptop") == (new.address,)
    formed.until(lambda: new.address in formed.dns.addresses("api.internal.laptop"), within=30)
    assert old.address not in formed.dns.addresses("api.internal.laptop")


def test_the_store_is_away_for_ten_minutes_and_nothing_stops(formed: Stage) -> None:
    starts = formed.etcd["main"].starts
    formed.store.down = True
    formed.run(10 * MINUTE)
    assert formed.healthy()
    assert formed.etcd["main"].starts == starts
    old = formed.holder_of("b")
    formed.kill(old)
    formed.replace_machine(old)
    formed.until(lambda: len(formed.serving()) == 3, within=30)  # a member with its data needs no store
    formed.store.down = False
    formed.run(15)
    assert formed.healthy()


def test_a_store_that_is_away_at_the_first_boot_lets_nobody_found_anything(stage: Stage) -> None:
    stage.store.down = True
    stage.boot_all()
    stage.run(2 * MINUTE)
    assert stage.serving() == {}
    assert all(each.formats == [] for each in stage.platters.by_volume.values())
    assert all("cannot reach memory://" in each.sentence for each in stage.hosts.values())
    stage.store.down = False
    stage.until(stage.healthy, within=30)


def test_a_store_that_goes_away_right_before_creation_is_closed_keeps_it_open_and_api_names_unwritten(
    stage: Stage,
) -> None:
    stage.store.read_only = True
    stage.boot_all()
    stage.run(2 * MINUTE)
    assert len(stage.serving()) == 3
    assert stage.generation().open
    assert stage.dns.addresses("api.internal.laptop") == ()
    assert {each.mark for each in stage.cloud.volumes()} == {"forming"}
    stage.store.read_only = False
    stage.until(stage.healthy, within=30)
    stage.until(lambda: stage.dns.addresses("api.internal.laptop"), within=30)


@pytest.mark.parametrize("what", ["cloud", "dns", "store"])
def test_bring_up_with_every_answer_lost_gets_there_all_the_same_once_answers_arrive(stage: Stage, what: str) -> None:
    getattr(stage, what).answers_lost = True
    stage.boot_all()
    stage.run(30)
    assert stage.etcd["main"].histories in ([], [1])
    getattr(stage, what).answers_lost = False
    stage.until(stage.healthy, within=MINUTE)
    assert stage.etcd["main"].histories == [1]


def test_an_attach_whose_answer_was_lost_does_not_lead_to_a_second_volume(stage: Stage) -> None:
    host = stage.boot("master-a")
    stage.cloud.answers_lost = True
    stage.round(host)
    stage.cloud.answers_lost = False
    for _ in range(5):
        stage.round(host)
    assert len([each for each in stage.cloud.volumes() if each.attached_to == host.id]) == 1


def test_one_master_with_a_full_disk_says_so_and_the_others_go_on(formed: Stage) -> None:
    old = formed.holder_of("a")
    formed.kill(old)
    new = formed.replace_machine(old)
    new.disk_full = True
    formed.run(MINUTE)
    assert new.round_ is not None
    assert new.round_.report.bugs == []
    assert "writing the identity on" in new.sentence
    assert "too large" in new.sentence  # the test's way to fill a disk
    assert formed.identity(formed.volume_of("a")).holder == old.id
    assert new.links() == {}
    assert formed.write()
    new.disk_full = False
    formed.until(formed.healthy, within=30)


def test_a_full_disk_at_the_very_first_boot_is_waited_for(stage: Stage) -> None:
    hosts = stage.boot_all()
    hosts[0].disk_full = True
    stage.run(MINUTE)
    assert hosts[0].round_ is not None
    assert hosts[0].round_.report.bugs == []
    assert hosts[0].round_.report.waits
    hosts[0].disk_full = False
    stage.until(stage.healthy, within=MINUTE)


def test_a_disk_that_is_full_while_a_member_serves_stops_nothing(formed: Stage) -> None:
    for host in formed.hosts.values():
        host.disk_full = True
    starts = formed.etcd["main"].starts
    formed.run(2 * MINUTE)
    assert len(formed.serving()) == 3
    for host in formed.hosts.values():
        host.disk_full = False
    formed.run(15)
    assert formed.healthy()
    assert formed.etcd["main"].starts == starts


def test_certificates_that_cannot_be_issued_are_waited_for(stage: Stage) -> None:
    hosts = stage.boot_all()
    for host in hosts:
        host.keys.failing = "the authority etcd-peer-ca cannot be read"
    stage.run(MINUTE)
    assert all("etcd-peer-ca cannot be read" in each.sentence for each in hosts)
    assert all(each.links() == {} for each in hosts)
    for host in hosts:
        host.keys.failing = ""
    stage.until(stage.healthy, within=30)


def test_a_service_manager_that_does_not_answer_is_waited_for(stage: Stage) -> None:
    hosts = stage.boot_all()
    for host in hosts:
        host.units.silent = True
    stage.run(30)
    assert all("the service manager does not answer" in each.sentence for each in hosts)
    for host in hosts:
        host.units.silent = False
    stage.until(stage.healthy, within=30)


def test_a_provider_that_turns_one_master_away_needs_a_person_there_and_nobody_elsewhere(formed: Stage) -> None:
    spare = formed.boot("master-a")
    formed.declare_dead(spare)
    volume = formed.volume_of("a")
    formed.kill(formed.holder_of("a"))
    formed.change_tags(volume, attached_to=None)
    formed.run(MINUTE)
    assert f"{spare.id} was declared dead" in spare.sentence
    assert "NEEDS A PERSON" in spare.sentence
    formed.boot("master-a")
    formed.until(formed.healthy, within=30)


def test_a_volume_that_cannot_be_attached_does_not_keep_the_events_from_being_served(
    make_stage: Callable[..., Stage],
) -> None:
    """A stuck or refused volume of one etcd cluster holds up nobody else's."""
    stage = make_stage(clusters="main events")
    stage.boot_all()
    stage.until(stage.all_healthy)
    host = stage.holder_of("main/a")
    stage.platters[stage.volume_of("main/a")].serial = "somebody else"
    stage.reboot(host)
    stage.until(lambda: stage.healthy("events"), within=75)  # the kubelet gives `main` a minute
    assert "its serial is somebody else" in host.sentence
    assert list(host.links()) == ["etcd-events.manifest"]


def test_a_dead_disk_of_one_etcd_cluster_keeps_nobody_from_serving_the_other(make_stage: Callable[..., Stage]) -> None:
    stage = make_stage(clusters="main events")
    stage.boot_all()
    stage.until(stage.all_healthy)
    host = stage.holder_of("main/a")
    mount = host.disks.table[stage.volume_of("main/a")]
    mount.point.unlink()
    mount.point.symlink_to("x" * 300)  # every read is an error now
    stage.run(30)
    assert "file name too long" in host.sentence.lower()
    assert host.round_ is not None
    assert host.round_.report.bugs == []
    assert stage.healthy("events")


def test_waits_tell_how_long_they_have_lasted_and_start_anew_after_they_ended(formed: Stage) -> None:
    host = next(iter(formed.hosts.values()))
    formed.platters[formed.volume_of("a")].appears = 1e9
    formed.reboot(formed.holder_of("a"))
    formed.run(30)
    late = formed.holder_of("a")
    assert "is not there yet (for 2" in late.sentence or "is not there yet (for 3" in late.sentence
    formed.platters[formed.volume_of("a")].appears = 0
    formed.until(formed.healthy)
    formed.run(10 * MINUTE)
    formed.platters[formed.volume_of("a")].appears = 1e9
    formed.reboot(late)
    formed.run(5)
    assert "is not there yet (for 6" not in late.sentence
    assert host.alive


def test_etcd_without_a_quorum_for_a_while_changes_nothing_but_says_so(formed: Stage) -> None:
    api = formed.dns.addresses("api.internal.laptop")
    two = [formed.holder_of("a"), formed.holder_of("b")]
    for host in two:
        formed.freeze(host)
    formed.run(MINUTE)
    with pytest.raises(TryLater):
        formed.etcd["main"].led()
    third = formed.holder_of("c")
    assert "etcd has no quorum, so nobody writes the names of the API" in third.sentence
    assert formed.dns.addresses("api.internal.laptop") == api
    for host in two:
        formed.thaw(host)
    formed.until(formed.healthy, within=15)


def test_a_volume_that_the_provider_refuses_to_attach_keeps_nobody_from_serving_another(
    make_stage: Callable[..., Stage],
) -> None:
    stage = make_stage(clusters="main events")
    stage.boot_all()
    stage.until(stage.all_healthy)
    host, volume = stage.holder_of("main/a"), stage.volume_of("main/a")
    stage.cloud.refused[volume] = "the volume is impaired"
    stage.change_tags(volume, attached_to=None)
    stage.reboot(host)
    stage.until(lambda: stage.healthy("events"), within=75)
    assert "main/a: NEEDS A PERSON: the volume is impaired" in host.sentence
    stage.cloud.refused.clear()
    stage.until(stage.all_healthy, within=30)


def test_a_file_of_one_etcd_cluster_that_cannot_be_written_keeps_nobody_from_serving_the_other(
    make_stage: Callable[..., Stage],
) -> None:
    stage = make_stage(clusters="main events")
    host = stage.boot_all()[0]
    (host.root / "etc/kubernetes/config/etcd.yaml/in the way").mkdir(parents=True)
    stage.until(lambda: stage.healthy("events"), within=75)
    assert "etcd main/a: waits: is a directory" in host.sentence
    assert host.round_ is not None
    assert host.round_.report.bugs == []
    (host.root / "etc/kubernetes/config/etcd.yaml/in the way").rmdir()
    (host.root / "etc/kubernetes/config/etcd.yaml").rmdir()
    stage.until(stage.all_healthy, within=30)


def test_a_volume_that_cannot_be_unmounted_is_told_and_no_other_is_taken_meanwhile(formed: Stage) -> None:
    host = formed.holder_of("a")
    host.disks.fails = lambda job: "target is busy" if isinstance(job, Unmount) else ""
    formed.freeze(host)
    formed.declare_dead(host)
    formed.change_tags(formed.volume_of("a"), attached_to=None)
    formed.cloud._lives[host.id].declared_dead = False  # it was a false alarm, and the machine may go on
    formed.thaw(host)
    formed.run(MINUTE)
    assert "cannot be unmounted yet, although it is attached to nobody: target is busy" in host.sentence
    assert formed.holder(formed.volume_of("a")) is None
    assert host.links() == {}
    host.disks.fails = lambda _job: ""
    formed.until(formed.healthy, within=30)
    assert formed.holder_of("a") is host


def test_something_else_mounted_in_a_volumes_place_is_not_touched(formed: Stage) -> None:
    host, volume = formed.holder_of("a"), formed.volume_of("a")
    mount = host.disks.table[volume]
    host.disks.table[volume] = replace(mount, number=(259, 99))
    formed.run(15)
    assert f"something else than {volume} is mounted at" in host.sentence
    host.disks.table[volume] = replace(mount, point=host.root / "srv/elsewhere")
    (host.root / "srv").mkdir()
    (host.root / "srv/elsewhere").symlink_to(mount.point.readlink())
    formed.run(15)
    assert f"{volume} is mounted at {host.root}/srv/elsewhere, not at" in host.sentence
    host.disks.table[volume] = mount
    formed.until(formed.healthy, within=30)


@pytest.mark.parametrize("restarted", [False, True], ids=["agent goes on", "agent is restarted"])
def test_no_other_volume_is_taken_while_the_etcd_of_a_lost_one_does_not_end(formed: Stage, restarted: bool) -> None:
    """Its pod has the volume mounted still, and this machine's own table shows nothing any more."""
    host, volume, model = formed.holder_of("a"), formed.volume_of("a"), formed.etcd["main"]
    model.lingering.add(host.id)
    formed.freeze(host)
    formed.replace_machine(host)
    formed.until(lambda: formed.holder(volume) not in (None, host.id))
    formed.cloud._lives[host.id].declared_dead = False  # it was a false alarm, and the machine may go on
    formed.thaw(host)
    formed.until(lambda: volume not in host.disks.table)
    killed = formed.holder_of("b")
    formed.kill(killed)
    formed.declare_dead(killed)
    if restarted:
        formed.agent_dies(host)
    formed.run(MINUTE)

    assert formed.holder(formed.volume_of("b")) is None
    # or the unmount is running just now
    formed.until(lambda: "cannot be unmounted yet, although it is attached to" in host.sentence)
    model.lingering.clear()
    formed.refresh(host)
    formed.until(lambda: formed.holder(formed.volume_of("b")) == host.id)
    formed.until(formed.healthy)
