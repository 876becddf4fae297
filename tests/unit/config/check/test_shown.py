"""A warning for a file in the directory of all keys: the component that uses it could read all of them."""

from __future__ import annotations

from typing import Any

import pytest

from builders.config import EXAMPLES, completed, warnings
from protokube.config.complete import complete
from protokube.launch.components import components
from protokube.manifests.component import pod
from protokube.spec.parse import parse

SHOWN = "can read all of /srv/kubernetes, also keys of others"


@pytest.mark.parametrize(
    ("fields", "path", "component"),
    [
        ({"kubeScheduler": {"clientCAFile": "/srv/kubernetes/ca.crt"}}, "kubeScheduler.clientCAFile", "kube-scheduler"),
        ({"kubeProxy": {"kubeconfig": "/srv/kubernetes/proxy"}}, "kubeProxy.kubeconfig", "kube-proxy"),
        (
            {"kubeAPIServer": {"auditPolicyFile": "/srv/kubernetes/audit.yaml"}},
            "kubeAPIServer.auditPolicyFile",
            "kube-apiserver",
        ),
        (
            {"kubeAPIServer": {"serviceAccountKeyFile": ["/srv/kubernetes/own.pub"]}},
            "kubeAPIServer.serviceAccountKeyFile",
            "kube-apiserver",
        ),
        (
            {"kubeAPIServer": {"extraFlags": {"peer-ca-file": "/srv/kubernetes/peers.crt"}}},
            "kubeAPIServer.extraFlags.peer-ca-file",
            "kube-apiserver",
        ),
    ],
)
def test_a_file_among_the_keys_of_all_is_a_warning_that_says_where_it_should_lie(
    fields: dict[str, Any], path: str, component: str
) -> None:
    config = completed(cloud="local", **fields)
    found = warnings(config)[path]
    assert SHOWN in found.message
    assert found.hint.startswith(f"use its own directory: /srv/kubernetes/{component}/")
    (shown,) = [each for each in components(config, nodes=True) if each.name == component]
    assert "path: /srv/kubernetes\n" in pod(shown)


def test_a_file_beside_the_folder_of_keys_shows_that_as_well() -> None:
    warning = warnings(completed(kubeScheduler={"clientCAFile": "/srv/ca.crt"}))["kubeScheduler.clientCAFile"]
    assert "all of /srv, also keys" in warning.message


def test_a_file_in_its_own_folder_or_elsewhere_is_not() -> None:
    own = {"auditPolicyFile": "/srv/kubernetes/kube-apiserver/own.yaml", "oidcCAFile": "/srv/kubernetes/assets/ca"}
    assert warnings(completed(kubeAPIServer=own)) == {}
    assert warnings(completed(kubeScheduler={"clientCAFile": "/etc/own/ca.crt"})) == {}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_what_we_decide_ourselves_lies_where_nobody_else_sees_it(path: Any) -> None:
    config = complete(parse([(path.name, path.read_text())]))
    assert not [each for each in config.warnings if "keys of others" in each.message]
    for each in components(config, nodes=True):
        assert "path: /srv/kubernetes\n" not in pod(each)
