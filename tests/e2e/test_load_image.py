"""`load image`: pods on every host find an image that is in no registry, also on hosts that come later."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from clusters.kubelet import KubeletCluster
from clusters.real import RealCluster, until
from e2e.pods import apply
from protokube.binaries import executables
from protokube.errors import ExitCode
from protokube.images import build
from protokube.images.build import Image
from protokube.local.bringup import CACHE

SECONDS = 300.0
NAME, WHOLE = "example/made-up:1", "docker.io/example/made-up:1"


@pytest.fixture(scope="module")
def cluster() -> Iterator[KubeletCluster]:
    with KubeletCluster() as made:
        made.up_with_kubelet(masters=3)
        until_ready(made, asked=names(made)[0])
        yield made


def an_archive(folder: Path, content: str) -> Path:
    """An image that shows its content, and stays."""
    busybox = executables.unpack("busybox-static", CACHE) / "bin/busybox"
    command = ("/busybox", "sleep", "2147483647")
    made = Image(name=NAME, files={"/busybox": busybox}, texts={"/content": content}, command=command)
    file = folder / f"{content}.tar"
    file.write_bytes(build.archive(made))
    return file


def names(cluster: KubeletCluster) -> list[str]:
    return sorted(str(each["name"]) for each in cluster.hosts())


def until_ready(cluster: KubeletCluster, *, asked: str) -> None:
    """Each host is a node that is ready, as one of them says."""
    for host in names(cluster):
        until(lambda host=host: cluster.node_is_ready(asked, host), f"{host} is ready", SECONDS, every=0.5)  # type: ignore[misc]


def load(cluster: KubeletCluster, *words: str) -> dict[str, Any]:
    said = cluster.run("load", "image", *words, "--cluster", cluster.name, "--output", "json")
    assert said.code == ExitCode.OK, said.err
    told: dict[str, Any] = json.loads(said.out)
    return told


def a_pod(name: str, node: str) -> dict[str, object]:
    container = {"name": "main", "image": NAME, "imagePullPolicy": "Never"}
    spec = {"nodeName": node, "terminationGracePeriodSeconds": 0, "containers": [container]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def shown_by_new_pods(cluster: KubeletCluster, prefix: str, hosts: list[str], asked: str = "") -> dict[str, str]:
    """What a new pod on each host has in it, once all of them run; `asked` is the host whose API server is used."""
    one = asked or hosts[0]
    apply(cluster, one, [a_pod(f"{prefix}-{host}", host) for host in hosts])

    def shown() -> dict[str, str]:
        show = ("--", "/busybox", "cat", "/content")
        found = {host: cluster.kubectl(one, "exec", f"{prefix}-{host}", *show) for host in hosts}
        return found if all(found.values()) else {}

    return until(shown, "every pod runs", SECONDS, every=0.5)


def kept(cluster: KubeletCluster) -> dict[str, int]:
    return {file.name: file.stat().st_mtime_ns for file in cluster.paths.images.iterdir()}


def test_a_loaded_image_runs_on_every_host_and_loading_it_twice_changes_nothing(
    cluster: KubeletCluster, tmp_path: Path
) -> None:
    hosts = names(cluster)
    archive = str(an_archive(tmp_path, "first"))

    told = load(cluster, archive)

    assert [(each["name"], each["change"]) for each in told["images"]] == [(WHOLE, "loaded")]
    assert told["hosts"] == [{"host": host, "state": "imported"} for host in hosts]
    assert shown_by_new_pods(cluster, "first", hosts) == dict.fromkeys(hosts, "first")

    before = kept(cluster)
    again = load(cluster, archive)

    assert [each["change"] for each in again["images"]] == ["already there"]
    assert again["hosts"] == [{"host": host, "state": "unchanged"} for host in hosts]
    assert kept(cluster) == before


def test_the_successor_of_a_killed_host_runs_it_too(cluster: KubeletCluster) -> None:
    gone = cluster.hosts()[0]
    before = names(cluster)
    os.kill(gone["pid"], signal.SIGKILL)
    until(lambda: len(names(cluster)) == 3 and gone["name"] not in names(cluster), "another host is there", SECONDS)
    (new,) = set(names(cluster)) - set(before)
    survivor = next(host for host in before if host != gone["name"])
    until_ready(cluster, asked=survivor)

    assert shown_by_new_pods(cluster, "successor", [new], survivor) == {new: "first"}


def test_new_pods_run_the_content_that_was_loaded_last_and_old_ones_go_on(
    cluster: KubeletCluster, tmp_path: Path
) -> None:
    hosts = names(cluster)
    until_ready(cluster, asked=hosts[0])

    told = load(cluster, str(an_archive(tmp_path, "second")))

    assert [each["change"] for each in told["images"]] == ["replaced"]
    assert shown_by_new_pods(cluster, "second", hosts) == dict.fromkeys(hosts, "second")
    running = cluster.get(hosts[0], "pods")["items"]
    old = [each for each in running if each["metadata"]["name"].startswith("first-") and node_of(each) in hosts]
    assert len(old) == 2
    assert {each["status"]["containerStatuses"][0]["restartCount"] for each in old} == {0}
    assert len(list(cluster.paths.images.glob("*.tar"))) == 1


def node_of(pod: dict[str, Any]) -> str:
    return str(pod["spec"]["nodeName"])


def test_bad_archives_are_refused_together_and_leave_nothing(cluster: KubeletCluster, tmp_path: Path) -> None:
    good, cut, text = an_archive(tmp_path, "third"), tmp_path / "cut.tar", tmp_path / "text.tar"
    cut.write_bytes(good.read_bytes()[:100_000])
    text.write_text("hello")
    before = kept(cluster)

    said = cluster.run("load", "image", str(good), str(cut), str(text), "./none.tar", "--cluster", cluster.name)

    assert (said.code, said.out) == (ExitCode.INVALID, "")
    assert "error: nothing was loaded: 3 problems" in said.err
    assert all(f"  {name}: " in said.err for name in (cut, text, "./none.tar"))
    assert kept(cluster) == before
    listed = cluster.with_path(names(cluster)[0], "ctr", "--namespace=k8s.io", "images", "list", f"name=={WHOLE}")
    again = load(cluster, str(an_archive(tmp_path, "second")))
    assert {each["state"] for each in again["hosts"]} == {"unchanged"}, listed.stdout


def test_a_cluster_without_the_real_kubelet_is_refused_with_the_way_to_one(tmp_path: Path) -> None:
    with RealCluster() as plain:
        plain.up("--masters", "1")
        said = plain.run("load", "image", str(an_archive(tmp_path, "first")), "--cluster", plain.name)

        assert (said.code, said.out) == (ExitCode.REFUSED, "")
        assert f"{plain.name} does not run the real kubelet" in said.err
        assert "--kubelet" in said.err
        assert list(plain.paths.images.iterdir()) == []
