"""Settings of kubelets, kube-proxy and the container runtime, for all machines, for masters and for each group."""

from __future__ import annotations

from typing import Any

import pytest

from builders.config import a_group, completed, file_of, kubelet_file, kubelet_flags, origin, warnings
from protokube.config.complete import Config
from protokube.config.machines import UNINITIALIZED, may_set_itself


@pytest.mark.parametrize(
    "label",
    [
        "example.com/pool",
        "pool",
        "node.kubernetes.io/lifecycle",
        "a.node.kubernetes.io/b",
        "kubelet.kubernetes.io/x",
        "kubernetes.io/hostname",
        "topology.kubernetes.io/zone",
        "mykubernetes.io/x",
        "beta.kubernetes.io/instance-type",
    ],
)
def test_a_kubelet_registers_with_labels_it_may_set_itself(label: str) -> None:
    assert may_set_itself(label)


@pytest.mark.parametrize(
    "label",
    [
        "node-role.kubernetes.io/control-plane",
        "kubernetes.io/role",
        "kops.k8s.io/instancegroup",
        "k8s.io/x",
        "node-restriction.kubernetes.io/x",
        "topology.kubernetes.io/rack",
    ],
)
def test_other_labels_under_the_domains_of_kubernetes_would_make_a_kubelet_exit(label: str) -> None:
    assert not may_set_itself(label)


def test_only_labels_a_kubelet_may_set_reach_it_and_the_group_keeps_all() -> None:
    fields = {"example.com/pool": "a", "kops.k8s.io/instancegroup": "pool"}
    config = completed(a_group("pool", nodeLabels=fields))

    assert kubelet_flags(config, "pool")["node-labels"] == "example.com/pool=a"
    assert fields.items() <= config.groups["pool"]["nodeLabels"].items()


def test_a_group_without_such_labels_has_no_flag_for_them() -> None:
    assert "node-labels" not in kubelet_flags(completed())


def test_labels_and_taints_of_all_kubelets_join_those_of_the_group() -> None:
    config = completed(
        a_group("pool", nodeLabels={"a": "group", "b": "group"}, taints=["x=1:NoSchedule"]),
        kubelet={"nodeLabels": {"a": "all", "c": "all"}, "taints": ["y=1:NoSchedule", "x=1:NoSchedule"]},
    )
    kubelet = config.groups["pool"]["kubelet"]

    assert kubelet["nodeLabels"] == {"a": "group", "b": "group", "c": "all"}
    assert kubelet["taints"] == ["x=1:NoSchedule", "y=1:NoSchedule"]


def test_what_a_group_says_goes_before_what_masters_are_told_and_that_before_what_all_are_told() -> None:
    masters = [
        a_group(f"m{index}", "Master", zones=[f"us-east-1{zone}"], kubelet={"maxPods": 10} if index == 0 else {})
        for index, zone in enumerate("abc")
    ]
    fields: dict[str, Any] = {
        "kubelet": {"maxPods": 30, "logLevel": 3, "failSwapOn": False},
        "masterKubelet": {"maxPods": 20, "logLevel": 0},
    }
    config = completed(*masters, **fields)

    assert kubelet_file(config, "m0")["maxPods"] == 10
    assert kubelet_file(config, "m1")["maxPods"] == 20
    assert kubelet_file(config, "nodes")["maxPods"] == 30
    assert kubelet_flags(config, "m0")["v"] == 0
    assert kubelet_flags(config, "nodes")["v"] == 3
    assert all(kubelet_file(config, name)["failSwapOn"] is False for name in ("m0", "m1", "nodes"))
    assert origin(config, "instanceGroups.m1.kubelet.maxPods").of == ("masterKubelet.maxPods",)
    assert origin(config, "instanceGroups.nodes.kubelet.maxPods").of == ("kubelet.maxPods",)


def test_a_new_node_asks_for_its_certificate_and_a_master_has_one() -> None:
    config = completed()

    assert kubelet_flags(config, "nodes")["bootstrap-kubeconfig"] == "/var/lib/kubelet/bootstrap-kubeconfig"
    assert "bootstrap-kubeconfig" not in kubelet_flags(config, "master-us-east-1a")


def test_where_a_new_node_asks_is_said_for_all_nodes_at_once() -> None:
    config = completed(
        a_group("a"), a_group("b", kubelet={"bootstrapKubeconfig": ""}), kubelet={"bootstrapKubeconfig": "/x"}
    )

    assert kubelet_flags(config, "a")["bootstrap-kubeconfig"] == "/x"
    assert kubelet_flags(config, "b")["bootstrap-kubeconfig"] == ""


def test_a_kubelet_lets_nobody_in_without_a_name_and_serves_nothing_in_the_clear() -> None:
    content = kubelet_file(completed())

    assert content["authentication"]["anonymous"] == {"enabled": False}
    assert content["authentication"]["webhook"] == {"enabled": True}
    assert content["authorization"] == {"mode": "Webhook"}
    assert content["readOnlyPort"] == 0


def test_kubelets_of_the_local_cloud_live_with_what_a_laptop_has() -> None:
    local = kubelet_file(completed(cloud="local"), "master-a")
    cloud = kubelet_file(completed())

    assert (local["cgroupDriver"], local["failSwapOn"], local["failCgroupV1"]) == ("cgroupfs", False, False)
    assert cloud["cgroupDriver"] == "systemd"
    assert not {"failSwapOn", "failCgroupV1"} & cloud.keys()
    assert "failCgroupV1" not in kubelet_file(completed(cloud="local", kubernetesVersion="1.30.0"), "master-a")


@pytest.mark.parametrize("field", ["nodeCIDRMaskSize", "nodeCIDRMaskSizeIPv4"])
@pytest.mark.parametrize(("mask", "room"), [(24, 110), (25, 110), (26, 60), (27, 28), (28, 12)])
def test_a_node_takes_no_more_pods_than_its_range_has_addresses(field: str, mask: int, room: int) -> None:
    config = completed(kubeControllerManager={field: mask}, podCIDR="100.96.0.0/16")

    assert config.cluster["kubelet"]["maxPods"] == room
    assert origin(config, "kubelet.maxPods").of == ((f"kubeControllerManager.{field}",) if room != 110 else ())


@pytest.mark.parametrize(
    ("version", "as_flag"), [("1.20.0", True), ("1.23.0", True), ("1.26.0", True), ("1.27.0", False), ("1.36.0", False)]
)
def test_the_socket_of_containerd_is_a_flag_until_the_file_takes_it(version: str, as_flag: bool) -> None:
    config = completed(kubernetesVersion=version)
    socket = "unix:///run/containerd/containerd.sock"

    assert kubelet_flags(config).get("container-runtime-endpoint") == (socket if as_flag else None)
    assert kubelet_file(config).get("containerRuntimeEndpoint") == (None if as_flag else socket)


@pytest.mark.parametrize(("version", "word"), [("1.20.0", "remote"), ("1.23.0", "remote"), ("1.24.0", None)])
def test_a_runtime_behind_a_socket_is_named_so_while_docker_is_the_default(version: str, word: str | None) -> None:
    assert kubelet_flags(completed(kubernetesVersion=version)).get("container-runtime") == word


@pytest.mark.parametrize(("plugin", "word"), [("kubenet", "kubenet"), ("calico", "cni")])
def test_docker_is_driven_by_kubelet_itself_up_to_1_23(plugin: str, word: str) -> None:
    config = completed(kubernetesVersion="1.23.0", containerRuntime="docker", networking={"plugin": plugin})
    content = kubelet_flags(config)

    assert (content["container-runtime"], content["network-plugin"]) == ("docker", word)
    assert "container-runtime-endpoint" not in content
    assert "containerd" not in config.cluster


def test_another_socket_of_containerd_reaches_kubelet() -> None:
    config = completed(containerd={"address": "/run/other.sock"})

    assert kubelet_file(config)["containerRuntimeEndpoint"] == "unix:///run/other.sock"
    assert config.cluster["containerd"]["version"] == "2.1.4"


def test_a_group_that_says_something_of_its_runtime_is_told_the_rest_by_the_cluster() -> None:
    config = completed(a_group("gpu", containerd={"version": "1.7.0"}), a_group("cpu"))

    assert config.groups["gpu"]["containerd"] == {
        "version": "1.7.0",
        "address": "/run/containerd/containerd.sock",
        "sandboxImage": "registry.k8s.io/pause:3.10.2",
    }
    assert "containerd" not in config.groups["cpu"]


@pytest.mark.parametrize(
    ("version", "flag", "tainted"),
    [("1.23.0", "external", False), ("1.24.0", None, True), ("1.31.0", None, True), ("1.32.0", "external", False)],
)
def test_a_node_not_yet_known_to_its_cloud_is_marked_by_flag_or_by_taint_but_never_by_both(
    version: str, flag: str | None, tainted: bool
) -> None:
    """With the flag kubelet adds the taint itself; an API server refuses a node that has one taint twice."""
    config = completed(kubernetesVersion=version, cloudControllerManager={})

    for name in ("nodes", "master-us-east-1a"):
        assert kubelet_flags(config, name).get("cloud-provider") == flag
        assert (UNINITIALIZED in config.groups[name]["kubelet"].get("taints", [])) == tainted
    assert warnings(config) == {}


def test_a_kubelet_that_is_told_of_its_cloud_by_the_user_gets_no_taint_on_top() -> None:
    config = completed(kubernetesVersion="1.28.0", cloudControllerManager={}, kubelet={"cloudProvider": "external"})

    assert kubelet_flags(config)["cloud-provider"] == "external"
    assert "taints" not in config.groups["nodes"]["kubelet"]
    assert "which is deprecated" in warnings(config)["kubelet.cloudProvider"].message


def test_up_to_1_23_the_cloud_is_built_into_kubelet() -> None:
    assert kubelet_flags(completed(kubernetesVersion="1.23.0"))["cloud-provider"] == "aws"
    assert "cloud-provider" not in kubelet_flags(completed(kubernetesVersion="1.24.0"))


def test_the_dns_server_of_the_pods_is_the_tenth_address_of_the_services_or_what_kubelet_is_told() -> None:
    usual, own = completed(), completed(kubelet={"clusterDNS": "100.64.0.99,8.8.8.8"})

    assert kubelet_file(usual)["clusterDNS"] == ["100.64.0.10"]
    assert kubelet_file(own)["clusterDNS"] == ["100.64.0.99", "8.8.8.8"]
    assert own.cluster["clusterDNS"]["serverIP"] == "100.64.0.99"


def test_kube_proxy_is_left_out_where_cilium_does_its_work_or_the_user_says_so() -> None:
    replaced = completed(networking={"plugin": "cilium", "options": {"enableNodePort": True}})
    beside = completed(networking={"plugin": "cilium"})
    off = completed(kubeProxy={"enabled": False})

    assert "kubeProxy" not in replaced.rendered[""]
    assert "kubeProxy" in beside.rendered[""]
    assert "kubeProxy" not in off.rendered[""]
    assert replaced.cluster["kubeProxy"]["enabled"] is False


def test_kube_proxy_is_told_everything_in_its_file() -> None:
    content = file_of(completed(kubeProxy={"ipvsStrictARP": False, "conntrackMin": 0}), "kubeProxy")

    assert content == {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "clusterCIDR": "100.96.0.0/11",
        "conntrack": {"maxPerCore": 131072, "min": 0},
        "ipvs": {"strictARP": False},
        "clientConnection": {"kubeconfig": "/srv/kubernetes/kube-proxy/kubeconfig"},
        "metricsBindAddress": "127.0.0.1:10249",
        "healthzBindAddress": "127.0.0.1:10256",
        "mode": "iptables",
    }


@pytest.mark.parametrize("version", ["1.20.2", "1.36.0"])
def test_kube_proxy_answers_its_own_machine_only_but_where_load_balancers_of_the_cloud_ask_it(version: str) -> None:
    fields = {
        cloud: file_of(completed(cloud=cloud, kubernetesVersion=version), "kubeProxy")["healthzBindAddress"]
        for cloud in ("aws", "gce", "local")
    }
    asked = completed(cloud="gce", kubernetesVersion=version)
    own = completed(kubeProxy={"healthzBindAddress": "0.0.0.0:10256"}, kubernetesVersion=version)

    assert fields == {"aws": "127.0.0.1:10256", "gce": "0.0.0.0:10256", "local": "127.0.0.1:10256"}
    assert origin(asked, "kubeProxy.healthzBindAddress").of == ("cloud",)
    assert file_of(own, "kubeProxy")["healthzBindAddress"] == "0.0.0.0:10256"


TLS_FILES = {
    "tlsCertFile": "/srv/kubernetes/kubelet-server.crt",
    "tlsPrivateKeyFile": "/srv/kubernetes/kubelet-server.key",
}


def serving(config: Config, group: str) -> dict[str, Any]:
    """The settings of a kubelet for its serving certificate, in its file and in its flags."""
    file, flags = kubelet_file(config, group), kubelet_flags(config, group)
    assert not {"tls-cert-file", "tls-private-key-file"} & flags.keys()
    return {name: file[name] for name in (*TLS_FILES, "serverTLSBootstrap") if name in file}


@pytest.mark.parametrize("version", ["1.20.2", "1.28.0", "1.36.0"])
def test_a_master_serves_with_what_its_agent_makes_and_a_node_asks_for_its_certificate(version: str) -> None:
    config = completed(a_group("nodes"), a_group("api", "APIServer"), kubernetesVersion=version)

    assert serving(config, "master-us-east-1a") == TLS_FILES
    assert serving(config, "nodes") == serving(config, "api") == {"serverTLSBootstrap": True}
    assert kubelet_file(config, "nodes")["rotateCertificates"] is True
    assert origin(config, "instanceGroups.nodes.kubelet.serverTLSBootstrap").of == ("instanceGroups.nodes.role",)


def test_a_kubelet_is_never_told_both_to_ask_for_a_certificate_and_to_serve_with_a_file() -> None:
    asking = completed(a_group("nodes"), kubelet={"serverTLSBootstrap": True})
    own = {"tlsCertFile": "/etc/own.crt", "tlsPrivateKeyFile": "/etc/own.key"}
    given, on_masters = completed(a_group("nodes"), kubelet=own), completed(a_group("nodes"), masterKubelet=own)
    by_itself = completed(a_group("nodes", kubelet={"serverTLSBootstrap": False}))

    assert serving(asking, "master-us-east-1a") == serving(asking, "nodes") == {"serverTLSBootstrap": True}
    assert serving(given, "master-us-east-1a") == serving(given, "nodes") == own
    assert serving(on_masters, "master-us-east-1a") == own
    assert serving(on_masters, "nodes") == {"serverTLSBootstrap": True}
    assert serving(by_itself, "nodes") == {"serverTLSBootstrap": False}
