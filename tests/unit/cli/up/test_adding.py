"""What must hold before Kubernetes is added to a cluster that runs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from builders.revisions import CLUSTER, a_master, a_revision, keep, with_settings
from protokube.cli.up.adding import check_free, had_kubernetes, prefix_of
from protokube.errors import Refused
from protokube.store.memory import MemoryStore


def test_keys_that_kubernetes_would_take_for_its_own_are_refused_and_others_are_not() -> None:
    check_free("main", "/registry", [])
    check_free("main", "/registry", ["/registryx/a"])
    with pytest.raises(Refused, match="etcd main has keys below /registry/") as refused:
        check_free("main", "/registry", ["/registry/pods/a"])

    assert refused.value.saw == "/registry/pods/a"
    assert "etcd-prefix" in refused.value.hint


def test_the_place_of_objects_is_that_of_the_flag() -> None:
    wanted = a_master()
    api, *others = wanted.components
    moved = replace(api, flags={**api.flags, "etcd-prefix": "/k8s/"})

    assert prefix_of(wanted) == prefix_of(with_settings()) == "/registry"
    assert prefix_of(replace(wanted, components=(moved, *others))) == "/k8s"


def test_objects_of_an_addition_that_was_undone_are_the_cluster_s_own() -> None:
    store = MemoryStore("had")
    keep(store, a_revision(1, with_settings()))
    assert not had_kubernetes(store, CLUSTER)
    keep(store, a_revision(2))
    assert had_kubernetes(store, CLUSTER)
