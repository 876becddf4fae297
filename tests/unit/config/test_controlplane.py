"""Settings of the API server, the controller manager and the scheduler."""

from __future__ import annotations

from typing import Any

import pytest

from builders.config import completed, flags, origin
from protokube.config.controlplane import AUDIT_POLICY
from protokube.spec.decode import Tree


def api(**fields: Any) -> Tree:
    return dict(completed(kubeAPIServer=fields).cluster["kubeAPIServer"])


def test_the_api_server_asks_the_etcd_on_its_own_master_and_keeps_events_apart() -> None:
    arguments = flags(completed(), "kubeAPIServer")

    assert arguments["etcd-servers"] == "https://127.0.0.1:4001"
    assert arguments["etcd-servers-overrides"] == "/events#https://127.0.0.1:4002"


def test_a_cluster_without_a_store_for_events_keeps_them_in_main() -> None:
    arguments = flags(completed(etcdClusters=[{"name": "main", "clientPort": 5001}]), "kubeAPIServer")

    assert arguments["etcd-servers"] == "https://127.0.0.1:5001"
    assert "etcd-servers-overrides" not in arguments


def test_nobody_is_let_in_without_a_name_and_rights_are_given() -> None:
    arguments = flags(completed(), "kubeAPIServer")

    assert arguments["anonymous-auth"] is False
    assert arguments["authorization-mode"] == "Node,RBAC"
    assert arguments["enable-admission-plugins"] == "NodeRestriction"


def test_a_cluster_that_allows_everything_says_so_to_the_api_server() -> None:
    config = completed(authorization="AlwaysAllow")

    assert flags(config, "kubeAPIServer")["authorization-mode"] == "AlwaysAllow"
    assert origin(config, "kubeAPIServer.authorizationMode").of == ("authorization",)


def test_admission_plugins_are_added_to_ours_or_said_as_a_whole() -> None:
    assert api(appendAdmissionPlugins=["AlwaysPullImages"])["enableAdmissionPlugins"] == [
        "NodeRestriction",
        "AlwaysPullImages",
    ]
    assert api(enableAdmissionPlugins=[])["enableAdmissionPlugins"] == []


def test_audit_is_on_bounded_on_disk_and_never_holds_what_was_in_a_secret() -> None:
    config = completed()
    arguments = flags(config, "kubeAPIServer")

    assert arguments["audit-log-path"] == "/var/log/kube-audit/audit.log"
    assert (arguments["audit-log-maxage"], arguments["audit-log-maxbackup"], arguments["audit-log-maxsize"]) == (
        30,
        10,
        100,
    )
    assert config.rendered[""]["kubeAPIServer"]["files"] == {arguments["audit-policy-file"]: AUDIT_POLICY}
    assert {rule["level"] for rule in AUDIT_POLICY["rules"]} == {"None", "Metadata"}  # type: ignore[index]


def test_an_empty_audit_path_turns_the_audit_off() -> None:
    config = completed(kubeAPIServer={"auditLogPath": ""})
    arguments = flags(config, "kubeAPIServer")

    assert arguments["audit-log-path"] == ""
    assert not {"audit-policy-file", "audit-log-maxage", "audit-log-maxbackup", "audit-log-maxsize"} & arguments.keys()
    assert "files" not in config.rendered[""]["kubeAPIServer"]


def test_an_audit_policy_file_of_the_users_is_pointed_at_and_not_written() -> None:
    config = completed(kubeAPIServer={"auditPolicyFile": "/srv/audit.yaml"})

    assert flags(config, "kubeAPIServer")["audit-policy-file"] == "/srv/audit.yaml"
    assert "auditPolicy" not in config.cluster["kubeAPIServer"]
    assert "files" not in config.rendered[""]["kubeAPIServer"]


@pytest.mark.parametrize(
    ("field", "pointer", "flag"),
    [
        ("auditPolicy", "auditPolicyFile", "audit-policy-file"),
        ("admissionConfiguration", "admissionControlConfigFile", "admission-control-config-file"),
        ("authenticationConfiguration", "authenticationConfigFile", "authentication-config"),
    ],
)
def test_a_document_said_in_place_is_written_to_a_file_that_the_flag_points_at(
    field: str, pointer: str, flag: str
) -> None:
    config = completed(kubeAPIServer={field: {"kind": "Some"}})
    path = config.cluster["kubeAPIServer"][pointer]

    assert flags(config, "kubeAPIServer")[flag] == path
    assert config.rendered[""]["kubeAPIServer"]["files"][path] == {"kind": "Some"}
    assert origin(config, f"kubeAPIServer.{pointer}").of == (f"kubeAPIServer.{field}",)


def test_encryption_points_at_a_secret_of_the_store_that_is_never_shown() -> None:
    config = completed(encryptionConfig=True)

    assert (
        flags(config, "kubeAPIServer")["encryption-provider-config"] == "/srv/kubernetes/kube-apiserver/encryption.yaml"
    )
    files = config.rendered[""]["kubeAPIServer"]["files"]
    assert files["/srv/kubernetes/kube-apiserver/encryption.yaml"] == {"fromSecret": "encryption"}
    assert origin(config, "kubeAPIServer.file.fromSecret").of == ("kubeAPIServer.encryptionProviderConfig",)
    assert "encryptionProviderConfig" not in completed(encryptionConfig=False).cluster["kubeAPIServer"]


def test_service_accounts_are_vouched_for_by_the_internal_name_and_their_keys_are_found_there() -> None:
    arguments = flags(completed(), "kubeAPIServer")

    assert arguments["service-account-issuer"] == "https://api.internal.dev.example.com"
    assert arguments["service-account-jwks-uri"] == "https://api.internal.dev.example.com/openid/v1/jwks"


@pytest.mark.parametrize(
    ("store", "issuer"),
    [
        ("s3://keys", "https://keys.s3.us-east-1.amazonaws.com"),
        ("s3://keys/dev/", "https://keys.s3.us-east-1.amazonaws.com/dev"),
    ],
)
def test_with_a_discovery_store_the_issuer_is_the_bucket_and_the_keys_are_published_there(
    store: str, issuer: str
) -> None:
    arguments = flags(completed(serviceAccountIssuerDiscovery={"discoveryStore": store}), "kubeAPIServer")

    assert arguments["service-account-issuer"] == issuer
    assert arguments["service-account-jwks-uri"] == f"{issuer}/openid/v1/jwks"


def test_further_audiences_stand_beside_the_issuer() -> None:
    arguments = flags(completed(serviceAccountIssuerDiscovery={"additionalAudiences": ["sts"]}), "kubeAPIServer")

    assert arguments["api-audiences"] == "https://api.internal.dev.example.com,sts"


@pytest.mark.parametrize("nothing", [None, []])
def test_no_further_audiences_leave_the_audience_to_the_api_server(nothing: object) -> None:
    arguments = flags(completed(serviceAccountIssuerDiscovery={"additionalAudiences": nothing}), "kubeAPIServer")

    assert "api-audiences" not in arguments


def test_further_issuers_follow_the_one_that_signs() -> None:
    config = completed(kubeAPIServer={"additionalServiceAccountIssuers": ["https://old.example.com"]})

    assert flags(config, "kubeAPIServer")["service-account-issuer"] == [
        "https://api.internal.dev.example.com",
        "https://old.example.com",
    ]


@pytest.mark.parametrize("cloud", ["aws", "gce"])
def test_up_to_1_23_kubernetes_itself_speaks_to_the_cloud(cloud: str) -> None:
    old, new = completed(cloud=cloud, kubernetesVersion="1.23.0"), completed(cloud=cloud, kubernetesVersion="1.24.0")

    for component in ("kubeAPIServer", "kubeControllerManager"):
        assert flags(old, component)["cloud-provider"] == cloud
        assert "cloud-provider" not in flags(new, component)
    assert flags(old, "kubeControllerManager")["configure-cloud-routes"] is True
    assert "configure-cloud-routes" not in flags(new, "kubeControllerManager")


@pytest.mark.parametrize("cloud", ["local", "metal"])
def test_where_there_is_no_cloud_nothing_speaks_to_one(cloud: str) -> None:
    assert "cloud-provider" not in flags(completed(cloud=cloud, kubernetesVersion="1.20.0"), "kubeControllerManager")


def test_routes_are_the_clouds_only_where_the_network_is_kubenet() -> None:
    arguments = flags(completed(kubernetesVersion="1.23.0", networking={"plugin": "calico"}), "kubeControllerManager")

    assert arguments["configure-cloud-routes"] is False


@pytest.mark.parametrize("version", ["1.20.0", "1.23.0", "1.24.0", "1.36.0"])
def test_with_a_controller_manager_of_the_clouds_own_ours_leaves_the_cloud_alone(version: str) -> None:
    config = completed(kubernetesVersion=version, cloudControllerManager={"clusterName": "dev"})

    assert flags(config, "kubeControllerManager")["cloud-provider"] == "external"
    assert "cloud-provider" not in flags(config, "kubeAPIServer")


@pytest.mark.parametrize(
    ("pods", "mask"), [("100.96.0.0/11", 24), ("100.96.0.0/24", 25), ("100.96.0.0/26", 27), ("100.96.0.0/28", 28)]
)
def test_each_node_gets_a_part_of_the_pods_range_that_is_smaller_than_the_whole(pods: str, mask: int) -> None:
    fields = {"podCIDR": pods, "masters": 1, "nodes": 0}

    assert completed(**fields).cluster["kubeControllerManager"]["nodeCIDRMaskSize"] == mask


def test_a_mask_that_the_user_sets_for_ipv4_is_the_only_one_the_controller_manager_gets() -> None:
    config = completed(kubeControllerManager={"nodeCIDRMaskSizeIPv4": 26})
    arguments = flags(config, "kubeControllerManager")

    assert {name: value for name, value in arguments.items() if "mask" in name} == {"node-cidr-mask-size-ipv4": 26}


def test_the_controller_manager_and_the_scheduler_answer_their_own_machine_only() -> None:
    config = completed()

    for component in ("kubeControllerManager", "kubeScheduler"):
        assert flags(config, component)["bind-address"] == "127.0.0.1"
        assert config.cluster[component]["leaderElection"] == {"leaderElect": True}


def test_replicas_that_shall_not_elect_are_told_so() -> None:
    config = completed(kubeControllerManager={"leaderElection": {"leaderElect": False}})

    assert flags(config, "kubeControllerManager")["leader-elect"] is False


@pytest.mark.parametrize("version", ["1.20.0", "1.21.0", "1.22.0"])
def test_old_versions_are_told_to_close_the_ports_they_open_without_tls(version: str) -> None:
    config = completed(kubernetesVersion=version)
    (scheduler,) = config.rendered[""]["kubeScheduler"]["files"].values()

    assert flags(config, "kubeControllerManager")["port"] == 0
    assert (scheduler["healthzBindAddress"], scheduler["metricsBindAddress"]) == ("127.0.0.1:10251", "127.0.0.1:10251")
    assert origin(config, "kubeControllerManager.flags.port").kind == "default"
    assert origin(config, "kubeScheduler.file.healthzBindAddress").kind == "default"


def test_later_versions_have_no_such_ports_to_close() -> None:
    config = completed(kubernetesVersion="1.23.0")
    (scheduler,) = config.rendered[""]["kubeScheduler"]["files"].values()

    assert "port" not in flags(config, "kubeControllerManager")
    assert "healthzBindAddress" not in scheduler
