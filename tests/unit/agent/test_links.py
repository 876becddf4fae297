"""Manifests that live on volumes: only such links are ours, and each is known by the place it leads to."""

from __future__ import annotations

from pathlib import Path

import pytest

from builders.agent import a_round
from protokube.agent import links
from protokube.agent.edges import Edges


@pytest.fixture
def edges(tmp_path: Path) -> Edges:
    folder = tmp_path / "etc/kubernetes/manifests"
    folder.mkdir(parents=True)
    for name, target in (
        ("etcd.manifest", "/mnt/master-vol-a/k8s.io/manifests/etcd.manifest"),
        ("etcd-events.manifest", "/mnt/master-vol-e/k8s.io/manifests/etcd-events.manifest"),
        ("other.manifest", "/opt/other.manifest"),
        ("almost.manifest", "/mntx/master-vol-a/a.manifest"),
    ):
        (folder / name).symlink_to(target)
    (folder / "kube-apiserver.manifest").write_text("a file of somebody else\n")
    return a_round(tmp_path).edges


def test_links_that_lead_to_volumes_are_ours_and_nothing_else_is(edges: Edges) -> None:
    assert [link.name for link, _ in links.all_links(edges)] == ["etcd-events.manifest", "etcd.manifest"]


def test_a_link_is_found_by_the_volume_it_leads_to(edges: Edges) -> None:
    assert [link.name for link in links.pointing_into(edges, edges.inside("/mnt/master-vol-a"))] == ["etcd.manifest"]
    assert links.pointing_into(edges, edges.inside("/mnt/master-vol")) == []


def test_a_link_into_a_volume_that_is_not_mounted_dangles(edges: Edges) -> None:
    mounted = [edges.inside("/mnt/master-vol-e")]
    assert [link.name for link in links.dangling(edges, mounted)] == ["etcd.manifest"]
    assert len(links.dangling(edges, [])) == 2


def test_a_link_is_removed_without_following_it(edges: Edges, tmp_path: Path) -> None:
    target = tmp_path / "mnt/master-vol-a/k8s.io/manifests/etcd.manifest"
    target.parent.mkdir(parents=True)
    target.write_text("pod\n")
    (link,) = links.pointing_into(edges, edges.inside("/mnt/master-vol-a"))
    links.remove(link)
    links.remove(link)  # gone is gone
    assert not link.is_symlink()
    assert target.read_text() == "pod\n"


def test_without_a_manifest_folder_there_are_no_links(tmp_path: Path) -> None:
    assert list(links.all_links(a_round(tmp_path).edges)) == []
