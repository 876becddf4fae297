"""Hosts of the local cloud: real namespaces, real mounts, real devices."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from builders.volumes import SIZE, nothing_left_behind
from clusters.hosts import IDLE, PATH, Cloud, Host, a_cloud, can_connect, eventually, is_mounted_anywhere
from protokube.errors import Refused, TryLater
from protokube.local.disk import disks, loops
from protokube.local.host import hosts

COUNT = "while :; do echo >> /run/count; sleep 0.01; done"
"""Shows from outside whether time passes inside."""


@pytest.fixture
def cloud() -> Iterator[Cloud]:
    with a_cloud() as made:
        yield made


@pytest.fixture(scope="module")
def quiet() -> Iterator[Host]:
    """A host that is only looked at."""
    with a_cloud() as made:
        yield made.start("quiet", 11, environment={"COLOUR": "blue"}, units={"idle.service": IDLE})


def counted(host: Host) -> int:
    return eventually(lambda: host.outside("/run/count").stat().st_size)


# What a host is


def test_a_host_is_up_within_a_second(cloud: Cloud) -> None:
    times = []
    for number in (11, 12, 13):  # the machine may be busy with other tests
        began = time.monotonic()
        host = cloud.start(f"fast-{number}", number)
        times.append(time.monotonic() - began)
        assert hosts.alive(host.pid, hosts.started_at(host.pid))
        hosts.kill(host.pid)
    began = time.monotonic()
    subprocess.run([sys.executable, "-c", ""], check=True)
    assert min(times) < max(1.0, 60 * (time.monotonic() - began))


def test_three_hosts_come_up_side_by_side(cloud: Cloud) -> None:
    with ThreadPoolExecutor() as pool:
        started = list(pool.map(lambda n: cloud.start(f"host-{n}", 10 + n), (1, 2, 3)))
    assert [host.run("hostname").stdout.strip() for host in started] == ["host-1", "host-2", "host-3"]


def test_it_has_a_name_an_address_and_a_first_process_of_its_own(quiet: Host) -> None:
    assert quiet.run("hostname").stdout.strip() == "quiet"
    assert quiet.run("cat", "/etc/hostname").stdout.strip() == "quiet"
    assert "10.77.0.11/24" in quiet.run("ip", "-br", "address", "show", "eth0").stdout
    assert quiet.run("getent", "hosts", "quiet").stdout.split() == ["10.77.0.11", "quiet"]
    assert b"protokube.local.host.init" in (Path(f"/proc/{quiet.pid}/root/proc/1/cmdline")).read_bytes()
    assert Path(f"/proc/{quiet.pid}/root/proc/1/status").read_text().split("NSpid:")[1].split()[0] == "1"
    assert socket.gethostname() != "quiet"


@pytest.mark.parametrize("folder", ["/etc", "/var", "/mnt", "/srv", "/run", "/tmp", "/var/tmp", "/dev/shm"])
def test_what_a_host_writes_is_its_own(quiet: Host, folder: str) -> None:
    quiet.run("sh", "-c", f"echo mine > {folder}/note-of-quiet")
    assert not Path(folder, "note-of-quiet").exists()
    assert quiet.run("cat", f"{folder}/note-of-quiet").stdout == "mine\n"


@pytest.mark.parametrize("folder", ["/etc", "/var", "/mnt", "/srv", "/run"])
def test_what_it_writes_can_be_read_from_outside_while_it_runs(quiet: Host, folder: str) -> None:
    quiet.run("sh", "-c", f"echo hello > {folder}/letter")
    assert quiet.outside(f"{folder}/letter").read_text() == "hello\n"


@pytest.mark.parametrize("folder", ["/usr", "/root", "/opt", "/etc/ssl", "/sys", "/run/protokube/outside"])
def test_what_is_the_machines_cannot_be_written(quiet: Host, folder: str) -> None:
    failed = quiet.run("touch", f"{folder}/intruder", check=False)
    assert "Read-only file system" in failed.stderr


def test_programs_find_what_they_look_for(quiet: Host) -> None:
    assert quiet.run("id", "--user", "--name").stdout == "root\n"
    assert quiet.run("cat", "/etc/resolv.conf").stdout.startswith("nameserver 10.77.0.1\n")
    assert quiet.run("getent", "hosts", "localhost").stdout.split()[1] == "localhost"
    assert quiet.run("sh", "-c", "test -s /etc/ld.so.cache && test -e /etc/ssl/certs && echo yes").stdout == "yes\n"
    assert quiet.run("sh", "-c", "echo gone > /dev/null; head -c 3 /dev/zero | wc -c").stdout == "3\n"
    assert quiet.python("import pty; print(len(pty.openpty()))") == "2"
    assert quiet.run("sh", "-c", "echo x | cat /dev/stdin").stdout == "x\n"


def test_it_shows_no_disk_of_the_machine(quiet: Host) -> None:
    listed = quiet.run("find", "/dev", "-type", "b").stdout
    assert listed == ""


def test_its_mounts_are_shared_so_that_unmounts_reach_pods(quiet: Host) -> None:
    table = Path(f"/proc/{quiet.pid}/mountinfo").read_text().splitlines()
    assert len(table) > 10
    assert [line for line in table if " shared:" not in line] == []


def test_nothing_of_the_machines_root_stays_mounted_inside(quiet: Host) -> None:
    points = [line.split()[4] for line in Path(f"/proc/{quiet.pid}/mountinfo").read_text().splitlines()]
    assert len(points) == len(set(points)), "a mount lies on another"
    assert not [point for point in points if point.startswith("/old") and point != "/old_root"]


def test_the_environment_and_path_are_what_the_spec_says(quiet: Host) -> None:
    (unit,) = [
        pid for pid in hosts.processes(quiet.pid) if b"sleep\0001000" in Path(f"/proc/{pid}/cmdline").read_bytes()
    ]
    lines = Path(f"/proc/{unit}/environ").read_bytes().decode().rstrip("\0").split("\0")
    environment = dict(line.split("=", 1) for line in lines)
    assert environment.pop("NOTIFY_SOCKET") == "/run/protokube/notify-idle.service.sock"
    assert environment == {"COLOUR": "blue", "PATH": PATH, "HOME": "/root", "LANG": "C.UTF-8"}


def test_a_host_sees_only_its_own_network(quiet: Host) -> None:
    shown = quiet.run("ip", "-br", "link").stdout.split("\n")
    assert sorted(line.split()[0].split("@")[0] for line in shown if line) == ["eth0", "lo"]
    assert sorted(entry.name for entry in Path(f"/proc/{quiet.pid}/root/sys/class/net").iterdir()) == ["eth0", "lo"]
    with socket.create_server(("127.0.0.1", 0)) as users:
        port = users.getsockname()[1]
        socket.create_connection(("127.0.0.1", port), 1).close()
        assert not can_connect(quiet, "127.0.0.1", port)
    unreachable = quiet.run(
        "python3", "-c", "import socket; socket.create_connection(('192.0.2.1', 80), 2)", check=False
    )
    # the kernel says so five times at once, and then once in a second
    assert "No route to host" in unreachable.stderr or "timed out" in unreachable.stderr


def test_a_host_sees_only_its_own_processes(quiet: Host) -> None:
    listed = quiet.run("ls", "/proc").stdout.split()
    inside = {int(name) for name in listed if name.isdigit()}
    assert 1 in inside
    assert len(inside) < 8
    assert quiet.pid in hosts.processes(quiet.pid)
    assert os.getpid() not in hosts.processes(quiet.pid)


def test_the_store_is_the_same_for_all(cloud: Cloud) -> None:
    one, two = cloud.start("one", 11), cloud.start("two", 12)
    one.run("sh", "-c", "echo shared > /srv/protokube/store/note")
    assert two.run("cat", "/srv/protokube/store/note").stdout == "shared\n"
    assert (cloud.root / "store" / "note").read_text() == "shared\n"


def test_a_host_that_is_no_master_has_no_store(cloud: Cloud) -> None:
    (cloud.root / "store" / "key").write_text("a secret")
    worker = cloud.start("worker", 11, store=None)

    assert worker.run("ls", "/srv/protokube/store", check=False).returncode != 0
    assert worker.run("find", "/srv", "-name", "key").stdout == ""
    assert not [line for line in worker.run("cat", "/proc/self/mountinfo").stdout.splitlines() if "/store " in line]


def test_nothing_of_the_cloud_is_seen_inside_wherever_its_folder_lies() -> None:
    """Below a folder of the machine that hosts see, unlike /var and /tmp: that of this very file."""
    with a_cloud(str(Path(__file__).parent)) as cloud:
        (cloud.root / "store" / "key").write_text("a secret")
        (cloud.root / "admin.sock").touch()
        (cloud.root / "bin").mkdir()
        (cloud.root / "bin" / "greet").write_text("#!/bin/sh\necho greetings\n")
        (cloud.root / "bin" / "greet").chmod(0o755)
        path = f"{cloud.root / 'bin'}:{PATH}"
        worker = cloud.start("worker", 11, store=None, path=path)
        master = cloud.start("master", 12, path=path)

        for host in (worker, master):
            assert host.run("ls", str(cloud.root)).stdout.split() == ["bin"]
            assert host.run(str(cloud.root / "bin" / "greet")).stdout == "greetings\n"
        assert master.run("cat", "/srv/protokube/store/key").stdout == "a secret"


def test_a_host_boots_with_the_umask_of_a_machine_and_its_folder_is_closed(cloud: Cloud) -> None:
    before = os.umask(0o077)
    try:
        host = cloud.start("masked", 11, units={"mask.service": ["sh", "-c", "umask; exec sleep 1000"]})
    finally:
        os.umask(before)

    log = host.outside("/var/log/mask.service.log")
    assert eventually(lambda: log.read_text()) == "0022\n"
    assert host.spec.folder.stat().st_mode & 0o777 == 0o700
    assert host.outside("/etc").stat().st_mode & 0o777 == 0o755
    assert log.stat().st_mode & 0o777 == 0o600


def test_programs_that_lie_where_a_host_has_its_own_folder_are_seen(cloud: Cloud) -> None:
    tools = cloud.root / "tools"  # below a folder that every host has of its own
    tools.mkdir()
    (tools / "greet").write_text("#!/bin/sh\necho greetings\n")
    (tools / "greet").chmod(0o755)
    (cloud.root / "link").symlink_to(tools)
    host = cloud.start("tooled", 11, path=f"{cloud.root}/link:{tools}:{PATH}", units={"greet.service": ["greet"]})
    log = host.outside("/var/log/greet.service.log")
    assert eventually(lambda: log.read_text()).startswith("greetings\n")
    assert host.run("touch", f"{tools}/intruder", check=False).returncode != 0


def test_the_cloud_is_reached_by_a_socket_that_may_be_made_anew(cloud: Cloud) -> None:
    host = cloud.start("caller", 11)
    place = host.spec.folder / "cloud.sock"
    ask = "import socket; s = socket.socket(socket.AF_UNIX); s.connect('/run/protokube/cloud.sock'); print(s.recv(9))"
    for greeting in (b"first", b"second"):
        place.unlink(missing_ok=True)
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(place))
            server.listen()
            asking = host.start(sys.executable, "-I", "-c", ask)
            server.settimeout(10)
            client, _ = server.accept()
            with client:
                client.sendall(greeting)
            assert asking.communicate(timeout=10)[0].strip() == repr(greeting)


# Devices


def test_a_device_put_in_from_outside_is_used_inside_and_freed_by_killing_the_host(
    cloud: Cloud, tmp_path: Path
) -> None:
    host = cloud.start("disky", 11)
    image = tmp_path / "disk.img"
    disks.create(image, SIZE)
    with nothing_left_behind(tmp_path):
        number = disks.attach(image, SIZE)
        hosts.add_device(host.pid, "xvdu", number)
        host.run("mkfs.ext4", "-q", "/dev/xvdu")
        host.run("sh", "-c", "mkdir /mnt/data && mount /dev/xvdu /mnt/data && echo written > /mnt/data/note && sync")
        assert is_mounted_anywhere(number)
        hosts.kill(host.pid)
        assert not is_mounted_anywhere(number)
        eventually(lambda: detaches(image))


def detaches(image: Path) -> bool:
    """Whether nobody has it: a busy one would only be marked to go later. A free device may soon be another test's."""
    for loop in loops.bound(image):
        loops.release(loop)
    return not loops.bound(image)


def test_devices_come_and_go_and_a_name_can_get_another_device(quiet: Host) -> None:
    hosts.add_device(quiet.pid, "disk/by-id/vol-1", (7, 100))
    hosts.add_device(quiet.pid, "disk/by-id/vol-1", (7, 101))
    assert quiet.run("stat", "-c", "%F %t %T", "/dev/disk/by-id/vol-1").stdout == "block special file 7 65\n"
    assert not Path("/dev/disk/by-id/vol-1").exists()
    hosts.remove_device(quiet.pid, "disk/by-id/vol-1")
    hosts.remove_device(quiet.pid, "disk/by-id/vol-1")
    assert quiet.run("ls", "-A", "/dev/disk/by-id").stdout == ""


@pytest.mark.parametrize("name", ["../etc/passwd", "/dev/sda", "a/../../b"])
def test_a_device_stays_in_dev(quiet: Host, name: str) -> None:
    with pytest.raises(Refused, match="cannot be the name of a device"):
        hosts.add_device(quiet.pid, name, (7, 1))


def test_a_dead_host_gets_no_device(cloud: Cloud) -> None:
    host = cloud.start("late", 11)
    hosts.kill(host.pid)
    with pytest.raises(TryLater, match="is gone"):
        hosts.add_device(host.pid, "xvdu", (7, 1))
    hosts.remove_device(host.pid, "xvdu")
