"""The layout of kops, path by path."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protokube.errors import Refused
from protokube.store import layout
from protokube.store.memory import MemoryStore
from protokube.store.paths import why_not

C = "dev.example.com"


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (layout.config(C), "dev.example.com/config"),
        (layout.complete_spec(C), "dev.example.com/cluster.spec"),
        (layout.instance_group(C, "nodes"), "dev.example.com/instancegroup/nodes"),
        (layout.instance_groups(C), "dev.example.com/instancegroup"),
        (layout.certificate(C, "ca", "6512"), "dev.example.com/pki/issued/ca/6512.crt"),
        (layout.private_key(C, "ca", "6512"), "dev.example.com/pki/private/ca/6512.key"),
        (layout.keyset(C, "issued", "ca"), "dev.example.com/pki/issued/ca/keyset.yaml"),
        (layout.ssh_public_key(C, "admin", "c5:af"), "dev.example.com/pki/ssh/public/admin/c5:af"),
        (layout.secret(C, "admin"), "dev.example.com/secrets/admin"),
        (layout.addon_channel(C), "dev.example.com/addons/bootstrap-channel.yaml"),
        (layout.addon(C, "dns", "v1.yaml"), "dev.example.com/addons/dns/v1.yaml"),
        (layout.etcd_manifest(C, "main"), "dev.example.com/manifests/etcd/main.yaml"),
        (layout.manifest(C, "channels", "x.yaml"), "dev.example.com/manifests/channels/x.yaml"),
        (layout.etcd_backups(C, "events"), "dev.example.com/backups/etcd/events"),
        (layout.etcd_backup(C, "main", "2026", "snap"), "dev.example.com/backups/etcd/main/2026/snap"),
        (layout.etcd_control(C, "main"), "dev.example.com/backups/etcd/main/control/etcd-cluster-spec"),
    ],
)
def test_everything_lies_where_the_original_put_it(path: str, expected: str) -> None:
    assert path == expected


@pytest.mark.parametrize("name", ["../../other/secrets/admin", "a/b", "..", "", "a\0", "."])
@pytest.mark.parametrize(
    "make",
    [
        lambda name: layout.instance_group(C, name),
        lambda name: layout.secret(C, name),
        lambda name: layout.addon(C, "dns", name),
        layout.config,
    ],
    ids=["group", "secret", "addon", "cluster"],
)
def test_a_name_is_one_part_of_a_path_or_refused(make: Callable[[str], str], name: str) -> None:
    with pytest.raises(Refused):
        make(name)


@given(st.text(max_size=20), st.text(max_size=20))
def test_two_different_groups_never_share_a_path(one: str, other: str) -> None:
    paths = []
    for name in (one, other):
        try:
            paths.append(layout.instance_group(C, name))
        except Refused:
            return
    assert (paths[0] == paths[1]) == (one == other)
    assert not why_not(paths[0])


def test_clusters_are_the_folders_that_hold_a_config() -> None:
    store = MemoryStore("layout-clusters")
    for name in ("prod.example.com", "dev.example.com"):
        store.put(layout.config(name), b"kind: Cluster")
        store.put(layout.instance_group(name, "nodes"), b"kind: InstanceGroup")
    store.put(layout.complete_spec("half.example.com"), b"")
    store.put("dev.example.com/addons/config", b"not a cluster")
    store.put("config", b"not a cluster either")

    assert layout.clusters(store) == ("dev.example.com", "prod.example.com")


def test_an_empty_store_has_no_clusters() -> None:
    assert layout.clusters(MemoryStore("layout-empty")) == ()
