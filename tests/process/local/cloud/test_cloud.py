"""Operations of the cloud that need no device: creating volumes, writing tags and marks, and who may do it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from builders.volumes import a_volume
from clusters.local import PlainProcesses
from protokube.local.base.db import Database
from protokube.local.base.paths import Paths
from protokube.local.cloud.calls import host_calls
from protokube.local.cloud.cloud import Cloud


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[Cloud]:
    paths = Paths.at(tmp_path / "dev")
    paths.create()
    database = Database(Path(":memory:"))
    machinery = PlainProcesses()
    yield Cloud(paths, database, machinery)
    machinery.close()
    database.close()


def a_host(cloud: Cloud) -> str:
    return cloud.registry.add("masters", zone="local").name


def a_running_host(cloud: Cloud) -> str:
    assert isinstance(cloud.machinery, PlainProcesses)
    name = a_host(cloud)
    cloud.registry.write_started(name, *cloud.machinery.start())
    return name


def test_a_killed_host_is_not_dead_before_somebody_says_so(cloud: Cloud) -> None:
    host = a_running_host(cloud)

    cloud.kill_host(host)

    assert not cloud.is_running(cloud.registry.find(host))
    assert [each.name for each in cloud.registry.living()] == [host]


def test_declaring_a_host_dead_kills_it_unless_it_is_asked_not_to(cloud: Cloud) -> None:
    spared, killed = a_running_host(cloud), a_running_host(cloud)

    cloud.declare_dead(spared, kill=False)
    cloud.declare_dead(killed)

    assert cloud.is_running(cloud.registry.find(spared))
    assert not cloud.is_running(cloud.registry.find(killed))
    assert cloud.list_machines() == []


def test_when_the_power_fails_everybody_goes(cloud: Cloud) -> None:
    names = [a_running_host(cloud) for _ in range(3)]

    assert cloud.power_off() == names

    assert cloud.list_machines() == []
    assert not any(cloud.is_running(host) for host in cloud.registry.all_hosts())
    assert cloud.power_off() == []


def test_a_pid_that_was_used_again_is_nobody_of_ours(cloud: Cloud) -> None:
    host = a_running_host(cloud)
    found = cloud.registry.find(host)
    assert found.pid is not None
    assert found.started is not None
    cloud.registry.write_started(host, found.pid, found.started - 1)

    assert not cloud.is_running(cloud.registry.find(host))
    assert cloud.restore() == [host]
    assert cloud.machinery.alive(found.pid, found.started)


def test_after_a_crash_the_image_of_a_deleted_volume_goes(cloud: Cloud) -> None:
    (volume,) = cloud.create_founders([a_volume()])
    cloud.volumes.delete(volume.id)  # and there it was killed
    assert cloud.paths.image(volume.id).exists()

    cloud.restore()

    assert not cloud.paths.image(volume.id).exists()


def test_only_a_caller_that_asks_for_states_sees_that_a_volume_is_being_detached(cloud: Cloud) -> None:
    """Agents of before states read every field that they are sent as one of a volume."""
    (volume,), host = cloud.create_founders([a_volume()]), a_host(cloud)
    with cloud.database.transaction() as connection:
        connection.execute("UPDATE volumes SET attached_to = ? WHERE id = ?", (host, volume.id))
    cloud.registry.mark_dead(host)
    calls = host_calls(cloud, host)

    ((older,), (newer,)) = calls["list_volumes"](), calls["list_volumes"](states=True)
    assert ("state" not in older, older["attached_to"], newer["state"]) == (True, host, "detaching")
    assert (calls["look_up"](volume.id), calls["look_up"](volume.id, states=True)) == (older, newer)
