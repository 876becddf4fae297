"""From blank disks to a cluster that is founded once, and closed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from clusters.scenario.cluster import Stage
from protokube.agent.volume.phases import VolumesCache
from protokube.host import Content, Device, Format, MountVolume, Probe
from protokube.providers.volumes.memory import DEVICES

HOUR = 3600.0


def test_three_masters_come_up_from_blank_founders_and_creation_is_closed(stage: Stage) -> None:
    hosts = stage.boot_all()

    stage.until(stage.healthy, within=15)

    assert {each.id for each in stage.serving().values()} == {each.id for each in hosts}
    assert stage.generation().open is False
    assert stage.etcd["main"].histories == [1]
    assert stage.write()
    assert all(stage.identity(stage.volume_of(short)).epoch == 1 for short in "abc")
    assert all(each.epoch == 1 and each.last_holder == each.attached_to for each in stage.cloud.volumes())


def test_each_master_takes_the_member_of_its_own_group(stage: Stage) -> None:
    stage.boot_all()
    stage.until(stage.healthy)
    assert {short: stage.holder_of(short).machine.group for short in "abc"} == {
        "a": "master-a", "b": "master-b", "c": "master-c",
    }  # fmt: skip


def test_the_names_of_the_api_are_written_by_one_master_once_creation_is_closed(stage: Stage) -> None:
    hosts = stage.boot_all()
    stage.until(lambda: len(stage.dns.addresses("api.internal.laptop")) == 3)
    assert set(stage.dns.addresses("api.internal.laptop")) == {each.address for each in hosts}
    assert stage.dns.addresses("api.laptop") == stage.dns.addresses("api.internal.laptop")
    assert [each.presence.elected() for each in hosts].count(True) == 1
    assert not stage.generation().open


def test_masters_with_external_addresses_have_these_under_the_public_name_and_leave_both_names(stage: Stage) -> None:
    first, second = (stage.boot(f"master-{x}", external=f"203.0.113.{n}") for n, x in enumerate("ab", start=1))
    third = stage.boot("master-c")
    stage.until(lambda: len(stage.dns.addresses("api.internal.laptop")) == 3)
    assert set(stage.dns.addresses("api.internal.laptop")) == {first.address, second.address, third.address}
    assert set(stage.dns.addresses("api.laptop")) == {"203.0.113.1", "203.0.113.2", third.address}
    stage.until(stage.healthy)
    stage.kill(first)
    stage.until(lambda: first.address not in stage.dns.addresses("api.internal.laptop"), within=15)
    assert set(stage.dns.addresses("api.laptop")) == {"203.0.113.2", third.address}


def test_each_volume_was_formatted_exactly_once(stage: Stage) -> None:
    stage.boot_all()
    stage.until(stage.healthy)
    stage.run(60)
    assert [len(each.formats) for each in stage.platters.by_volume.values()] == [1, 1, 1]


def test_a_master_alone_waits_for_a_quorum_and_says_so(stage: Stage) -> None:
    host = stage.boot()
    stage.run(30)
    assert "main waits: no quorum yet" in host.sentence.replace("main: waits", "main waits")
    assert stage.generation().open
    stage.boot("master-b")
    stage.until(lambda: len(stage.serving()) == 2, within=20)


def test_a_founder_that_comes_an_hour_late_joins_the_cluster_the_others_founded(stage: Stage) -> None:
    stage.boot("master-a"), stage.boot("master-b")
    stage.until(lambda: not stage.generation().open)
    assert stage.write()
    stage.run(HOUR)

    stage.boot("master-c")
    stage.until(stage.healthy)

    assert stage.etcd["main"].histories == [1]
    assert stage.write()


def test_five_masters_for_three_volumes_leave_two_spare_ones_whose_kubelet_runs_all_the_same(stage: Stage) -> None:
    hosts = [*stage.boot_all(), stage.boot("master-a"), stage.boot("master-b")]
    stage.until(stage.healthy)
    stage.run(70)
    spare = [each for each in hosts if not each.links()]
    assert len(spare) == 2
    assert all(each.kubelet_started for each in hosts)

    stage.kill(stage.holder_of("a"))
    stage.declare_dead(stage.holder_of("a"))
    stage.until(stage.healthy, within=15)
    assert stage.holder_of("a") in spare


def test_the_kubelet_of_a_master_with_a_volume_waits_for_its_manifest(stage: Stage) -> None:
    host = stage.boot()
    host.disks.seconds = lambda job: 20 if isinstance(job, Format) else 0
    stage.run(15)
    assert not host.kubelet_started
    assert "it is started when a volume of main is mounted here" in host.sentence
    stage.run(10)
    assert host.kubelet_started
    assert host.links()


@pytest.mark.parametrize("kind", [Format, MountVolume, Probe])
def test_a_disk_job_that_hangs_blocks_neither_the_other_masters_nor_the_other_steps(stage: Stage, kind: type) -> None:
    hosts = stage.boot_all()
    hosts[0].disks.seconds = lambda job: float("inf") if isinstance(job, kind) else 0

    stage.until(lambda: len(stage.serving()) == 2, within=20)
    stage.run(70)

    assert hosts[0].kubelet_started, hosts[0].sentence  # after a minute it does not wait for the disk any more
    assert hosts[0].status["round"] > 10
    hosts[0].disks.seconds = lambda _job: 0
    stage.until(stage.healthy, within=120)


def test_a_child_that_cannot_even_be_killed_is_told_and_the_rounds_go_on(stage: Stage) -> None:
    hosts = stage.boot_all()
    hosts[0].disks.seconds = lambda job: float("inf") if isinstance(job, Format) else 0
    hosts[0].disks.stuck = True
    stage.run(90)
    assert "it hangs" in hosts[0].sentence
    assert hosts[0].status["jobs"][0]["job"] == "Format"
    assert len(stage.serving()) == 2


def test_a_format_that_was_cut_short_is_finished_by_whoever_holds_the_volume_then(stage: Stage) -> None:
    host = stage.boot("master-a")
    host.disks.seconds = lambda job: 5 if isinstance(job, Format) else 0
    stage.until(lambda: any(isinstance(job, Format) for job in host.disks.jobs))
    volume = next(each.id for each in stage.cloud.volumes() if each.attached_to)
    stage.kill(host)
    assert stage.platters[volume].content is Content.DIRTY

    stage.replace_machine(host)
    stage.boot("master-b"), stage.boot("master-c")
    stage.until(stage.healthy)

    assert len(stage.platters[volume].formats) == 1
    assert stage.cloud.find(volume).mark == "formed"


def test_a_device_that_appears_late_is_waited_for(stage: Stage) -> None:
    hosts = stage.boot_all()
    stage.platters["vol-00000001"].appears = stage.clock.seconds + 25
    stage.run(20)
    late = next(each for each in hosts if "is not there yet" in each.sentence)
    assert "(for" in late.sentence
    stage.until(stage.healthy)


@pytest.mark.parametrize(
    ("broken", "says"),
    [
        ({"serial": "vol-other"}, "its serial is vol-other, not vol-00000001"),
        ({"serial": None}, "its serial is unknown, not vol-00000001"),
        ({"size": 2**29}, "has 536870912 bytes"),
        ({"content": Content.UNREADABLE}, "cannot be read"),
        ({"content": Content.FOREIGN, "told": 'an xfs file system labelled "pgdata"'}, "pgdata"),
        ({"content": Content.DIRTY}, "it is not blank"),
    ],
)
def test_a_device_that_is_not_surely_the_blank_volume_is_never_formatted(
    stage: Stage, broken: dict[str, object], says: str
) -> None:
    for name, value in broken.items():
        setattr(stage.platters["vol-00000001"], name, value)
    stage.boot_all()
    stage.until(lambda: len(stage.serving()) == 2, within=20)
    stage.run(120)

    holder = stage.hosts[stage.holder("vol-00000001") or ""]
    assert says in holder.sentence
    assert "NEEDS A PERSON" in holder.sentence
    assert stage.platters["vol-00000001"].formats == []
    assert stage.write()


def test_a_volume_made_from_a_snapshot_is_not_formatted(stage: Stage) -> None:
    stage.change_tags("vol-00000001", made_empty=False)
    stage.boot_all()
    stage.run(60)
    assert stage.platters["vol-00000001"].formats == []
    assert any("nothing says that vol-00000001 was made empty" in each.sentence for each in stage.hosts.values())


def test_an_agent_that_starts_anew_changes_nothing(formed: Stage) -> None:
    before, starts = formed.cloud.changes, formed.etcd["main"].starts
    for host in formed.hosts.values():
        formed.agent_dies(host)
    writes = formed.dns.writes
    formed.run(30)
    assert (formed.cloud.changes, formed.dns.writes, formed.etcd["main"].starts) == (before, writes, starts)
    assert formed.healthy()


def test_events_live_beside_main_with_members_and_ports_of_their_own(make_stage: Callable[..., Stage]) -> None:
    stage = make_stage(clusters="main events")
    hosts = stage.boot_all()
    stage.until(stage.all_healthy)
    assert all(set(each.links()) == {"etcd.manifest", "etcd-events.manifest"} for each in hosts)
    assert stage.write("main")
    assert stage.write("events")

    old = stage.holder_of("events/a")
    stage.kill(old)
    stage.replace_machine(old)
    stage.until(stage.all_healthy)
    assert stage.identity(stage.volume_of("events/a")).epoch == 2


def test_a_zonal_volume_is_left_to_a_machine_of_its_zone(make_stage: Callable[..., Stage]) -> None:
    stage = make_stage(zonal=True)
    stage.change_tags("vol-00000001", zone="elsewhere")
    stage.boot_all()
    stage.run(30)
    assert stage.holder("vol-00000001") is None
    assert len(stage.serving()) == 2


def test_a_wall_clock_that_is_an_hour_off_matters_to_nobody(stage: Stage) -> None:
    stage.boot("master-a", wrong_by=HOUR), stage.boot("master-b", wrong_by=-HOUR), stage.boot("master-c")
    stage.until(stage.healthy, within=15)
    stage.run(60)
    assert stage.healthy()
    assert len(stage.dns.addresses("api.internal.laptop")) == 3


def test_a_disk_is_formatted_where_the_provider_shows_it_now_and_not_where_it_was_once(stage: Stage) -> None:
    """Where the platform has no serials, the place is the only proof; what is remembered of it is none."""
    host = stage.boot("master-c")
    other, volume = stage.volume_of("b"), stage.volume_of("c")
    for each in (other, volume):
        stage.change_tags(each, attached_to=host.id)
    stage.beside.add(other)
    host.edges.cache.of(VolumesCache).devices[volume] = Device(path=DEVICES / other, serial=None)
    stage.run(20)
    assert stage.platters[other].formats == []
    assert len(stage.platters[volume].formats) == 1
