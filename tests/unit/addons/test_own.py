"""Add-ons of the user: which can be applied, and which are refused before anything is applied."""

from __future__ import annotations

import pytest

from protokube.addons.own import own_addons
from protokube.errors import InvalidRequest, InvalidSpec

TWO = """
apiVersion: v1
kind: ConfigMap
metadata: {name: one}
---
---
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Secret
  metadata: {name: two}
"""


def nothing(url: str) -> str:
    raise AssertionError(url)


def test_a_manifest_said_in_place_is_its_objects_in_their_order() -> None:
    (addon,) = own_addons([{"manifest": TWO}], nothing)

    assert addon.name == "own-0"
    assert [(each["kind"], each["metadata"]["name"]) for each in addon.objects] == [
        ("ConfigMap", "one"), ("Secret", "two"),
    ]  # fmt: skip


def test_a_manifest_behind_a_url_is_read_and_named_after_its_file() -> None:
    asked: list[str] = []

    def read(url: str) -> str:
        asked.append(url)
        return TWO

    addons = own_addons([{"manifest": "s3://bucket/Metrics.yaml"}, {"name": "b", "manifest": "./x.yaml"}], read)

    assert asked == ["s3://bucket/Metrics.yaml", "./x.yaml"]
    assert [each.name for each in addons] == ["metrics", "b"]


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({}, "addons[0] has no manifest"),
        ({"manifest": 7}, "addons[0] has no manifest"),
        ({"manifest": TWO, "url": "x"}, "unknown field url"),
        ({"manifest": TWO, "name": "Not A Name"}, "not a name for an add-on"),
        ({"manifest": TWO, "name": "rbac"}, "there is an add-on 'rbac' already"),
        ({"manifest": "kind: X\nmetadata: {name: a}\n"}, "cannot be applied"),
        ({"manifest": "apiVersion: v1\nkind: X\n"}, "cannot be applied"),
        ({"manifest": "apiVersion: v1\nkind: X\nmetadata: {name: a, labels: 3}\n"}, "cannot be applied"),
        ({"manifest": "apiVersion: v1\nkind: Addons\nmetadata: {name: a}\n"}, "a channel of kops"),
    ],
)
def test_what_cannot_be_applied_is_told(entry: dict[str, object], words: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        own_addons([entry], nothing)

    assert words in str(caught.value)


def test_two_of_one_name_are_told() -> None:
    with pytest.raises(InvalidRequest, match="already"):
        own_addons([{"manifest": TWO, "name": "a"}, {"manifest": TWO, "name": "a"}], nothing)


def test_what_is_no_yaml_is_told_with_its_place() -> None:
    with pytest.raises(InvalidSpec, match="problem"):
        own_addons([{"manifest": "a: [\nb"}], nothing)
