"""Loaded images on hosts with a real containerd: those that run get them, those that come later bring them in."""

from __future__ import annotations

import hashlib
import os
import subprocess
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from clusters.daemon import RealCloud, kill, until
from host.debian import unpacked
from protokube.errors import Refused
from protokube.images import build
from protokube.images.archive import CONTAINERD_NAME, REF_NAME, judge
from protokube.images.build import Image
from protokube.images.reading import read_archive
from protokube.local.cloud.template import Template
from protokube.local.host import cgroups, hosts
from protokube.local.loading import image_store
from protokube.local.loading.delivery import Delivery, Outcome
from protokube.local.loading.image_store import Kept
from protokube.local.loading.load import machine
from protokube.local.node import containerd
from protokube.local.node.containerd import RuntimeConfig
from unit.images.archives import OCI, Layout, a_config, packed

SECONDS = 120.0
GROUP = "nodes"
EARLY = "docker.io/library/early:1"


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealCloud]:
    """Two hosts that run containerd and no kubelet; one of the images of their own was replaced before they started."""
    with RealCloud(tmp_path_factory.mktemp("load") / "dev.test") as made:
        made.start()
        load(made, an_archive(EARLY, "loaded"), deliver=False)
        made.group(GROUP, size=2, **template(made))
        yield made


def programs() -> str:
    return f"{unpacked('containerd') / 'usr/bin'}:{unpacked('runc') / 'usr/sbin'}:{Template().path}"


def template(cloud: RealCloud) -> dict[str, Any]:
    own = cloud.paths.root.parent / "own"
    own.mkdir()
    (own / "early.tar").write_bytes(an_archive(EARLY, "our own"))
    runtime_config = RuntimeConfig(
        cgroup=cgroups.name(cloud.paths.switch),
        images={EARLY: str(own / "early.tar")},
        sandbox_image="none",
        plugins="/none",
        loaded=str(cloud.paths.images),
    )
    return {
        "units": {"containerd.service": hosts.python(containerd.__name__)},
        "path": programs(),
        "shown": [str(cloud.paths.images), str(own)],
        "files": {str(containerd.RUNTIME_CONFIG): runtime_config.encode()},
        "master": False,
    }


def an_archive(name: str, content: str) -> bytes:
    return build.archive(Image(name=name, files={}, texts={"/content": content}))


def load(cloud: RealCloud, data: bytes, *, deliver: bool = True, seconds: float = SECONDS) -> list[Outcome]:
    """As the command does it."""
    file = cloud.paths.root.parent / f"{hashlib.sha256(data).hexdigest()}.tar"
    file.write_bytes(data)
    contents = read_archive(file)
    verdict = judge(contents, machine())
    assert not verdict.problems
    archive = Kept(contents.sha256, verdict.names)
    with image_store.locked(cloud.paths.images, SECONDS):
        image_store.keep(cloud.paths.images, [(file, archive)])
        return delivery(cloud, [archive], seconds).to_all() if deliver else []


def delivery(cloud: RealCloud, archives: Sequence[Kept], seconds: float) -> Delivery:
    ctr = unpacked("containerd") / "usr/bin/ctr"
    return Delivery(cloud.paths, cloud.admin, ctr, archives, time.monotonic() + seconds)


def names(cloud: RealCloud) -> list[str]:
    return sorted(each["name"] for each in cloud.running(GROUP, count=2))


def digest(cloud: RealCloud, host: str, name: str) -> str:
    """What a host has under a name, and shows to a kubelet; empty for nothing."""
    row = next(each for each in cloud.running(GROUP, count=2) if each["name"] == host)
    said = cloud.inside(
        row, "env", f"PATH={programs()}", "ctr", "--namespace", containerd.NAMESPACE, "images", "ls", f"name=={name}"
    ).stdout.splitlines()
    return said[1].split()[2] if len(said) > 1 and "io.cri-containerd.image=managed" in said[1] else ""


def await_image(cloud: RealCloud, host: str, name: str) -> None:
    """That it brings in by itself: its kubelet would wait for the mark."""
    until((cloud.paths.host(host) / str(containerd.LOADED).lstrip("/")).exists, SECONDS)
    until(lambda: digest(cloud, host, name), SECONDS)


def imported(hosts: Sequence[str], state: Any = "imported") -> list[Outcome]:
    return [Outcome(host, state) for host in hosts]


def test_a_host_brings_in_what_was_loaded_before_it_started_over_an_image_of_our_own(cloud: RealCloud) -> None:
    for host in names(cloud):
        await_image(cloud, host, EARLY)
    assert load(cloud, an_archive(EARLY, "loaded")) == imported(names(cloud), "unchanged")


def test_hosts_see_the_archives_and_nothing_else_of_the_clusters_folder_and_cannot_write_there(
    cloud: RealCloud,
) -> None:
    (host, _) = cloud.running(GROUP, count=2)
    root, folder = str(cloud.paths.root), str(cloud.paths.images)
    assert cloud.inside(host, "ls", root).stdout.split() == ["images"]
    assert image_store.INDEX in cloud.inside(host, "ls", folder).stdout
    assert "Read-only" in cloud.inside(host, "touch", f"{folder}/mine").stderr


def test_an_image_reaches_every_host_that_runs_and_twice_changes_nothing(cloud: RealCloud) -> None:
    name = "docker.io/example/web:1"
    first, second = (an_archive("example/web:1", content) for content in ("first", "second"))

    assert load(cloud, first) == imported(names(cloud))
    (before,) = {digest(cloud, host, name) for host in names(cloud)}
    assert load(cloud, first) == imported(names(cloud), "unchanged")
    assert load(cloud, second) == imported(names(cloud))
    (after,) = {digest(cloud, host, name) for host in names(cloud)}

    assert before
    assert after not in ("", before)


@pytest.mark.parametrize("annotation", [REF_NAME, CONTAINERD_NAME])
def test_a_short_name_of_an_oci_layout_is_found_as_the_kubelet_asks_for_it(cloud: RealCloud, annotation: str) -> None:
    layout = Layout()
    layer = packed({"content": annotation.encode()})
    layout.named(layout.image(machine(), layer), **{annotation: "short:2"})

    assert load(cloud, packed(layout.all())) == imported(names(cloud))

    assert all(digest(cloud, host, "docker.io/library/short:2") for host in names(cloud))


def test_an_image_for_several_architectures_needs_ours_alone(cloud: RealCloud) -> None:
    whole, ours = Layout(), Layout()
    layer = packed({"content": b"many"})
    whole.named(whole.platforms(machine(), "pdp11", layer=layer), **{CONTAINERD_NAME: "docker.io/library/many:1"})
    ours.image(machine(), layer)
    (index,) = (entry["digest"].replace("sha256:", "blobs/sha256/") for entry in whole.manifests)
    files = {path: data for path, data in whole.all().items() if path in {*ours.all(), index}}

    assert load(cloud, packed(files)) == imported(names(cloud))

    assert all(digest(cloud, host, "docker.io/library/many:1") for host in names(cloud))


def test_an_archive_that_containerd_refuses_is_told_with_its_words(cloud: RealCloud) -> None:
    layout = Layout()
    config = layout.tree(a_config(machine(), b"no layer of any known kind"))
    layer = {**layout.blob(b"no layer of any known kind"), "mediaType": "text/plain"}
    entry = layout.tree({"schemaVersion": 2, "config": config, "layers": [layer]})
    layout.named({**entry, "mediaType": f"{OCI}.manifest.v1+json"}, **{CONTAINERD_NAME: "docker.io/library/odd:1"})

    outcomes = load(cloud, packed(layout.all()))

    assert [(each.host, each.state) for each in outcomes] == [(host, "refused") for host in names(cloud)]
    assert all(each.why.startswith("ctr: ") for each in outcomes)


def test_a_host_whose_containerd_starts_again_is_waited_for(cloud: RealCloud) -> None:
    for host in cloud.running(GROUP, count=2):
        assert cloud.inside(host, "pkill", "-KILL", "--exact", "containerd").returncode == 0

    outcomes = load(cloud, an_archive("again:1", "again"))

    assert {each.state for each in outcomes} <= {"imported", "unchanged"}
    for name in names(cloud):
        await_image(cloud, name, "docker.io/library/again:1")


def test_a_host_that_hangs_is_named_and_keeps_no_other_host_from_its_images(cloud: RealCloud) -> None:
    hanging, other = names(cloud)
    cloud.admin.call("freeze_host", host=hanging)
    try:
        stuck, fine = load(cloud, an_archive("late:1", "late"), seconds=5)
    finally:
        cloud.admin.call("thaw_host", host=hanging)

    assert (stuck.host, stuck.state, fine) == (hanging, "failed", Outcome(other, "imported"))
    assert stuck.why
    later = load(cloud, an_archive("late:1", "late"))
    assert {each.state for each in later} <= {"imported", "unchanged"}


def test_a_host_that_dies_meanwhile_is_no_failure_and_its_successor_has_the_image(cloud: RealCloud) -> None:
    dying, other = names(cloud)
    pid = next(each["pid"] for each in cloud.running(GROUP, count=2) if each["name"] == dying)
    cloud.admin.call("freeze_host", host=dying)  # else it might be done before it dies
    with ThreadPoolExecutor(1) as beside:
        loading = beside.submit(load, cloud, an_archive("inherited:1", "x"))
        until(lambda: "inherited:1" in (cloud.paths.images / image_store.INDEX).read_text(), SECONDS)
        until(lambda: digest(cloud, other, "docker.io/library/inherited:1"), SECONDS)
        kill(pid)
        outcomes = loading.result(SECONDS)

    assert outcomes == [Outcome(dying, "gone"), Outcome(other, "imported")]
    until(lambda: dying not in names(cloud), SECONDS)
    (successor,) = set(names(cloud)) - {other}
    await_image(cloud, successor, "docker.io/library/inherited:1")


def test_an_archive_that_was_damaged_on_the_disk_does_not_keep_a_new_host_down(cloud: RealCloud) -> None:
    load(cloud, an_archive("broken:1", "x"))
    load(cloud, an_archive("whole:1", "x"))
    (archive,) = [
        each for each in image_store.read_index(cloud.paths.images) if "docker.io/library/broken:1" in each.names
    ]
    os.truncate(cloud.paths.images / archive.file, 3000)
    gone, other = cloud.running(GROUP, count=2)
    kill(gone["pid"])
    until(lambda: gone["name"] not in names(cloud), SECONDS)
    (successor,) = set(names(cloud)) - {other["name"]}

    await_image(cloud, successor, "docker.io/library/whole:1")

    assert not digest(cloud, successor, "docker.io/library/broken:1")
    assert "broken:1: " in (cloud.paths.host(successor) / "var/log/containerd.service.log").read_text()


def test_a_full_disk_is_an_error_in_words_and_what_was_there_stays(tmp_path: Path) -> None:
    folder = tmp_path / "images"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "images", folder], check=True)
    try:
        before = image_store.keep(folder, [a_file(tmp_path, "small")])
        with pytest.raises(Refused, match="No space left on device"):
            image_store.keep(folder, [a_file(tmp_path, "large" * 1_000_000)])

        assert image_store.read_index(folder) == before
        assert {each.name for each in folder.iterdir()} == {before[0].file, image_store.INDEX}
    finally:
        subprocess.run(["umount", folder], check=True)


def a_file(folder: Path, content: str) -> tuple[Path, Kept]:
    (folder / "web.tar").write_bytes(an_archive("web:1", content))
    return folder / "web.tar", Kept(read_archive(folder / "web.tar").sha256, {"web:1": "web:1"})


def test_hosts_without_a_container_runtime_have_no_images(tmp_path: Path) -> None:
    with RealCloud(tmp_path / "plain.test") as plain:
        plain.start()
        plain.group("masters")
        with pytest.raises(Refused, match=r"plain\.test does not run the real kubelet") as refused:
            delivery(plain, [], SECONDS).to_all()
    assert "up --cluster plain.test --kubelet" in refused.value.hint
