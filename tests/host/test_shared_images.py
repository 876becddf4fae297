"""Hosts with a real containerd share the images that their cluster has prepared; none changes what another has."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from clusters.daemon import RealCloud, kill, until
from host.debian import unpacked
from protokube.images import build
from protokube.images.build import Image
from protokube.local.cloud.template import Template
from protokube.local.host import cgroups, hosts
from protokube.local.node import containerd, imported, prepared
from protokube.local.node.containerd import RuntimeConfig

SECONDS = 120.0
GROUP = "nodes"
RELEASED, OWN = "docker.io/example/released:1", "docker.io/example/own:1"
BUSYBOX = "/busybox"
LARGE = 8 << 20
"""Bytes that are in an image, and must not be in a host."""
PROGRAM = f"{prepared.SHARED[1]}/*/fs{BUSYBOX}"


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def cloud(tmp_path: Path, cache: Path) -> Iterator[RealCloud]:
    """Two hosts that have no archive to import."""
    with RealCloud(tmp_path / "shared.test") as made:
        made.start()
        made.group(GROUP, size=2, **template(made, prepared.link(a_root(cache), made.paths.prepared)))
        yield made


def a_root(cache: Path) -> Path:
    """As `up` makes it: our own image beside released ones."""
    busybox = unpacked("busybox-static") / "bin/busybox"
    archives = {
        name: build.keep(Image(name=name, files={BUSYBOX: busybox}, texts=texts), cache)
        for name, texts in ((RELEASED, {"/large": "x" * LARGE}), (OWN, {"/own": "ours"}))
    }
    programs = unpacked("containerd") / "usr/bin"
    base = imported.obtain({RELEASED: archives[RELEASED]}, programs, cache, containerd.DISABLED)
    return imported.obtain(archives, programs, cache, containerd.DISABLED, base)


def path() -> str:
    return f"{unpacked('containerd') / 'usr/bin'}:{unpacked('runc') / 'usr/sbin'}:{Template().path}"


def template(cloud: RealCloud, root: Path) -> dict[str, Any]:
    runtime_config = RuntimeConfig(
        cgroup=cgroups.name(cloud.paths.switch),
        images={RELEASED: "/none", OWN: "/none"},
        sandbox_image="none",
        plugins="/none",
        prepared=str(root),
    )
    return {
        "units": {"containerd.service": hosts.python(containerd.__name__)},
        "path": path(),
        "shown": [str(cloud.paths.prepared)],
        "files": {str(containerd.RUNTIME_CONFIG): runtime_config.encode()},
        "master": False,
    }


def both(cloud: RealCloud) -> list[dict[str, Any]]:
    """The hosts, once they have images; a kubelet would wait for the same mark."""
    found = cloud.running(GROUP, count=2)
    for host in found:
        until(outside(cloud, host, str(containerd.READY)).exists, SECONDS)
    return sorted(found, key=lambda host: str(host["name"]))


def outside(cloud: RealCloud, host: dict[str, Any], path: str) -> Path:
    return cloud.paths.host(str(host["name"])) / path.lstrip("/")


def own_root(cloud: RealCloud, host: dict[str, Any]) -> Path:
    return outside(cloud, host, str(prepared.ROOT))


def ctr(cloud: RealCloud, host: dict[str, Any], *words: str) -> str:
    ran = cloud.inside(host, "env", f"PATH={path()}", "ctr", f"--namespace={containerd.NAMESPACE}", *words)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def run(cloud: RealCloud, host: dict[str, Any], image: str, *command: str) -> str:
    """What a command says in a container's file system: the image below, a writable layer of the host above."""
    place = "/mnt/of-a-test"
    outside(cloud, host, place).mkdir(exist_ok=True)
    ctr(cloud, host, "images", "mount", "--rw", image, place)
    try:
        assert cloud.inside(host, "stat", "--file-system", "--format=%T", place).stdout.strip() == "overlayfs"
        ran = cloud.inside(host, "chroot", place, BUSYBOX, *command)
        assert ran.returncode == 0, ran.stderr
        return ran.stdout
    finally:
        ctr(cloud, host, "images", "unmount", "--rm", place)


def test_hosts_have_the_images_without_a_copy_of_them(cloud: RealCloud) -> None:
    for host in both(cloud):
        assert set(ctr(cloud, host, "images", "list", "--quiet").split()) >= {RELEASED, OWN}
        assert run(cloud, host, OWN, "cat", "/own") == "ours"
        assert run(cloud, host, RELEASED, "wc", "-c", "/large").split()[0] == str(LARGE)
        held = sum(file.lstat().st_blocks * 512 for file in own_root(cloud, host).rglob("*"))
        assert held < LARGE / 4


def test_root_of_a_host_cannot_write_to_what_it_shares(cloud: RealCloud) -> None:
    host, _ = both(cloud)
    (program,) = {file.resolve() for file in own_root(cloud, host).glob(PROGRAM) if (file.parent / "own").exists()}

    assert program.is_relative_to(cloud.paths.prepared)
    for command in (("touch", str(program)), ("rm", str(program)), ("touch", str(program.parent / "more"))):
        assert "Read-only file system" in cloud.inside(host, *command).stderr


def test_what_a_container_changes_stays_on_its_host(cloud: RealCloud) -> None:
    first, second = both(cloud)

    assert run(cloud, first, OWN, "sh", "-c", f"echo mine > /own; {BUSYBOX} cat /own") == "mine\n"

    assert run(cloud, second, OWN, "cat", "/own") == "ours"
    assert run(cloud, first, OWN, "cat", "/own") == "ours"


def test_what_one_host_removes_stays_on_the_others(cloud: RealCloud) -> None:
    first, second = both(cloud)

    def nothing_left() -> bool:
        """A containerd that has just started names the images that it finds a second time, by their configurations."""
        if names := ctr(cloud, first, "images", "list", "--quiet").split():
            ctr(cloud, first, "images", "remove", "--sync", *names)
        return not list(own_root(cloud, first).glob(PROGRAM))

    until(nothing_left, SECONDS)

    assert run(cloud, second, OWN, "cat", "/own") == "ours"
    assert all(prepared.is_whole(root) for root in cloud.paths.prepared.iterdir())


def test_hosts_that_run_and_hosts_that_come_later_do_not_need_the_cache(cloud: RealCloud, cache: Path) -> None:
    dying, stays = both(cloud)

    shutil.rmtree(cache)
    kill(int(dying["pid"]))
    until(lambda: dying["name"] not in {each["name"] for each in cloud.running(GROUP, count=2)}, SECONDS)

    for host in both(cloud):
        assert run(cloud, host, RELEASED, "wc", "-c", "/large").split()[0] == str(LARGE)
    assert stays["name"] in {host["name"] for host in both(cloud)}


def test_containerd_that_starts_again_has_its_images_and_what_the_host_added(cloud: RealCloud) -> None:
    host, _ = both(cloud)
    ctr(cloud, host, "images", "tag", OWN, "docker.io/example/other:1")

    assert cloud.inside(host, "pkill", "-KILL", "--exact", "containerd").returncode == 0

    until(lambda: "other:1" in cloud.inside(
        host, "env", f"PATH={path()}", "ctr", f"--namespace={containerd.NAMESPACE}", "images", "list", "--quiet"
    ).stdout, SECONDS)  # fmt: skip
    assert run(cloud, host, "docker.io/example/other:1", "cat", "/own") == "ours"


def test_a_cloud_that_is_removed_leaves_the_cache_as_it_was(cloud: RealCloud, cache: Path) -> None:
    both(cloud)
    (mine,) = cloud.paths.prepared.iterdir()
    kept = cache / imported.FOLDER / mine.name

    cloud.__exit__(None, None, None)

    assert not cloud.paths.root.exists()
    assert prepared.is_whole(kept)
