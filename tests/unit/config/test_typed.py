"""A complete configuration as typed values: nothing that must be decided is missing."""

from __future__ import annotations

import pytest

from builders.config import EXAMPLES, a_group, completed
from protokube.config.complete import complete
from protokube.config.typed import build, typed
from protokube.spec.cluster import Cluster
from protokube.spec.etcd import EtcdMember
from protokube.spec.machines import FileAsset, Hook
from protokube.spec.parse import parse


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_leaves_nothing_undecided(path: object) -> None:
    config = complete(parse([("x", path.read_text("utf-8"))]))  # type: ignore[attr-defined]

    found = typed(config)

    assert found.name == config.name
    assert found.cluster.kubernetes_version == config.cluster["kubernetesVersion"]
    assert found.groups.keys() == config.groups.keys()


def test_values_inside_are_typed_too_and_zero_false_and_empty_are_kept() -> None:
    config = completed(
        a_group("pool", minSize=0, kubelet={"failSwapOn": False, "hostnameOverride": ""}),
        fileAssets=[{"name": "motd", "content": ""}],
        hooks=[{"name": "x.service", "manifest": "Type=oneshot", "enabled": False}],
    )

    found = typed(config)

    assert found.groups["pool"].min_size == 0
    assert found.groups["pool"].kubelet.fail_swap_on is False
    assert found.groups["pool"].kubelet.hostname_override == ""
    assert found.cluster.file_assets == {"motd": FileAsset(content="")}
    assert found.cluster.hooks == [Hook(name="x.service", manifest="Type=oneshot", enabled=False)]
    assert isinstance(found.cluster.etcd_clusters["main"].members["a"], EtcdMember)
    assert found.cluster.kubelet.node_ip is None


def test_a_field_that_was_left_undecided_is_a_bug_that_names_it() -> None:
    tree = dict(completed().cluster)
    del tree["zones"]

    with pytest.raises(LookupError, match="zones was left undecided"):
        build(Cluster, tree, "")
