"""The JSON Schema: sound, complete, and in agreement with what we accept."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from builders.spec import EXAMPLES, OURS
from protokube.spec.cluster import CLOUDS, Cluster
from protokube.spec.fields import declared
from protokube.spec.group import InstanceGroup
from protokube.spec.schema import describe, json_schema

WHOLE = json_schema()
VALIDATOR = jsonschema.Draft202012Validator(WHOLE)
OWN_EXAMPLES = [each for each in sorted(EXAMPLES.glob("*.yaml")) if OURS in each.read_text()]


def minimal() -> dict[str, Any]:
    return dict(yaml.safe_load((EXAMPLES / "minimal.yaml").read_text()))


def refused(document: dict[str, Any], validator: jsonschema.Draft202012Validator = VALIDATOR) -> bool:
    return not validator.is_valid(document)


def spec_with(**fields: object) -> dict[str, Any]:
    document = minimal()
    document["spec"].update(fields)
    return document


@pytest.mark.parametrize("kind", [None, "Cluster", "InstanceGroup"])
def test_it_is_a_schema_itself(kind: str | None) -> None:
    jsonschema.Draft202012Validator.check_schema(json_schema(kind))


@pytest.mark.parametrize("example", OWN_EXAMPLES, ids=lambda each: each.stem)
def test_every_example_of_ours_is_valid(example: Path) -> None:
    documents = list(yaml.safe_load_all(example.read_text()))

    assert documents
    for document in documents:
        VALIDATOR.validate(document)


def test_there_are_examples_of_ours_to_hold_against_it() -> None:
    assert len(OWN_EXAMPLES) >= 10


@pytest.mark.parametrize(
    "fields",
    [
        {"colour": "blue"},
        {"cloud": "awz"},
        {"masters": "3"},
        {"masters": 0},
        {"masters": 10},
        {"zones": "us-east-1a"},
        {"kubelet": "default"},
        {"kubelet": {"maxPods": "many"}},
        {"kubelet": {"maxpods": 5}},
        {"subnets": [{"zone": "us-east-1a"}]},
        {"subnets": {"a": {}}},
        {"etcdClusters": [{"name": "main", "members": [{"instanceGroup": "a"}]}]},
        {"topology": {"dns": {"type": "none"}}},
        {"cloudLabels": {"a": []}},
    ],
    ids=str,
)
def test_what_is_wrong_is_refused(fields: dict[str, object]) -> None:
    assert refused(spec_with(**fields))


@pytest.mark.parametrize(
    "fields",
    [
        {"kubernetesVersion": 1.30},
        {"masters": 3, "nodes": 0},
        {"kubelet": {"maxPods": 0, "failSwapOn": False, "nodeIP": ""}},
        {"cloudLabels": {"a": None, "b": True, "c": 1}},
        {"networking": {"plugin": "calico", "options": {"anything": [{"goes": 1}]}}},
        {"subnets": [{"name": "a", "zone": "us-east-1a"}]},
        {"hooks": [{"manifest": "x"}]},
    ],
    ids=str,
)
def test_what_is_right_is_accepted(fields: dict[str, object]) -> None:
    VALIDATOR.validate(spec_with(**fields))


@pytest.mark.parametrize("missing", ["apiVersion", "kind", "metadata", "spec"])
def test_a_document_has_its_four_parts(missing: str) -> None:
    document = minimal()
    del document[missing]

    assert refused(document)


def test_a_document_has_no_part_nobody_reads() -> None:
    assert refused(minimal() | {"specs": {}})
    assert refused(minimal() | {"metadata": {"name": "a.b", "lables": {}}})
    assert not refused(minimal() | {"rendered": {"kubeAPIServer": {}}})


def test_a_schema_of_one_kind_takes_that_kind_only() -> None:
    groups = jsonschema.Draft202012Validator(json_schema("InstanceGroup"))
    group = {"apiVersion": OURS, "kind": "InstanceGroup", "metadata": {"name": "nodes"}, "spec": {"role": "Node"}}

    assert not refused(group, groups)
    assert refused(minimal(), groups)
    assert json_schema("InstanceGroup")["properties"]["kind"] == {"const": "InstanceGroup"}
    assert "Cluster" not in json_schema("InstanceGroup")["$defs"]


def test_every_field_says_what_it_is_for_or_which_flag_it_becomes() -> None:
    parts = WHOLE["$defs"]

    def described(field: dict[str, Any]) -> bool:
        inner = field.get("$ref", "").rpartition("/")[2]
        return bool(field.get("description") or (inner and parts[inner]["description"]))

    silent = [
        f"{name}.{field}"
        for name, part in parts.items()
        for field, schema in part["properties"].items()
        if not described(schema)
    ]
    assert silent == []
    assert all(part["description"] for part in parts.values())


@pytest.mark.parametrize(("schema", "name"), [(Cluster, "Cluster"), (InstanceGroup, "InstanceGroup")])
def test_it_has_the_fields_that_are_declared_in_their_order(schema: type, name: str) -> None:
    assert list(WHOLE["$defs"][name]["properties"]) == list(declared(schema))
    assert WHOLE["$defs"][name]["additionalProperties"] is False


def test_choices_bounds_and_examples_are_stated() -> None:
    fields = WHOLE["$defs"]["Cluster"]["properties"]

    assert fields["cloud"]["enum"] == list(CLOUDS)
    assert (fields["masters"]["minimum"], fields["masters"]["maximum"]) == (1, 9)
    assert WHOLE["$defs"]["EtcdBackups"]["properties"]["interval"]["examples"] == ["30s", "5m"]
    assert WHOLE["$defs"]["EtcdCluster"]["properties"]["cpuRequest"]["examples"] == ["100m", "512Mi"]
    assert "maximum" not in WHOLE["$defs"]["EtcdBackups"]["properties"]["retentionDays"]


def test_a_setting_names_its_flag_and_its_place_in_the_file() -> None:
    kubelet = declared(Cluster)["kubelet"].type

    assert describe(declared(kubelet)["maxPods"]) == "--max-pods or maxPods in its configuration file"
    assert describe(declared(kubelet)["hostnameOverride"]) == "--hostname-override"
    assert describe(declared(kubelet)["podLogsDir"]) == "podLogsDir (from 1.30) in its configuration file"
    assert describe(declared(Cluster)["zones"]) == "The zones in which machines run"


def test_every_reference_leads_somewhere_and_every_part_is_used() -> None:
    found: set[str] = set()

    def walk(node: object) -> None:
        if isinstance(node, dict):
            if "$ref" in node:
                found.add(node["$ref"].rpartition("/")[2])
            for each in node.values():
                walk(each)
        elif isinstance(node, list):
            for each in node:
                walk(each)

    walk(WHOLE)
    assert found == set(WHOLE["$defs"])


def test_asking_twice_gives_the_same() -> None:
    before = copy.deepcopy(WHOLE)

    assert json_schema() == before
