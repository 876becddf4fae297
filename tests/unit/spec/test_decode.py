"""What the schema makes of what is written: types decided by the field, every problem at once, places kept."""

from __future__ import annotations

from typing import Any

import pytest

from builders.spec import decoded, said_by, tree
from protokube.errors import Where
from protokube.nearest import near
from protokube.spec.cluster import Cluster
from protokube.spec.components.controller_manager import KubeControllerManager
from protokube.spec.components.kubelet import Kubelet
from protokube.spec.decode import Reading, decode, free_form, join
from protokube.spec.etcd import EtcdCluster
from protokube.spec.group import InstanceGroup
from protokube.spec.machines import FileAsset
from protokube.spec.network import Topology


def value(schema: type, name: str, written: str) -> Any:
    """What a field makes of one written value."""
    found, reading = decoded(schema, f"{name}: {written}")
    assert not reading.problems
    return found.get(name)


def problem(schema: type, text: str) -> tuple[str, str]:
    """The one problem with a text, and its hint."""
    _, reading = decoded(schema, text)
    (only,) = reading.problems
    return said_by(reading)[0], only.hint


# --- scalars: the field decides, not the look


@pytest.mark.parametrize("written", ["1.30", '"1.30"', "'1.30'"])
def test_a_version_stays_the_text_it_is(written: str) -> None:
    assert value(Cluster, "kubernetesVersion", written) == "1.30"


@pytest.mark.parametrize("written", ["no", "on", "007", "1e3", "12:30:45", "2024-01-01", "0o17", ".inf", "1_000"])
def test_what_yaml_would_change_is_kept_where_text_is_wanted(written: str) -> None:
    assert value(Cluster, "dnsZone", written) == written


@pytest.mark.parametrize(
    ("written", "expected"), [("true", True), ("yes", True), ("On", True), ("FALSE", False), ("no", False)]
)
def test_true_and_false_may_be_said_in_words_where_they_are_wanted(written: str, expected: bool) -> None:
    assert value(Cluster, "encryptionConfig", written) is expected


@pytest.mark.parametrize("written", ["1", "0", "y", "maybe", "True!", "[true]"])
def test_anything_else_is_neither_true_nor_false(written: str) -> None:
    message, _ = problem(Cluster, f"encryptionConfig: {written}")

    assert message.startswith("1 encryptionConfig: expected true or false, found ")


@pytest.mark.parametrize(
    ("written", "expected"), [("3", 3), ("+3", 3), ("-3", -3), ("1_000", 1000), ("010", 10), ("0", 0)]
)
def test_a_whole_number_where_one_is_wanted(written: str, expected: int) -> None:
    assert value(Kubelet, "maxPods", written) == expected


@pytest.mark.parametrize("written", ["three", "3.0", "0x10", "1e3", "1_", "_1", "1__0", "3 4", "9" * 20, "9" * 5000])
def test_anything_else_is_no_whole_number(written: str) -> None:
    message, hint = problem(Kubelet, f"maxPods: {written}")

    assert message == f"1 maxPods: expected a whole number, found {written!r}"
    assert hint == ""


@pytest.mark.parametrize(("written", "expected"), [("0.55", 0.55), ("1", 1.0), (".5", 0.5), ("5e-1", 0.5)])
def test_a_number_where_one_is_wanted(written: str, expected: float) -> None:
    assert value(KubeControllerManager, "unhealthyZoneThreshold", written) == expected


def test_a_number_in_quotes_is_text_and_the_hint_says_so() -> None:
    assert problem(Kubelet, "maxPods: '60'") == ("1 maxPods: expected a whole number, found '60'", "remove the quotes")
    assert problem(Kubelet, 'failSwapOn: "no"') == (
        "1 failSwapOn: expected true or false, found 'no'",
        "remove the quotes",
    )


def test_zero_false_and_empty_text_are_answers() -> None:
    found, _ = decoded(
        Kubelet, "maxPods: 0\nfailSwapOn: false\nnodeIP: ''\nallowedUnsafeSysctls: []\nkubeReserved: {}\n"
    )

    assert found == {"maxPods": 0, "failSwapOn": False, "nodeIP": "", "allowedUnsafeSysctls": [], "kubeReserved": {}}


@pytest.mark.parametrize("null", ["", "~", "null"])
def test_a_field_without_a_value_is_not_said(null: str) -> None:
    found, reading = decoded(Cluster, f"cloud: {null}\nkubelet: {null}\nsubnets: {null}\nzones: {null}\n")

    assert (found, reading.problems, reading.places) == ({}, [], {})


def test_a_whole_schema_without_a_value_is_empty() -> None:
    reading = Reading()

    assert decode(Kubelet, tree("kubelet: ~").fields["kubelet"], "kubelet", "f.yaml", reading) == {}
    assert reading.problems == []


# --- lists and mappings


def test_items_of_a_list_are_of_the_type_the_list_wants() -> None:
    assert value(Cluster, "zones", "[1.30, no, a]") == ["1.30", "no", "a"]
    assert value(Kubelet, "tlsCurvePreferences", "[23, 24]") == [23, 24]
    assert (
        problem(Kubelet, "tlsCurvePreferences: [23, x]")[0]
        == "1 tlsCurvePreferences[1]: expected a whole number, found 'x'"
    )


def test_one_word_is_no_list_and_the_hint_shows_how_to_write_one() -> None:
    assert problem(Cluster, "zones: us-east-1a") == (
        "1 zones: expected a list, found 'us-east-1a'",
        "write it as a list: [us-east-1a]",
    )


def test_a_list_of_one_word_is_no_word_and_the_hint_shows_it() -> None:
    assert problem(Cluster, "region: [us-east-1]") == (
        "1 region: expected text, found a list",
        "write it without a list: us-east-1",
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("zones: {a: b}", "1 zones: expected a list, found a mapping"),
        ("region: {a: b}", "1 region: expected text, found a mapping"),
        ("region: [a, b]", "1 region: expected text, found a list"),
        ("cloudLabels: [a]", "1 cloudLabels: expected a mapping, found a list"),
        ("cloudLabels: a", "1 cloudLabels: expected a mapping, found 'a'"),
        ("masters: [3]", "1 masters: expected a whole number, found a list"),
        ("kubelet: [a]", "1 kubelet: expected fields of Kubelet, found a list"),
        ("kubelet: a", "1 kubelet: expected fields of Kubelet, found 'a'"),
        ("subnets: {a: b}", "1 subnets: expected a list of items with a name, found a mapping"),
        ("externalPolicies: {node: arn}", "1 externalPolicies.node: expected a list, found 'arn'"),
    ],
)
def test_a_value_of_the_wrong_shape_is_told_by_what_was_expected_and_found(text: str, expected: str) -> None:
    assert problem(Cluster, text)[0] == expected


def test_a_spec_that_is_no_mapping_is_told_as_the_spec() -> None:
    reading = Reading()

    assert decode(Cluster, tree("spec: please").fields["spec"], "", "f.yaml", reading) == {}
    assert said_by(reading) == ["1 spec: expected fields of Cluster, found 'please'"]


def test_labels_may_stand_without_a_value() -> None:
    assert value(InstanceGroup, "nodeLabels", "{node-role.kubernetes.io/node: , a: true, b: 1.10, c: ~}") == {
        "node-role.kubernetes.io/node": "",
        "a": "true",
        "b": "1.10",
        "c": "",
    }


# --- lists of things with a name


def test_things_with_a_name_are_held_by_it() -> None:
    found, reading = decoded(Cluster, "subnets:\n- name: a\n  zone: us-east-1a\n- name: b\n")

    assert found == {"subnets": {"a": {"zone": "us-east-1a"}, "b": {}}}
    assert reading.places["subnets.b"] == Where("spec.yaml", 4)
    assert reading.places["subnets.a.zone"] == Where("spec.yaml", 3)


def test_a_name_is_text_whatever_it_looks_like() -> None:
    assert list(value(Cluster, "subnets", "[{name: 1}, {name: no}]")) == ["1", "no"]


@pytest.mark.parametrize("item", ["{zone: a}", "{name: , zone: a}", "{name: ''}", "{name: [a]}", "[a]"])
def test_a_thing_without_a_name_is_a_problem(item: str) -> None:
    assert problem(Cluster, f"subnets: [{item}]") == ("1 subnets[0]: has no `name`", "it begins with `- name:`")


def test_a_bare_word_among_things_with_a_name_is_shown_how_to_write_it() -> None:
    assert problem(Cluster, "subnets: [a]") == ("1 subnets[0]: has no `name`", "write it as `- name: a`")


def test_a_name_given_twice_is_told_with_the_line_of_the_first() -> None:
    message, hint = problem(Cluster, "subnets:\n- name: a\n- name: b\n- name: a\n")

    assert (message, hint) == (
        "4 subnets.a: the name 'a' is taken already, on line 2",
        "give one of the two another name",
    )


# --- checks


@pytest.mark.parametrize(
    ("schema", "text", "expected", "hint"),
    [
        (Cluster, "cloud: AWS", "1 cloud: 'AWS' is not one of aws, gce, local, metal", "did you mean `aws`?"),
        (Cluster, "cloud: azure", "1 cloud: 'azure' is not one of aws, gce, local, metal", ""),
        (Cluster, "masters: 0", "1 masters: 0 is less than 1", ""),
        (Cluster, "masters: 11", "1 masters: 11 is more than 9", ""),
        (EtcdCluster, "cpuRequest: lots", "1 cpuRequest: 'lots' is not a quantity such as 100m, 1.5 or 512Mi", ""),
        (
            EtcdCluster,
            "heartbeatInterval: 5",
            "1 heartbeatInterval: '5' is not a duration such as 30s, 5m or 1h30m",
            "",
        ),
        (
            Topology,
            "dns: {type: none}",
            "1 dns.type: 'none' is not one of Public, Private, None",
            "did you mean `None`?",
        ),
    ],
)
def test_a_value_is_checked_where_it_is_declared(schema: type, text: str, expected: str, hint: str) -> None:
    assert problem(schema, text) == (expected, hint)


# --- unknown fields


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("kubernetesVersoin", "kubernetesVersion"),
        ("kubernetes_version", "kubernetesVersion"),
        ("kubernetes-version", "kubernetesVersion"),
        ("KubernetesVersion", "kubernetesVersion"),
        ("kubeApiServer", "kubeAPIServer"),
        ("zone", "zones"),
        ("network_cidr", "networkCIDR"),
    ],
)
def test_an_unknown_field_is_a_problem_that_names_the_one_probably_meant(written: str, meant: str) -> None:
    assert problem(Cluster, f"{written}: x") == (f"1 {written}: unknown field", f"did you mean `{meant}`?")


def test_where_nothing_is_close_a_few_known_fields_are_listed_and_many_are_pointed_to() -> None:
    assert problem(FileAsset, "flavour: x")[1] == "known are path, content, isBase64, mode, roles"
    assert problem(Cluster, "flavour: x")[1] == "`protokube schema` lists the known fields"


def test_an_unknown_field_without_a_value_is_still_unknown() -> None:
    assert problem(Cluster, "flavour:")[0] == "1 flavour: unknown field"


def test_in_a_document_of_the_original_an_unknown_field_is_a_warning() -> None:
    found, reading = decoded(Cluster, "cloud: aws\nkubelet:\n  maxpods: 5\n", theirs=True)

    assert (found, reading.problems) == ({"cloud": "aws", "kubelet": {}}, [])
    (warning,) = reading.warnings
    assert (warning.path, warning.where, warning.hint) == (
        "kubelet.maxpods",
        Where("spec.yaml", 3),
        "did you mean `maxPods`?",
    )
    assert warning.message.startswith("ignored: ")


def test_all_problems_of_a_document_are_found_in_one_pass_each_at_its_line() -> None:
    _, reading = decoded(
        Cluster,
        """\
        cloud: awz
        masters: "3"
        zones: us-east-1a
        colour: blue
        kubelet:
          maxPods: many
          syncFrequency: soon
        etcdClusters:
        - version: 3.5.21
        - name: main
          members:
          - {name: a, volumeSize: 0}
          - {name: a, volumeSizes: 5}
        """,
    )

    assert said_by(reading) == [
        "1 cloud: 'awz' is not one of aws, gce, local, metal",
        "2 masters: expected a whole number, found '3'",
        "3 zones: expected a list, found 'us-east-1a'",
        "4 colour: unknown field",
        "6 kubelet.maxPods: expected a whole number, found 'many'",
        "7 kubelet.syncFrequency: 'soon' is not a duration such as 30s, 5m or 1h30m",
        "9 etcdClusters[0]: has no `name`",
        "12 etcdClusters.main.members.a.volumeSize: 0 is less than 1",
        "13 etcdClusters.main.members.a: the name 'a' is taken already, on line 12",
        "13 etcdClusters.main.members.a.volumeSizes: unknown field",
    ]


def test_every_value_keeps_the_place_it_was_said_at() -> None:
    _, reading = decoded(
        Cluster,
        """\
        zones:
        - us-east-1a
        - us-east-1b
        cloudLabels:
          team: a
        kubeAPIServer:
          auditPolicy:
            rules:
            - level: Metadata
        """,
    )

    assert {path: where.line for path, where in reading.places.items()} == {
        "zones": 1,
        "zones[0]": 2,
        "zones[1]": 3,
        "cloudLabels": 4,
        "cloudLabels.team": 5,
        "kubeAPIServer": 6,
        "kubeAPIServer.auditPolicy": 7,
        "kubeAPIServer.auditPolicy.rules": 8,
        "kubeAPIServer.auditPolicy.rules[0]": 9,
        "kubeAPIServer.auditPolicy.rules[0].level": 9,
    }


# --- free-form parts


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("1.30", "1.30"),
        ("1.5", 1.5),
        ("5", 5),
        ("-5", -5),
        ("007", "007"),
        ("1_000", "1_000"),
        ("+5", "+5"),
        ("1e3", "1e3"),
        ("1e999", "1e999"),
        ("9" * 5000, "9" * 5000),
        ("true", True),
        ("False", False),
        ("yes", "yes"),
        ("no", "no"),
        ("1:30", "1:30"),
        ("~", None),
        ("null", None),
        ('"5"', "5"),
        ("'true'", "true"),
        ("''", ""),
        ("[1, a, ~]", [1, "a", None]),
        ("{a: {b: 2}, c: }", {"a": {"b": 2}, "c": None}),
    ],
)
def test_a_part_no_schema_describes_is_kept_as_written(written: str, read: object) -> None:
    found = free_form(tree(f"value: {written}").fields["value"], "", "f.yaml", Reading())

    assert found == read
    assert type(found) is type(read)


# --- near matches


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("maxpods", "did you mean `maxPods`?"),
        ("max-pods", "did you mean `maxPods`?"),
        ("maxPod", "did you mean `maxPods`?"),
        ("podsMax", ""),
        ("", ""),
        ("xyz", ""),
    ],
)
def test_a_hint_names_what_is_close_enough(word: str, hint: str) -> None:
    assert near(word, ["maxPods", "image"]) == hint


def test_a_word_that_differs_in_case_only_is_meant_before_any_other() -> None:
    assert near("NODES", ["nodes", "NODE"]) == "did you mean `nodes`?"


def test_paths_are_joined_by_dots() -> None:
    assert (join("", "a"), join("a", "b")) == ("a", "a.b")
