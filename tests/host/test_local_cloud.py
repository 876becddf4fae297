"""The local cloud with real disks and sockets: attaching, dying, losing, and a daemon that was killed in between."""

from __future__ import annotations

import os
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from builders.volumes import SIZE, Holder, a_volume, all_at_once, format_disk
from clusters.local import CloudWithoutHosts
from protokube.errors import InvalidRequest, Refused, TryLater
from protokube.local.cloud.cloud import Cloud
from protokube.local.disk import disks, loops
from protokube.providers.clients.local import connect
from protokube.providers.volumes.local import LocalVolumes


@pytest.fixture
def local(tmp_path: Path) -> Iterator[CloudWithoutHosts]:
    with CloudWithoutHosts(tmp_path / "dev") as made:
        yield made


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def a_founder(local: CloudWithoutHosts, member: str = "a") -> str:
    return local.cloud.create_founders([a_volume(member=member)])[0].id


def the_device(local: CloudWithoutHosts, volume: str) -> Path:
    number = disks.find(local.paths.image(volume))
    assert number is not None
    return Path(f"/dev/loop{number[1]}")


def pid_of(local: CloudWithoutHosts, host: str) -> int:
    pid = local.cloud.registry.find(host).pid
    assert pid is not None
    return pid


def test_what_a_host_attached_appears_in_its_dev_under_the_name_it_is_told(local: CloudWithoutHosts) -> None:
    volume, host = a_founder(local), local.add_running_machine()
    volumes = LocalVolumes(local.client(host))

    volumes.attach(volume)

    assert volumes.device(volume).path == Path(f"/dev/pk-{volume}")
    device = the_device(local, volume).stat().st_rdev
    assert local.machinery.devices == {(pid_of(local, host), f"pk-{volume}"): (os.major(device), os.minor(device))}


def test_a_frozen_host_that_is_declared_dead_loses_device_mount_and_disk(
    local: CloudWithoutHosts, tmp_path: Path, stack: ExitStack
) -> None:
    volume, host, next_one = a_founder(local), local.add_running_machine(), local.add_running_machine()
    local.cloud.attach(host, volume)
    format_disk(the_device(local, volume))
    inside = Holder()
    stack.callback(inside.end)
    (tmp_path / "m").mkdir()
    assert inside.do("mount", str(the_device(local, volume)), str(tmp_path / "m")) == "ok"
    inside.do("open", "data", f"{tmp_path}/m/data")
    inside.freeze()
    with pytest.raises(TryLater, match=f"attached to {host}"):
        local.cloud.attach(next_one, volume)

    local.admin.call("declare_dead", host=host, kill=False)

    assert (pid_of(local, host), f"pk-{volume}") not in local.machinery.devices
    local.cloud.attach(next_one, volume)
    inside.thaw()
    assert inside.do("write", "data", "late") == "EIO"


def test_a_volume_is_given_away_only_after_it_was_unmounted(
    local: CloudWithoutHosts, tmp_path: Path, stack: ExitStack
) -> None:
    volume, host, next_one = a_founder(local), local.add_running_machine(), local.add_running_machine()
    volumes = LocalVolumes(local.client(host))
    volumes.attach(volume)
    format_disk(the_device(local, volume))
    inside = Holder()
    stack.callback(inside.end)
    (tmp_path / "m").mkdir()
    assert inside.do("mount", str(the_device(local, volume)), str(tmp_path / "m")) == "ok"

    with pytest.raises(TryLater, match=f"{volume} is still mounted"):
        volumes.release(volume)
    assert volumes.list_volumes()[0].attached_to == host

    assert inside.do("unmount", str(tmp_path / "m")) == "ok"
    volumes.release(volume)
    assert volumes.list_volumes()[0].attached_to is None
    assert local.machinery.devices == {}
    assert disks.find(local.paths.image(volume)) is None
    LocalVolumes(local.client(next_one)).attach(volume)


def test_a_disk_that_somebody_still_uses_is_given_to_nobody_and_stays_free(local: CloudWithoutHosts) -> None:
    volume, host = a_founder(local), local.add_machine()
    loops.bind(local.paths.image(volume), SIZE)

    with pytest.raises(TryLater, match="still in use"):
        LocalVolumes(local.client(host)).attach(volume)

    assert local.cloud.volumes.find(volume).attached_to is None
    assert len(loops.bound(local.paths.image(volume))) == 1


def test_a_disk_whose_image_is_gone_is_not_attached_to_anybody(local: CloudWithoutHosts) -> None:
    volume, host = a_founder(local), local.add_machine()
    local.paths.image(volume).unlink()

    with pytest.raises(Refused, match=f"the disk of {volume} is gone"):
        LocalVolumes(local.client(host)).attach(volume)

    assert local.cloud.volumes.find(volume).attached_to is None


def test_a_host_that_dies_while_it_attaches_is_left_with_nothing(local: CloudWithoutHosts) -> None:
    volumes = [a_founder(local, f"m{number}") for number in range(10)]
    for volume in volumes:
        host = local.add_machine()

        def work(number: int, host: str = host, volume: str = volume) -> None:
            local.cloud.attach(host, volume) if number else local.cloud.declare_dead(host)

        all_at_once(2, work)

        assert local.cloud.volumes.find(volume).attached_to is None
        assert disks.find(local.paths.image(volume)) is None


def test_a_host_that_does_not_finish_dying_loses_its_disks_all_the_same(local: CloudWithoutHosts) -> None:
    volume, host, next_one = a_founder(local), local.add_running_machine(), local.add_running_machine()
    local.cloud.attach(host, volume)
    local.machinery.undying.add(pid_of(local, host))

    with pytest.raises(TryLater, match="still dying"):
        local.cloud.declare_dead(host)

    local.cloud.attach(next_one, volume)
    local.machinery.undying.clear()
    local.cloud.declare_dead(host)
    assert local.cloud.volumes.find(volume).attached_to == next_one


def test_losing_a_volume_takes_it_from_its_holder(local: CloudWithoutHosts) -> None:
    volume, host = a_founder(local), local.add_running_machine()
    local.cloud.attach(host, volume)

    local.admin.call("delete_volume", volume=volume)

    assert local.machinery.devices == {}
    assert list(local.paths.disks.iterdir()) == []
    assert loops.bound_under(local.paths.disks) == []
    with pytest.raises(Refused, match=volume):
        local.admin.call("delete_volume", volume=volume)


def test_a_daemon_killed_between_the_row_and_the_device_makes_the_device_in_its_next_life(
    local: CloudWithoutHosts,
) -> None:
    volume, host = a_founder(local), local.add_running_machine()
    local.cloud.volumes.claim(volume, host)  # and there it was killed

    assert Cloud(local.paths, local.database, local.machinery).restore() == []

    assert list(local.machinery.devices) == [(pid_of(local, host), f"pk-{volume}")]
    assert the_device(local, volume).exists()


def test_a_host_that_died_while_no_daemon_looked_is_buried_and_its_volumes_are_free(local: CloudWithoutHosts) -> None:
    volume, dead, alive = a_founder(local), local.add_running_machine(), local.add_running_machine()
    local.cloud.attach(dead, volume)
    local.machinery.kill(pid_of(local, dead))

    assert Cloud(local.paths, local.database, local.machinery).restore() == [dead]

    local.cloud.attach(alive, volume)
    assert [host.name for host in local.cloud.registry.living()] == [alive]


def test_a_daemon_killed_while_it_took_volumes_away_goes_on_with_that(local: CloudWithoutHosts) -> None:
    volume, host = a_founder(local), local.add_running_machine()
    local.cloud.attach(host, volume)
    local.cloud.registry.mark_dead(host)  # and there it was killed

    Cloud(local.paths, local.database, local.machinery).restore()

    assert local.cloud.volumes.find(volume).attached_to is None
    assert disks.find(local.paths.image(volume)) is None
    assert local.cloud.is_running(local.cloud.registry.find(host))


def mounted_at(local: CloudWithoutHosts, volume: str, point: Path, stack: ExitStack) -> Holder:
    """Somebody who has the disk of this volume mounted, and a file in it open."""
    format_disk(the_device(local, volume))
    holder = Holder()
    stack.callback(holder.end)
    point.mkdir()
    assert holder.do("mount", str(the_device(local, volume)), str(point)) == "ok"
    assert holder.do("open", "data", f"{point}/data") == "ok"
    return holder


def test_a_daemon_killed_while_it_held_a_disk_still_lets_the_host_go_on_in_its_next_life(
    local: CloudWithoutHosts, tmp_path: Path, stack: ExitStack
) -> None:
    volume, host = a_founder(local), local.add_running_machine()
    local.cloud.attach(host, volume)
    holder = mounted_at(local, volume, tmp_path / "m", stack)
    subprocess.run(["fsfreeze", "--freeze", f"/proc/{holder.pid}/root{tmp_path}/m"], check=True)

    Cloud(local.paths, local.database, local.machinery).restore()

    assert holder.do("write", "data", "x") == "1"
    assert holder.do("fsync", "data") == "ok"


def test_a_daemon_killed_right_after_a_cut_gives_the_host_a_new_device_in_its_next_life(
    local: CloudWithoutHosts, tmp_path: Path, stack: ExitStack
) -> None:
    volume, host = a_founder(local), local.add_running_machine()
    local.cloud.attach(host, volume)
    holder = mounted_at(local, volume, tmp_path / "m", stack)
    before = dict(local.machinery.devices)
    loops.cut(loops.bound(local.paths.image(volume))[0])

    Cloud(local.paths, local.database, local.machinery).restore()

    assert local.machinery.devices.keys() == before.keys()
    assert local.machinery.devices != before
    assert holder.do("mount", str(the_device(local, volume)), str(tmp_path / "m")) == "ok"


def test_one_disk_that_cannot_be_restored_does_not_keep_the_others_from_it(local: CloudWithoutHosts) -> None:
    broken, whole, host = a_founder(local, "a"), a_founder(local, "b"), local.add_running_machine()
    for volume in (broken, whole):
        local.cloud.volumes.claim(volume, host)
    local.paths.image(broken).unlink()

    Cloud(local.paths, local.database, local.machinery).restore()

    assert list(local.machinery.devices) == [(pid_of(local, host), f"pk-{whole}")]


def test_the_operator_sees_hosts_volumes_and_records(local: CloudWithoutHosts) -> None:
    volume, host, dead = a_founder(local), local.add_running_machine(), local.add_machine()
    local.cloud.attach(host, volume)
    local.cloud.declare_dead(dead)

    (seen_host,) = local.admin.call("hosts")
    (seen_volume,) = local.admin.call("volumes")

    assert (seen_host["name"], seen_host["running"], seen_host["dead"]) == (host, True, False)
    assert (seen_volume["id"], seen_volume["attached_to"]) == (volume, host)
    assert seen_volume["device"] == str(the_device(local, volume))
    assert local.admin.call("records") == []


def test_a_disk_that_is_still_in_use_is_not_deleted_as_a_free_volume(local: CloudWithoutHosts) -> None:
    volume = a_founder(local)
    image = local.paths.image(volume)
    disks.attach(image, SIZE)

    with pytest.raises(TryLater, match="still in use"):
        local.admin.call("delete_free_volume", volume=volume)
    assert image.exists()
    disks.detach(image)
    local.admin.call("delete_free_volume", volume=volume)

    assert not image.exists()
    assert local.admin.call("volumes") == []


def test_a_host_cannot_do_what_only_the_operator_may(local: CloudWithoutHosts) -> None:
    client = local.client(local.add_machine())

    for call in (
        "kill_host",
        "delete_volume",
        "delete_free_volume",
        "groups",
        "delete_group",
        "hosts",
        "api_down",
        "create_founders",
    ):
        with pytest.raises(InvalidRequest, match="there is no call"):
            client.call(call)


def test_while_the_api_is_down_hosts_get_no_answer_and_the_operator_does(local: CloudWithoutHosts) -> None:
    client = local.client(local.add_machine())
    watch = client.watch()
    assert watch.wait(30)

    local.admin.call("api_down", seconds=1000)

    with pytest.raises(TryLater, match="does not answer"):
        client.call("me")
    with pytest.raises(TryLater, match="broke"):
        watch.wait(30)
    watch.close()
    assert local.admin.call("volumes") == []
    local.admin.call("api_down", seconds=0.3)
    end = time.monotonic() + 5
    while time.monotonic() < end:
        try:
            client.call("me")
            break
        except TryLater:
            time.sleep(0.02)
    assert client.call("me")


def test_whoever_watches_is_told_of_every_change_and_of_nothing_else(local: CloudWithoutHosts) -> None:
    volume, host = a_founder(local), local.add_machine()
    client = local.client(host)
    with client.watch() as watch:
        assert watch.wait(30)  # where it stands
        client.call("list_volumes")
        assert not watch.wait(0.05)

        client.call("attach", volume=volume)
        assert watch.wait(30)
        client.call("attach", volume=volume)
        client.call("write_epoch", volume=volume, epoch=0, holder=host, generation="g1")
        assert not watch.wait(0.05)

        local.cloud.declare_dead(host)
        assert watch.wait(30)


def test_a_call_that_waits_keeps_nobody_else_waiting(local: CloudWithoutHosts) -> None:
    volume, host = a_founder(local), local.add_machine()
    client = local.client(host)
    waiting = threading.Thread(target=lambda: client.call("attach", volume=volume))
    with local.cloud._locked(volume):  # a disk that takes its time
        waiting.start()
        began = time.monotonic()
        for _ in range(5):
            client.call("list_volumes")
        assert time.monotonic() - began < 10
        assert waiting.is_alive()
    waiting.join(30)
    assert not waiting.is_alive()


@pytest.mark.parametrize("said", [b"not json\n", b"[]\n", b"1\n", b"\n", b"\xff\n", b'{"call": "me"}'])
def test_somebody_who_talks_nonsense_is_hung_up_on(local: CloudWithoutHosts, said: bytes) -> None:
    host = local.add_machine()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(5)
        connect(connection, local.paths.host_socket(host))
        connection.sendall(said)
        connection.shutdown(socket.SHUT_WR)

        answered = connection.recv(1000)

    assert answered == b"" or b'"result"' in answered  # a line may lack its end
    assert local.client(host).call("me")["id"] == host


def test_many_questions_may_come_through_one_connection(local: CloudWithoutHosts) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(5)
        connect(connection, local.paths.host_socket(local.add_machine()))
        lines = connection.makefile("rb")
        connection.sendall(b'{"call": "list_volumes"}\n{"call": "nothing"}\n')

        assert lines.readline() == b'{"result": []}\n'
        assert b'"kind": "invalid"' in lines.readline()


def test_a_socket_is_for_root_only_and_goes_with_its_host(local: CloudWithoutHosts) -> None:
    host = local.add_machine()
    assert local.paths.host_socket(host).stat().st_mode & 0o777 == 0o600

    local.thread.loop.call_soon_threadsafe(local.api.forget_host, host)

    end = time.monotonic() + 5
    while local.paths.host_socket(host).exists():
        assert time.monotonic() < end
        time.sleep(0.01)
