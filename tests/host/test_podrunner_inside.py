"""The runner of static pods inside a host: volumes that come and go, real etcd."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from clusters.hosts import Cloud, Host, a_cloud, a_loop_device, a_pod, a_volume, at, eventually, is_mounted_anywhere
from clusters.pod_runner import a_long_time, sleepers
from protokube.binaries.product import Release
from protokube.local.etcd_choice import Needs, choose
from protokube.local.host import hosts

CACHE = Path(__file__).resolve().parents[2] / ".cache" / "binaries"


@pytest.fixture(scope="module")
def cloud() -> Iterator[Cloud]:
    with a_cloud() as made:
        yield made


@pytest.fixture(scope="module")
def host(cloud: Cloud) -> Host:
    return cloud.start("podded", 11, units={"kubelet.service": []})


def test_the_built_in_kubelet_starts_when_it_is_asked_for(cloud: Cloud) -> None:
    asked = cloud.start("asked", 12)
    asked.write_manifest("idle.json", a_pod("idle"))
    time.sleep(0.1)
    assert not asked.outside("/run/protokube/pods.json").exists()
    ask = (
        "from protokube.local.host.units import LocalUnits; "
        "print(LocalUnits(seconds=15).ensure_started('kubelet.service'))"
    )
    assert asked.run(sys.executable, "-c", ask).stdout == "True\n"
    eventually(lambda: asked.container("idle")["state"] == "running")
    hosts.kill(asked.pid)


def test_a_runner_that_dies_comes_back_with_its_pods(host: Host) -> None:
    long = a_long_time(5)
    host.write_manifest("back.json", a_pod("back", ["sleep", long]))
    eventually(lambda: host.container("back")["state"] == "running")
    (runner,) = eventually(lambda: found if len(found := runners(host)) == 1 else None)
    (pod,) = eventually(lambda: sleepers(long))
    inside = host.pods()["runner"]
    os.kill(runner, signal.SIGKILL)
    eventually(lambda: host.pods()["runner"] != inside and host.container("back")["state"] == "running")
    eventually(lambda: len(again := sleepers(long)) == 1 and again != [pod])


def runners(host: Host) -> list[int]:
    """The pod runner, and for a moment each child that has not become a program yet."""
    return [pid for pid in hosts.processes(host.pid) if b"protokube.local.pods.runner" in cmdline(pid)]


def cmdline(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def test_a_pod_ends_with_the_link_to_its_volume_and_the_volume_is_free_while_others_run(host: Host) -> None:
    """The life of an etcd member: its manifest lies on its disk, the disk goes when it has stopped."""
    with a_loop_device() as (_, number):
        hosts.add_device(host.pid, "xvdv", number)
        host.run(
            "sh", "-ec", "mkfs.ext4 -q /dev/xvdv; mkdir /mnt/main; mount /dev/xvdv /mnt/main; mkdir /mnt/main/data"
        )
        member = a_pod("member", ["sh", "-c", "echo kept > /var/member/note; exec sleep 1000"])
        member["spec"] |= a_volume("/mnt/main/data", "Directory")
        member["spec"]["containers"][0]["volumeMounts"] = at("/var/member")
        host.write_manifest("before.json", a_pod("before"))
        eventually(lambda: host.container("before")["state"] == "running")
        host.run(
            "sh",
            "-ec",
            "cat > /mnt/main/member.json; ln -s /mnt/main/member.json /etc/kubernetes/manifests/member.json",
            input=json.dumps(member),
        )
        eventually(lambda: host.run("cat", "/mnt/main/data/note", check=False).stdout == "kept\n")
        host.write_manifest("after.json", a_pod("after"))
        eventually(lambda: host.container("after")["state"] == "running")
        assert "target is busy" in host.run("sh", "-c", "cd /mnt/main && umount /mnt/main", check=False).stderr

        host.outside("/etc/kubernetes/manifests/member.json").unlink()
        eventually(lambda: "default/member" not in host.pods()["pods"])
        host.run("umount", "/mnt/main")

        assert not is_mounted_anywhere(number)
        assert host.container("before")["state"] == host.container("after")["state"] == "running"
        hosts.remove_device(host.pid, "xvdv")


def test_what_is_probed_without_a_host_is_the_address_of_the_host(host: Host) -> None:
    port = {"tcpSocket": {"port": 7777}, "periodSeconds": 0.1}
    listen = "import socket, time; s = socket.create_server(('10.77.0.11', 7777)); time.sleep(1000)"
    host.write_manifest("listens.json", a_pod("listens", [sys.executable, "-I", "-c", listen], readinessProbe=port))
    eventually(lambda: host.container("listens")["ready"] is True)


def not_from_elsewhere(version: str) -> Release:
    raise AssertionError(f"etcd {version} is to be found here, or in Debian")


def brought(host: Host, program: Path) -> Path:
    """A program of this machine at a place that the host sees."""
    inside = Path("/var/lib") / program.name
    host.outside(str(inside)).parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(program, host.outside(str(inside)))
    return inside


def test_real_etcd_runs_as_a_static_pod_and_keeps_its_data_when_it_is_killed(host: Host) -> None:
    found = choose(Needs(), CACHE, not_from_elsewhere)
    assert found.etcdctl
    # into the host's own /var: where this repository lies need not be visible inside
    etcd, etcdctl = (brought(host, program) for program in (found.etcd, found.etcdctl))
    health = {
        "httpGet": {"host": "127.0.0.1", "port": 2379, "path": "/health"},
        "periodSeconds": 0.2,
        "timeoutSeconds": 5,
    }
    flags = ["--data-dir=/var/etcd/data", "--listen-peer-urls=http://127.0.0.1:2380", "--unsafe-no-fsync"]
    if found.version.startswith("3.4"):
        flags.pop()
    pod = a_pod("etcd", [str(etcd), *flags], spec=a_volume("/var/lib/etcd-volume", "DirectoryOrCreate"))
    pod["spec"]["containers"][0] |= {"volumeMounts": at("/var/etcd"), "readinessProbe": health, "livenessProbe": health}
    host.write_manifest("etcd.json", pod)
    eventually(lambda: host.container("etcd")["ready"] is True, seconds=30)
    host.run(str(etcdctl), "put", "colour", "blue", env={"ETCDCTL_API": "3", "PATH": "/usr/bin"})

    (server,) = [pid for pid in hosts.processes(host.pid) if cmdline(pid).startswith(str(etcd).encode() + b"\0")]
    os.kill(server, signal.SIGKILL)

    eventually(lambda: host.container("etcd")["restarts"] >= 1 and host.container("etcd")["ready"], seconds=30)
    kept = host.run(str(etcdctl), "get", "colour", env={"ETCDCTL_API": "3", "PATH": "/usr/bin"})
    assert kept.stdout == "colour\nblue\n"
    assert (host.outside("/var/lib/etcd-volume") / "data" / "member").is_dir()
