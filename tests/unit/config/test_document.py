"""A complete configuration as documents: ordered, plain, and the same again when it is read back."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from builders.config import a_group, completed, read_back, written
from builders.examples import examples
from protokube import fast_yaml
from protokube.config.document import documents, wire
from protokube.spec.cluster import Cluster
from protokube.spec.fields import declared
from protokube.spec.group import InstanceGroup

TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=30)


def parts(text: str) -> list[dict[str, Any]]:
    return list(yaml.load_all(text, Loader=fast_yaml.loader()))


def test_the_cluster_comes_first_then_its_groups_by_name_each_saying_whose_it_is() -> None:
    cluster, *groups = documents(completed(a_group("z"), a_group("b")))

    assert cluster["kind"] == "Cluster"
    assert cluster["metadata"]["name"] == "dev.example.com"
    assert [each["metadata"]["name"] for each in groups] == [
        "b",
        "master-us-east-1a",
        "master-us-east-1b",
        "master-us-east-1c",
        "z",
    ]
    assert {each["metadata"]["labels"]["protokube.io/cluster"] for each in groups} == {"dev.example.com"}
    assert {each["kind"] for each in groups} == {"InstanceGroup"}


def test_fields_come_in_the_order_of_the_schema_whatever_order_they_were_said_in() -> None:
    one = completed(nodes=3, masters=1, kubelet={"maxPods": 5, "address": "0.0.0.0"})
    other = completed(kubelet={"address": "0.0.0.0", "maxPods": 5}, masters=1, nodes=3)

    cluster, *groups = documents(one)
    assert list(cluster["spec"]) == [name for name in declared(Cluster) if name in cluster["spec"]]
    assert list(groups[0]["spec"]) == [name for name in declared(InstanceGroup) if name in groups[0]["spec"]]
    assert written(one) == written(other)


def test_things_with_a_name_are_a_list_again_in_their_own_order() -> None:
    tree = {"subnets": {"z": {"cidr": "10.0.0.0/8", "zone": "a"}, "a": {}}, "nodes": 0}

    assert wire(Cluster, tree) == {
        "nodes": 0,
        "subnets": [{"name": "z", "zone": "a", "cidr": "10.0.0.0/8"}, {"name": "a"}],
    }


def test_a_group_without_flags_has_none_to_show() -> None:
    groups = {each["metadata"]["name"]: each for each in documents(completed(a_group("jump", "Bastion")))}

    assert "rendered" not in groups["jump"]
    assert "rendered" in groups["nodes"]


def test_text_of_several_lines_is_a_block_and_nothing_is_said_by_reference() -> None:
    shared = {"a": ["b"]}
    text = written(completed(fileAssets=[{"name": "f", "content": "one\ntwo\n"}], ntp=shared, iam=shared))

    assert "    content: |\n      one\n      two\n" in text
    assert "&" not in text
    assert "*id" not in text
    assert "'*,bootstrapsigner,tokencleaner'" in text


def test_the_json_form_is_one_list_of_the_same_documents() -> None:
    config = completed()
    whole = json.loads(written(config, "json"))

    assert (whole["apiVersion"], whole["kind"]) == ("protokube.io/v1alpha1", "List")
    assert whole["items"] == parts(written(config))


def test_a_form_of_another_name_is_yaml() -> None:
    assert written(completed(), "yaml").startswith("apiVersion: protokube.io/v1alpha1\nkind: Cluster\n")


@given(TEXT)
@example("a\r\nb\n")
@example("\n leading")
@example("tab\tand trailing  \n")
@example("a\x85b\n")
@example("a\u2028b\nc")
@example("a\x7fb\n")
@example("\ufeffbom")
@example("1e+16")
@example("1e-05")
@example("# no comment\n")
@example("---\n")
@examples(15, derandomize=True)
def test_any_text_of_the_users_is_read_back_as_it_was_from_both_forms(text: str) -> None:
    config = completed(
        fileAssets=[{"name": "f", "content": text}], networking={"plugin": "cni", "options": {"x": text}}
    )
    assert config.cluster["fileAssets"]["f"]["content"] == text

    for form in ("yaml", "json"):
        again = read_back(written(config, form))
        assert again.cluster["fileAssets"]["f"]["content"] == text
        assert again.cluster["networking"]["options"] == {"x": text}
        assert written(again) == written(config)


@given(st.floats(allow_nan=False, allow_infinity=False), st.integers(-(10**15), 10**15))
@example(1e-05, 0)
@example(1e16, 1)
@example(0.5, 2)
@examples(10, derandomize=True)
def test_any_number_of_the_users_is_read_back_as_it_was(number: float, whole: int) -> None:
    config = completed(
        kubeControllerManager={"unhealthyZoneThreshold": number}, kubeAPIServer={"minRequestTimeout": whole}
    )

    for form in ("yaml", "json"):
        again = read_back(written(config, form))
        assert again.cluster["kubeControllerManager"]["unhealthyZoneThreshold"] == number
        assert again.cluster["kubeAPIServer"]["minRequestTimeout"] == whole


@pytest.mark.parametrize(
    "look", ["1.30", "no", "0x1F", "1e3", "007", "~", "null", "true", "1:30", "2024-01-01", "=", ""]
)
def test_text_that_looks_like_something_else_stays_text(look: str) -> None:
    config = completed(cloudLabels={"x": look}, addons=[{"manifest": look}])
    (cluster, *_) = parts(written(config))

    assert cluster["spec"]["cloudLabels"] == {"x": look}
    assert cluster["spec"]["addons"] == [{"manifest": look}]
    assert read_back(written(config)).cluster["addons"] == [{"manifest": look}]
