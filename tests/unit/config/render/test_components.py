"""Flags and files of every component, as they are written."""

from __future__ import annotations

import pytest

from builders.config import a_group, completed, file_of, flags, kubelet_file, kubelet_flags, origin
from protokube.config.render.components import scheduler_api
from protokube.config.why import flatten
from protokube.spec.version import Version


@pytest.mark.parametrize(
    ("minor", "name"),
    [(20, "v1beta1"), (21, "v1beta1"), (22, "v1beta2"), (23, "v1beta3"), (24, "v1beta3"), (25, "v1"), (36, "v1")],
)
def test_the_scheduler_reads_the_newest_form_its_version_knows(minor: int, name: str) -> None:
    assert scheduler_api(Version(1, minor, 4)) == f"kubescheduler.config.k8s.io/{name}"
    content = file_of(completed(kubernetesVersion=f"1.{minor}.0"), "kubeScheduler")
    assert content["apiVersion"] == f"kubescheduler.config.k8s.io/{name}"


def test_the_scheduler_has_in_its_file_what_it_would_ignore_as_a_flag() -> None:
    config = completed(
        kubeScheduler={
            "kubeAPIQPS": "100",
            "kubeAPIBurst": 0,
            "percentageOfNodesToScore": 0,
            "leaderElection": {"leaderElectLeaseDuration": "1m", "leaderElectResourceName": ""},
        }
    )

    assert file_of(config, "kubeScheduler") == {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "enableProfiling": False,
        "clientConnection": {"burst": 0, "qps": 100, "kubeconfig": "/srv/kubernetes/kube-scheduler/kubeconfig"},
        "leaderElection": {"leaderElect": True, "leaseDuration": "1m", "resourceName": ""},
        "percentageOfNodesToScore": 0,
    }
    assert not {"kubeconfig", "leader-elect", "kube-api-qps", "profiling"} & flags(config, "kubeScheduler").keys()


@pytest.mark.parametrize(("text", "number"), [("100m", 0.1), ("1e3", 1000), ("2k", 2000)])
def test_a_rate_with_a_unit_is_written_as_the_number_it_means(text: str, number: float) -> None:
    config = completed(kubeScheduler={"kubeAPIQPS": text}, kubeControllerManager={"kubeAPIQPS": text})

    assert file_of(config, "kubeScheduler")["clientConnection"]["qps"] == number
    assert flags(config, "kubeControllerManager")["kube-api-qps"] == number


def test_every_file_is_pointed_at_by_one_flag() -> None:
    config = completed()

    for component in ("kubeScheduler", "kubeProxy"):
        (path,) = config.rendered[""][component]["files"]
        assert flags(config, component)["config"] == path
    (path,) = config.rendered["nodes"]["kubelet"]["files"]
    assert kubelet_flags(config)["config"] == path
    assert origin(config, "instanceGroups.nodes.kubelet.flags.config").kind == "default"


def test_the_controller_manager_reads_no_file() -> None:
    assert "files" not in completed().rendered[""]["kubeControllerManager"]


def test_flags_come_out_sorted_everywhere() -> None:
    for content in completed(kubernetesVersion="1.20.0").rendered.values():
        for form in content.values():
            if "flags" in form:
                assert list(form["flags"]) == sorted(form["flags"])


def test_each_group_but_bastions_has_a_kubelet_in_the_order_of_names() -> None:
    config = completed(a_group("b"), a_group("a"), a_group("jump", "Bastion"), a_group("extra", "APIServer"))

    assert list(config.rendered) == [
        "",
        "a",
        "b",
        "extra",
        "master-us-east-1a",
        "master-us-east-1b",
        "master-us-east-1c",
    ]
    assert list(config.groups) == sorted(config.groups)


def test_a_kubelet_gets_its_taints_in_the_file_once_the_file_takes_them() -> None:
    group = a_group("gpu", taints=["dedicated=gpu:NoSchedule", "plain:NoExecute"])
    new, old = completed(group), completed(group, kubernetesVersion="1.22.0")

    assert kubelet_file(new, "gpu")["registerWithTaints"] == [
        {"key": "dedicated", "value": "gpu", "effect": "NoSchedule"},
        {"key": "plain", "effect": "NoExecute"},
    ]
    assert kubelet_flags(old, "gpu")["register-with-taints"] == "dedicated=gpu:NoSchedule,plain:NoExecute"


def test_what_the_api_servers_files_hold_follows_from_the_document_that_was_said() -> None:
    config = completed(kubeAPIServer={"admissionConfiguration": {"plugins": [{"name": "X"}]}})

    assert origin(config, "kubeAPIServer.file.plugins").of == ("kubeAPIServer.admissionConfiguration",)
    assert origin(config, "kubeAPIServer.file.rules").of == ("kubeAPIServer.auditPolicy",)


def test_every_flag_and_file_entry_of_a_cluster_can_be_looked_up() -> None:
    config = completed()
    values = flatten(config)

    assert values["kubeAPIServer.flags.secure-port"] == 443
    assert values["instanceGroups.nodes.kubelet.file.maxPods"] == 110
    assert values["etcd.events.c.file.name"] == "etcd-events-c"
    assert values["kubeScheduler.file.leaderElection.leaderElect"] is True
