"""API discovery: the path of an object."""

from __future__ import annotations

import pytest

from builders.addons import MemoryKube, a_ref
from protokube.kube.resources import Resources, UnknownKind


@pytest.fixture
def kube() -> MemoryKube:
    return MemoryKube()


@pytest.mark.parametrize(
    ("which", "path"),
    [
        (a_ref("a"), "/api/v1/namespaces/kube-system/configmaps/a"),
        (a_ref("a", namespace=""), "/api/v1/namespaces/default/configmaps/a"),
        (a_ref("a", "Namespace", "ignored"), "/api/v1/namespaces/a"),
        (a_ref("a", "Deployment", "x", "apps"), "/apis/apps/v1/namespaces/x/deployments/a"),
        (
            a_ref("a:b", "ClusterRole", "", "rbac.authorization.k8s.io"),
            "/apis/rbac.authorization.k8s.io/v1/clusterroles/a%3Ab",
        ),
        (a_ref("../b"), "/api/v1/namespaces/kube-system/configmaps/..%2Fb"),
    ],
)
def test_an_object_is_where_the_server_keeps_its_kind(kube: MemoryKube, which: object, path: str) -> None:
    assert Resources(kube).path(which) == path  # type: ignore[arg-type]


def test_the_version_that_is_asked_for_is_taken(kube: MemoryKube) -> None:
    with pytest.raises(UnknownKind, match="apps/v1beta9"):
        Resources(kube).path(a_ref("a", "Deployment", "x", "apps"), "apps/v1beta9")


@pytest.mark.parametrize("which", [a_ref("a", "Widget"), a_ref("a", "Widget", "", "example.com")])
def test_a_kind_that_is_not_served_is_waited_for(kube: MemoryKube, which: object) -> None:
    with pytest.raises(UnknownKind):
        Resources(kube).path(which)  # type: ignore[arg-type]


def test_each_group_is_asked_for_once(kube: MemoryKube) -> None:
    resources = Resources(kube)

    for name in "abc":
        resources.path(a_ref(name))

    assert len(kube.calls) == 1
