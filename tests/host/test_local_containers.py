"""A real container runtime in a host of the local cloud: it runs our images, and ends without a trace."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from clusters.hosts import PATH, Cloud, Host, a_cloud, eventually
from host.debian import unpacked
from protokube.images import build
from protokube.local.base.paths import Paths
from protokube.local.cloud import cleanup
from protokube.local.host import cgroup_facts, cgroups, hosts, leftovers
from protokube.local.node import containerd
from protokube.local.node.containerd import RuntimeConfig

UNIFIED = cgroup_facts.is_unified(cgroup_facts.observe())
TREE = Path("/sys/fs/cgroup") if UNIFIED else Path("/sys/fs/cgroup/memory")
"""Where the groups of containers are, on a machine of either kind."""
PAUSE, ETCD = "registry.k8s.io/pause:3.2", "registry.k8s.io/etcd:3.4.23-0"


@pytest.fixture
def cloud() -> Iterator[Cloud]:
    with a_cloud() as made:
        yield made
        for host in made.hosts:
            if hosts.running(host.spec.folder):
                hosts.kill(host.pid)
        left = cgroups.find(cgroups.name(made.switch))
        assert cgroups.remove(left) == left


@pytest.fixture
def host(cloud: Cloud) -> Host:
    return a_host(cloud, "h1", 11)


def a_host(cloud: Cloud, name: str, number: int) -> Host:
    """With containerd, and two images of programs of this machine."""
    kept = cloud.root / "images"
    made = [
        build.of_pause(PAUSE, unpacked("busybox-static") / "bin/busybox"),
        build.of_program(ETCD, unpacked("etcd-server") / "usr/bin/etcd"),
    ]
    config = RuntimeConfig(
        cgroup=cgroups.name(cloud.switch),
        images={image.name: str(build.keep(image, kept)) for image in made},
        sandbox_image=PAUSE,
        plugins=str(unpacked("containernetworking-plugins") / "usr/lib/cni"),
    )
    file = cloud.root / "hosts" / name / str(containerd.RUNTIME_CONFIG).lstrip("/")
    file.parent.mkdir(parents=True)
    file.write_text(config.encode())
    path = f"{unpacked('containerd') / 'usr/bin'}:{unpacked('runc') / 'usr/sbin'}:{kept}:{PATH}"
    return cloud.start(name, number, units={"containerd.service": hosts.python(containerd.__name__)}, path=path)


def ready(host: Host) -> bool:
    return host.outside(str(containerd.READY)).exists()


def ctr(host: Host, *words: str, check: bool = True) -> str:
    ran = host.run("env", f"PATH={host.spec.path}", "ctr", "--namespace", containerd.NAMESPACE, *words, check=check)
    return ran.stdout


def groups(cloud: Cloud) -> set[Path]:
    return {group / "h1" for group in cgroups.find(cgroups.name(cloud.switch)) if (group / "h1").is_dir()}


def test_our_images_are_there_and_run(host: Host) -> None:
    eventually(lambda: ready(host), 60)
    assert {PAUSE, ETCD} <= set(ctr(host, "images", "list", "--quiet").split())
    assert "etcd Version: 3." in ctr(host, "run", "--rm", "--net-host", ETCD, "e", "/usr/local/bin/etcd", "--version")


def test_a_container_ends_with_its_host_and_leaves_nothing(cloud: Cloud, host: Host) -> None:
    eventually(lambda: ready(host), 60)
    ctr(host, "run", "--detach", PAUSE, "p")
    inside = eventually(  # it counts as started a moment before it becomes the program
        lambda: [pid for pid in hosts.processes(host.pid) if b"busybox" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    )
    assert len(inside) == 1
    assert len(groups(cloud)) >= (1 if UNIFIED else len(cgroup_facts.NEEDED_V1))
    hosts.kill(host.pid)
    assert not any(Path(f"/proc/{pid}").exists() for pid in inside)
    eventually(lambda: is_swept(cloud))


def is_swept(cloud: Cloud) -> bool:
    """It does not wait for the kernel, and is asked again with every host that starts."""
    cgroups.sweep(cgroups.name(cloud.switch), ["h1"])
    return not groups(cloud)


def test_containers_outlive_their_runtime_and_are_found_by_its_next_life(host: Host) -> None:
    eventually(lambda: ready(host), 60)
    ctr(host, "run", "--detach", PAUSE, "p")
    before = ctr(host, "task", "list")
    host.run("sh", "-c", "kill -9 $(cat /proc/[0-9]*/stat | sed -n 's/^\\([0-9]*\\) (containerd) .*/\\1/p')")
    assert eventually(lambda: ctr(host, "task", "list", check=False) == before, 30)
    assert "RUNNING" in before


def test_two_hosts_have_control_groups_of_their_own_and_see_no_others(cloud: Cloud, host: Host) -> None:
    other = a_host(cloud, "h2", 12)
    for each in (host, other):
        eventually(lambda each=each: ready(each), 60)  # type: ignore[misc]
        ctr(each, "run", "--detach", PAUSE, f"p-{each.spec.name}")
    seen = [each.run("find", f"{TREE}/k8s.io", "-name", "p-*").stdout.split() for each in (host, other)]
    assert seen == [[f"{TREE}/k8s.io/p-h1"], [f"{TREE}/k8s.io/p-h2"]]


def test_processes_that_come_later_are_in_the_namespace_of_the_first(host: Host) -> None:
    eventually(lambda: ready(host), 60)
    shown = host.python(
        "from pathlib import Path\n"
        "from protokube.local.host import cgroups\n"
        "cgroups.enter('unused', 'h1')\n"
        "print(Path('/proc/self/cgroup').read_text())\n"
    )
    trees = cgroup_facts.read(shown.strip())
    groups = {tree.group for tree in trees if tree.controllers or UNIFIED}
    assert groups == ({"/init"} if UNIFIED else {"/"})


def test_control_groups_that_a_killed_cloud_left_are_found_and_taken_away(tmp_path: Path) -> None:
    paths = Paths.at(tmp_path / "cloud")
    paths.create()
    group = (TREE if UNIFIED else Path("/sys/fs/cgroup/pids")) / cgroups.name(paths.switch)
    (group / "h1/kubepods").mkdir(parents=True)
    assert f"control group: {group}" in leftovers.describe(paths)
    assert f"removed the control groups {group.name}" in cleanup.remove(paths)
    assert not group.exists()
