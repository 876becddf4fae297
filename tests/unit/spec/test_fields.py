"""How fields are declared: wire names, checks, and what the schema knows of each."""

from __future__ import annotations

import re
from dataclasses import is_dataclass
from typing import Any, get_origin

import pytest

from protokube.spec.cluster import Cluster
from protokube.spec.components.kubelet import Kubelet
from protokube.spec.components.scheduler import KubeScheduler
from protokube.spec.fields import at_least, declared, duration, element, lasting, one_of, quantity, seconds, wire_name
from protokube.spec.group import InstanceGroup
from protokube.spec.network import LoadBalancer, Subnet
from protokube.spec.version import parse


def schemas(schema: type) -> set[type]:
    """A schema class and all classes its fields are made of."""
    found = {schema}
    for rule in declared(schema).values():
        kind = element(rule.type) if rule.keyed else rule.type
        if is_dataclass(kind):
            assert isinstance(kind, type)
            found |= schemas(kind)
    return found


ALL = sorted(schemas(Cluster) | schemas(InstanceGroup), key=lambda each: each.__name__)


@pytest.mark.parametrize(
    ("attribute", "name"),
    [("cloud", "cloud"), ("max_pods", "maxPods"), ("kube_api_server", "kubeApiServer"), ("is_base64", "isBase64")],
)
def test_a_name_in_python_becomes_a_name_in_a_document(attribute: str, name: str) -> None:
    assert wire_name(attribute) == name


def test_a_field_may_have_a_wire_name_of_its_own() -> None:
    assert declared(Cluster)["kubeAPIServer"].attribute == "kube_api_server"
    assert declared(LoadBalancer)["class"].attribute == "class_"
    assert declared(Subnet)["ipv6CIDR"].attribute == "ipv6_cidr"
    assert "kubeApiServer" not in declared(Cluster)


def test_fields_come_in_the_order_they_are_declared() -> None:
    assert list(declared(Cluster))[:5] == ["cloud", "zones", "masters", "nodes", "kubernetesVersion"]


def test_a_field_knows_its_type_and_whether_it_may_stay_unsaid() -> None:
    fields = declared(Cluster)

    assert (fields["masters"].type, fields["masters"].optional) == (int, False)
    assert (fields["dnsZone"].type, fields["dnsZone"].optional) == (str, True)
    assert (fields["cloudConfig"].type, fields["cloudConfig"].optional) == (dict[str, Any], True)
    assert element(fields["zones"].type) is str
    assert fields["subnets"].keyed
    assert element(fields["subnets"].type) is Subnet


def test_a_setting_knows_its_flag_and_its_place_in_the_file() -> None:
    settings = declared(Kubelet)

    assert (settings["maxPods"].flag, settings["maxPods"].file) == ("max-pods", "maxPods")
    assert settings["imageMaximumGCAge"].since == "1.29"
    assert declared(KubeScheduler)["kubeAPIQPS"].form == "number"


@pytest.mark.parametrize("schema", ALL, ids=lambda each: each.__name__)
def test_no_two_fields_of_a_schema_share_a_name_a_flag_or_a_place_in_a_file(schema: type) -> None:
    rules = declared(schema).values()

    assert len(declared(schema)) == len({rule.attribute for rule in rules})
    for names in ([rule.flag for rule in rules if rule.flag], [rule.file for rule in rules if rule.file]):
        assert len(names) == len(set(names)), sorted(each for each in names if names.count(each) > 1)


@pytest.mark.parametrize("schema", ALL, ids=lambda each: each.__name__)
def test_every_field_is_declared_soundly(schema: type) -> None:
    for name, rule in declared(schema).items():
        assert re.fullmatch(r"[a-z][A-Za-z0-9]*", name)
        assert not rule.flag.startswith("-"), name
        assert all(parse(bound) for bound in (rule.since, rule.until) if bound), name
        assert not (rule.since or rule.form) or rule.file, f"{name}: only a file has forms, and grows entries"
        assert rule.check not in (duration, quantity) or rule.type is str, name
        assert not hasattr(rule.check, "bounds") or rule.type is int, name
        if rule.keyed:
            assert get_origin(rule.type) is dict, name
            assert "name" not in declared(element(rule.type)), name


@pytest.mark.parametrize("good", ["0", "30s", "5m", "1h30m", "1.5h", "250ms", "2s500ms", "10us", "10µs", "1ns", "-1s"])
def test_a_duration_as_go_writes_it(good: str) -> None:
    assert duration(good) is None


@pytest.mark.parametrize("bad", ["", "30", "5 m", "m", "1d", "30S", "1h30", "5m\n", "five minutes", "٣s", "1h-30m"])
def test_anything_else_is_no_duration(bad: str) -> None:
    assert duration(bad) == f"{bad!r} is not a duration such as 30s, 5m or 1h30m"


@pytest.mark.parametrize(
    ("text", "long"),
    [("0", 0), ("30s", 30), ("1h30m", 5400), ("1.5h", 5400), ("2s500ms", 2.5), ("10µs", 1e-5), ("-1m", -60)],
)
def test_a_duration_in_seconds(text: str, long: float) -> None:
    assert seconds(text) == pytest.approx(long)


def test_a_duration_within_bounds() -> None:
    check = lasting("60s", "1h")

    assert [check(each) for each in ("60s", "1m", "1h", "59m59s")] == [None] * 4
    assert check("59s") == "59s is shorter than 60s"
    assert check("-1h") == "-1h is shorter than 60s"
    assert check("1h1s") == "1h1s is longer than 1h"
    assert check("soon") == "'soon' is not a duration such as 30s, 5m or 1h30m"


@pytest.mark.parametrize("good", ["0", "1", "1.5", "100m", "512Mi", "2Gi", "4k", "1e3", "1E6", "5E", "-1", "100n"])
def test_a_quantity_as_kubernetes_writes_it(good: str) -> None:
    assert quantity(good) is None


@pytest.mark.parametrize("bad", ["", "half", "100MB", "1.", "1 Gi", "Mi", "1Ki\n", "٣", "1,5", "0x10", "1mi"])
def test_anything_else_is_no_quantity(bad: str) -> None:
    assert quantity(bad) == f"{bad!r} is not a quantity such as 100m, 1.5 or 512Mi"


def test_one_word_out_of_a_few() -> None:
    check = one_of("Public", "Private")

    assert check("Public") is None
    assert check("public") == "'public' is not one of Public, Private"


def test_a_number_within_bounds() -> None:
    check, open_ended = at_least(1, 9), at_least(0)

    assert [check(each) for each in (1, 9)] == [None, None]
    assert check(0) == "0 is less than 1"
    assert check(10) == "10 is more than 9"
    assert open_ended(10**9) is None
    assert open_ended(-1) == "-1 is less than 0"
