"""A machine that is in trouble itself still stops what it may not serve any more.

Notes in /run keep what an agent found out across its restarts. None of them may be a condition of stopping etcd, nor
may trouble with one volume keep another one served.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from clusters.scenario.acts import asides, copy_within_the_window, panicked, restore_while_down
from clusters.scenario.cluster import Stage
from protokube.errors import ProtokubeError, Refused, TryLater
from protokube.members.diskfaults import decode
from protokube.store import layout
from protokube.store.memory import MemoryStore


def test_a_full_machine_stops_serving_a_volume_that_the_provider_does_not_know(formed: Stage) -> None:
    volume, host = formed.volume_of("c"), formed.holder_of("c")
    host.disk_full = True
    formed.hide(volume)

    formed.until(lambda: host.links() == {})
    formed.run(5)
    assert "the provider says that it does not exist: /run/protokube cannot be written" in host.sentence
    assert volume in host.disks.table

    host.disk_full = False
    formed.until(formed.all_healthy, 600)
    assert volume not in host.disks.table


def test_a_full_machine_stops_serving_a_volume_that_others_have(formed: Stage) -> None:
    volume, host = formed.volume_of("c"), formed.holder_of("c")
    host.disk_full = True
    formed.freeze(host)
    formed.replace_machine(host)
    formed.until(lambda: formed.holder(volume) not in (None, host.id))
    formed.thaw(host)

    formed.until(lambda: host.links() == {})

    formed.until(formed.healthy)


def test_a_full_machine_stops_serving_a_broken_disk_and_counts_one_fault(formed: Stage) -> None:
    volume, host = formed.volume_of("b"), formed.holder_of("b")
    host.disk_full = True
    formed.platters[volume].option = "emergency_ro"

    formed.until(lambda: host.links() == {})
    formed.run(120)
    assert volume in host.disks.table, "nothing would say why it was unmounted"
    assert "not unmounted yet, although its file system turned read-only after an error" in host.sentence

    host.disk_full = False
    formed.until(formed.all_healthy)
    record = decode(formed.store.inner.read(layout.etcd_disk_faults(formed.wanted.cluster, "main", volume)).data)
    assert record is not None
    assert len(record.faults) == 1


def test_what_etcd_said_of_a_copy_is_not_lost_on_a_full_machine(formed: Stage) -> None:
    formed.etcd["main"].preferred = next(
        each.id for each in formed.etcd["main"].led()[0].db.state.members if each.name == "etcd-a"
    )
    restore_while_down(formed, "b", copy_within_the_window(formed, "b"))
    host = list(formed.hosts.values())[-1]
    panicked(formed, host)
    host.disk_full = True
    formed.until(lambda: host.links() == {})
    panics = len(formed.etcd["main"].panics)
    for file in (host.root / "var/log/pods").glob("*/*"):
        file.unlink()  # the kubelet takes the output away together with the pod
    formed.run(60)
    assert host.links() == {}

    host.disk_full = False
    formed.until(formed.healthy)

    assert asides(formed, "b") == ["data.aside-1"]
    assert len(formed.etcd["main"].panics) == panics
    formed.etcd["main"].started_old.clear()  # once; nothing could tell it from the original


@pytest.mark.parametrize("why", [TryLater("throttled"), Refused("access denied")], ids=lambda why: why.message)
def test_a_volume_about_which_nobody_answers_does_not_keep_another_one_served(
    make_stage: Callable[..., Stage], why: ProtokubeError
) -> None:
    stage = make_stage(clusters="main events")
    stage.boot_all()
    stage.until(stage.all_healthy, 120)
    host, main, events = stage.holder_of("main/a"), stage.volume_of("main/a"), stage.volume_of("events/a")
    assert host is stage.holder_of("events/a")
    stage.freeze(host)
    stage.declare_dead(host)
    stage.boot("master-a")
    stage.until(lambda: None not in (stage.holder(main), stage.holder(events)))
    stage.cloud.unanswered[main] = why
    stage.thaw(host)

    stage.round(host)

    assert events not in host.links().values()
    assert why.message in host.sentence
    stage.cloud.unanswered.clear()
    stage.until(lambda: host.links() == {})


def test_nothing_is_created_in_a_store_that_is_empty_because_it_is_not_mounted(formed: Stage) -> None:
    volume, whole = formed.volume_of("b"), formed.store.inner
    empty = formed.store.inner = MemoryStore("not mounted")
    formed.platters[volume].option = "emergency_ro"
    formed.run(200)

    assert empty.list_paths() == ()
    missing = "the state store has no generation record of main, so nothing is created there"
    assert missing in formed.holder_of("b").sentence

    formed.store.inner = whole
    formed.until(formed.all_healthy, 120)
