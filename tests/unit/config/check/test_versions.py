"""Versions that go together: images, etcd, the runtime, admission plugins, feature gates."""

from __future__ import annotations

import pytest

from builders.config import a_group, a_spec, completed, problems, the_problem, warnings
from protokube.config.complete import complete


@pytest.mark.parametrize(
    ("version", "message"),
    [
        ("3.3.10", "etcd 3.3.10 is older than 3.4, the oldest supported"),
        ("3.5.0", "etcd 3.5.0 can corrupt its data"),
        ("3.5.2", "etcd 3.5.2 can corrupt its data"),
        ("latest", "'latest' is not a version"),
    ],
)
def test_an_etcd_that_cannot_be_trusted_is_a_problem(version: str, message: str) -> None:
    problem = the_problem(etcdClusters=[{"name": "main", "version": version}])

    assert (problem.path, problem.message) == ("etcdClusters.main.version", message)
    assert problem.hint


@pytest.mark.parametrize(
    ("version", "kubernetes"),
    [
        ("3.4.0", "1.30.4"), ("3.5.3", "1.30.4"), ("3.4.31", "1.36.4"), ("3.5.13", "1.36.4"), ("v3.5.21", "1.31.0"),
        ("3.6.0", "1.36.4"),
    ],
)  # fmt: skip
def test_an_etcd_we_know_is_fine(version: str, kubernetes: str) -> None:
    config = completed(kubernetesVersion=kubernetes, etcdClusters=[{"name": "main", "version": version}])
    assert warnings(config) == {}


@pytest.mark.parametrize("version", ["3.4.0", "3.4.23", "3.4.30", "3.5.3", "3.5.12"])
@pytest.mark.parametrize("kubernetes", ["1.31.0", "1.36.4"])
def test_an_etcd_that_is_too_old_for_its_kubernetes_is_a_warning(version: str, kubernetes: str) -> None:
    config = completed(kubernetesVersion=kubernetes, etcdClusters=[{"name": "main", "version": version}])

    warning = warnings(config)["etcdClusters.main.version"]

    assert warning.message.startswith(f"etcd {version} does not answer progress requests, which Kubernetes 1.3")
    assert "3.5.13" in warning.hint


def test_an_etcd_whose_user_is_not_kubernetes_may_be_any_we_know() -> None:
    clusters = [{"name": "main"}, {"name": "other", "version": "3.4.23"}]
    assert warnings(completed(kubernetesVersion="1.36.4", etcdClusters=clusters)) == {}


def test_where_no_kubernetes_runs_nothing_is_said_about_what_goes_with_it() -> None:
    spec = a_spec(etcdClusters=[{"name": "main", "version": "3.4.23"}])
    assert warnings(complete(spec)) != {}
    assert warnings(complete(spec, without_kubernetes=True)) == {}


def test_an_etcd_not_seen_yet_is_a_warning() -> None:
    found = warnings(completed(etcdClusters=[{"name": "main", "version": "3.7.1"}]))

    assert (
        found["etcdClusters.main.version"].message
        == "etcd 3.7 is newer than the newest known version: its file is that of 3.6"
    )


@pytest.mark.parametrize(
    ("component", "tag", "version", "fits"),
    [
        ("kubeAPIServer", "v1.34.1", "1.34.0", True),
        ("kubeAPIServer", "v1.33.0", "1.34.0", False),
        ("kubeControllerManager", "v1.33.0", "1.34.0", True),
        ("kubeControllerManager", "v1.32.0", "1.34.0", False),
        ("kubeScheduler", "v1.35.0", "1.34.0", False),
        ("kubeProxy", "v1.31.0", "1.34.0", True),
        ("kubeProxy", "v1.30.0", "1.34.0", False),
        ("kubeProxy", "v1.25.0", "1.27.0", True),
        ("kubeProxy", "v1.24.0", "1.27.0", False),
        ("kubeProxy", "latest", "1.34.0", True),
    ],
)
def test_images_may_lag_behind_the_api_server_by_as_much_as_kubernetes_allows(
    component: str, tag: str, version: str, fits: bool
) -> None:
    fields = {component: {"image": f"registry.example.com:5000/x:{tag}"}, "kubernetesVersion": version}
    if fits:
        completed(**fields)
    else:
        problem = the_problem(**fields)
        assert problem.path == f"{component}.image"
        assert f"is not compatible with Kubernetes {version}" in problem.message
        assert problem.hint


@pytest.mark.parametrize("field", ["enableAdmissionPlugins", "appendAdmissionPlugins", "disableAdmissionPlugins"])
def test_a_plugin_that_is_gone_keeps_an_api_server_from_starting(field: str) -> None:
    found = problems(kubeAPIServer={field: ["PodSecurityPolicy"]}, kubernetesVersion="1.25.0")

    assert (
        found[f"kubeAPIServer.{field}[0]"].message == "Kubernetes 1.25 removed the admission plugin PodSecurityPolicy"
    )
    completed(kubeAPIServer={field: ["PodSecurityPolicy"]}, kubernetesVersion="1.24.0")


def test_a_plugin_is_not_both_on_and_off() -> None:
    problem = the_problem(kubeAPIServer={"disableAdmissionPlugins": ["NodeRestriction", "LimitRanger"]})

    assert problem.path == "kubeAPIServer.disableAdmissionPlugins"
    assert problem.message == "NodeRestriction is both enabled and disabled"


def test_docker_can_be_driven_up_to_1_23() -> None:
    completed(containerRuntime="docker", kubernetesVersion="1.23.17")

    problem = the_problem(containerRuntime="docker", kubernetesVersion="1.24.0")
    assert (problem.path, problem.message) == ("containerRuntime", "Kubernetes 1.24 does not support Docker")


def test_settings_of_docker_that_nothing_reads_are_a_warning() -> None:
    unused = completed(docker={"logDriver": "json-file"})
    used = completed(docker={"logDriver": "x"}, containerRuntime="docker", kubernetesVersion="1.23.0")

    assert warnings(unused)["docker"].message == "is not used: the container runtime is containerd"
    assert warnings(used) == {}


@pytest.mark.parametrize(
    "component",
    ["kubeAPIServer", "kubeControllerManager", "kubeScheduler", "kubeProxy", "kubelet", "masterKubelet"],
)
def test_a_feature_gate_is_open_or_closed_and_told_once(component: str) -> None:
    problem = the_problem(a_group("a"), a_group("b"), **{component: {"featureGates": {"A": "True", "B": "enabled"}}})

    assert problem.path == f"{component}.featureGates.B"
    assert problem.message == "'enabled' is not true or false"


def test_a_feature_gate_of_one_groups_kubelet_is_checked_there() -> None:
    problem = the_problem(a_group("a", kubelet={"featureGates": {"A": ""}}))

    assert problem.path == "instanceGroups.a.kubelet.featureGates.A"
