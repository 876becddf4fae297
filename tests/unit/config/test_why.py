"""Why a value is what it is, in one sentence."""

from __future__ import annotations

from typing import Any

import pytest

from builders.config import a_group, a_spec, completed
from protokube.config.complete import complete
from protokube.config.why import brief, fields, flatten, leaves, shown, why
from protokube.errors import InvalidRequest
from protokube.spec.parse import parse


def asked(path: str, *groups: Any, **cluster: Any) -> str:
    (sentence,) = why(completed(*groups, **cluster), path)
    return sentence


def test_what_the_user_said_names_the_line() -> None:
    assert asked("kubelet.maxPods", kubelet={"maxPods": 0}) == "kubelet.maxPods is 0: you set it at spec.yaml:12."


def test_a_default_gives_its_reason() -> None:
    assert asked("kubelet.readOnlyPort") == "kubelet.readOnlyPort is 0: default, no port is open without TLS."


def test_a_derived_value_names_what_it_follows_from_and_why_that_is_so() -> None:
    assert asked("podCIDR") == (
        "podCIDR is 100.96.0.0/11: its upper half is for pods; derived from nonMasqueradeCIDR 100.64.0.0/10"
        " (default, a range that private networks rarely use)."
    )


def test_an_inherited_value_names_its_source() -> None:
    sentence = asked("instanceGroups.nodes.kubelet.maxPods", kubelet={"maxPods": 7})

    assert sentence == (
        "instanceGroups.nodes.kubelet.maxPods is 7: derived from kubelet.maxPods 7 (you set it at spec.yaml:12)."
    )


def test_a_flag_is_followed_through_its_setting_to_the_cause_three_steps_at_most() -> None:
    assert asked("kubeAPIServer.flags.service-cluster-ip-range", nonMasqueradeCIDR="10.0.0.0/8") == (
        "kubeAPIServer.flags.service-cluster-ip-range is 10.0.0.0/12: passed as a flag; derived from"
        " kubeAPIServer.serviceClusterIPRange 10.0.0.0/12 (the cluster's; derived from serviceClusterIPRange"
        " 10.0.0.0/12 (its first eighth is for services))."
    )


def test_an_entry_of_a_file_names_its_setting() -> None:
    sentence = asked("instanceGroups.nodes.kubelet.file.staticPodPath")

    assert sentence.startswith(
        "instanceGroups.nodes.kubelet.file.staticPodPath is /etc/kubernetes/manifests: written to its file;"
        " derived from instanceGroups.nodes.kubelet.podManifestPath"
    )


def test_what_a_file_beside_the_api_server_holds_is_not_the_users_because_its_component_is() -> None:
    sentence = asked("kubeAPIServer.file.omitStages", kubeAPIServer={"logLevel": 4})

    assert sentence == (
        "kubeAPIServer.file.omitStages is [RequestReceived]: written to a file of its own; derived from"
        " kubeAPIServer.auditPolicy (default, metadata of requests, without their content)."
    )


def test_the_name_is_the_users() -> None:
    assert asked("metadata.name") == "metadata.name is dev.example.com: you set it at spec.yaml:4."


def test_a_path_with_values_under_it_gives_a_sentence_for_each() -> None:
    sentences = why(completed(), "topology")

    assert [each.split(" is ")[0] for each in sentences] == ["topology.masters", "topology.nodes", "topology.dns.type"]


def test_an_item_of_a_list_is_explained_by_the_list() -> None:
    assert asked("zones[1]").startswith("zones is [us-east-1a, us-east-1b, us-east-1c]: you set it at ")


@pytest.mark.parametrize("spelled", ["spec.kubelet.logLevel", ".kubelet.logLevel", "kubelet.logLevel"])
def test_the_path_may_be_spelled_as_in_the_document(spelled: str) -> None:
    assert asked(spelled).startswith("kubelet.logLevel is 2: ")


def test_a_flag_may_be_spelled_with_its_dashes() -> None:
    assert asked("kubeAPIServer.flags.--secure-port") == asked("kubeAPIServer.flags.secure-port")


def test_a_flag_nobody_sets_has_the_default_of_the_component_itself() -> None:
    assert asked("kubeAPIServer.flags.event-ttl") == (
        "kubeAPIServer.flags.event-ttl is 1h0m0s: nothing sets it, so the default of kube-apiserver 1.36 applies."
    )
    assert asked("kubeAPIServer.flags.cors-allowed-origins") == (
        "kubeAPIServer.flags.cors-allowed-origins has no value: nothing sets it,"
        " so the default of kube-apiserver 1.36 applies."
    )
    assert "kubelet 1.36 applies" in asked("instanceGroups.nodes.kubelet.flags.node-ip")


@pytest.mark.parametrize(
    ("path", "hint"),
    [
        ("kubelet.maxPod", "did you mean `kubelet.maxPods`?"),
        ("kubelet.max_pods", "did you mean `kubelet.maxPods`?"),
        ("kubeAPIServer.flags.no-such-flag-at-all", ""),
        ("zzzzzzzz", ""),
    ],
)
def test_a_path_that_is_not_there_is_a_problem_with_a_near_match(path: str, hint: str) -> None:
    with pytest.raises(InvalidRequest, match=f"the complete configuration has no value {path}") as error:
        why(completed(), path)

    if hint:
        assert error.value.hint == hint


def test_lists_and_empty_mappings_are_values_and_mappings_are_walked() -> None:
    tree = {"a": {"b": [1, {"c": 2}], "d": {}}, "e": ""}

    assert dict(leaves("", tree)) == {"a.b": [1, {"c": 2}], "a.d": {}, "e": ""}
    assert dict(leaves("x", {})) == {"x": {}}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (False, "false"),
        ("", '""'),
        (0, "0"),
        ([], "[]"),
        (["a", 1], "[a, 1]"),
        ({}, "{}"),
        ([{"a": 1}], "[{'a': 1}]"),
        (1.5, "1.5"),
    ],
)
def test_values_are_shown_so_that_nothing_looks_like_nothing(value: object, text: str) -> None:
    assert shown(value) == text


def test_the_whole_configuration_by_path_holds_specs_flags_and_files() -> None:
    values = flatten(completed(a_group("pool", maxSize=4)))

    assert values["metadata.name"] == "dev.example.com"
    assert values["instanceGroups.pool.maxSize"] == 4
    assert values["kubeProxy.flags.v"] == 2
    assert values["etcd.main.a.file.client-transport-security.client-cert-auth"] is True
    assert not [path for path in values if path.endswith((".file.apiVersion", ".file.kind"))]


def test_an_empty_file_holds_no_values() -> None:
    values = flatten(completed(kubeAPIServer={"admissionConfiguration": {}}))

    assert not [path for path in values if path.endswith(".")]


def test_values_that_come_from_several_files_each_name_their_own() -> None:
    cluster = (
        "apiVersion: protokube.io/v1alpha1\nkind: Cluster\nmetadata: {name: two.example.com}\nspec:\n  cloud: aws\n"
    )
    group = "apiVersion: protokube.io/v1alpha1\nkind: InstanceGroup\nmetadata: {name: m}\nspec:\n  role: Master\n"
    zones = "  zones: [us-east-1a]\n"
    config = complete(parse([("cluster.yaml", cluster + zones), ("m.yaml", group + zones)]))

    assert why(config, "zones") == ["zones is [us-east-1a]: you set it at cluster.yaml:6."]
    assert why(config, "instanceGroups.m.role") == ["instanceGroups.m.role is Master: you set it at m.yaml:5."]


def test_a_version_told_in_short_is_still_the_users() -> None:
    config = complete(a_spec(kubernetesVersion="1.34"))

    assert why(config, "kubernetesVersion") == ["kubernetesVersion is 1.34.10: you set it at spec.yaml:11."]


def test_the_fields_of_a_configuration_are_its_values_without_flags_and_files() -> None:
    config = completed()
    rendered = flatten(config).keys() - fields(config).keys()

    assert "instanceGroups.nodes.kubelet.maxPods" in fields(config)
    assert rendered
    assert all(path.startswith("etcd.") or ".flags." in path or ".file." in path for path in rendered)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("short", "short"),
        ("", '""'),
        ("a long text", "a lo ..."),
        ("first\nsecond\n", "f ... (2 lines)"),
        ("a\x1bb", "a\\x1bb"),
        ([1, 2, 3, 4], "[1, ..."),
    ],
)
def test_a_brief_value_is_one_line(value: object, expected: str) -> None:
    assert brief(value, 8) == expected
