"""The order of decisions: versions, places, counts, names, the store and topology; and what it costs."""

from __future__ import annotations

import sys
from dataclasses import replace
from types import FrameType
from typing import Any, Self

import pytest

from builders.config import ZONES, a_group, a_spec, completed, kops, origin, problems, warnings
from protokube.config.complete import complete
from protokube.errors import InvalidSpec
from protokube.spec.version import DEFAULT


def test_the_version_is_the_newest_we_know_well_unless_it_is_said() -> None:
    assert completed().cluster["kubernetesVersion"] == str(DEFAULT)
    assert completed(kubernetesVersion="v1.33").cluster["kubernetesVersion"] == "1.33.13"


def test_what_the_user_wrote_is_not_changed_by_completing_it() -> None:
    spec = a_spec(a_group("pool", kubelet={"maxPods": 5}), kubelet={"featureGates": {"A": "true"}})
    before = (repr(spec.cluster), repr(spec.groups))

    complete(spec)

    assert (repr(spec.cluster), repr(spec.groups)) == before


def test_zones_are_read_off_the_subnets() -> None:
    subnets = [{"name": zone, "zone": zone} for zone in ZONES["aws"]]
    config = completed(zones=None, subnets=subnets)

    assert config.cluster["zones"] == ZONES["aws"]
    assert origin(config, "zones").of == ("subnets",)


def test_zones_are_read_off_the_groups_where_no_subnet_names_one() -> None:
    groups = [a_group(f"m-{zone}", "Master", zones=[zone]) for zone in ZONES["aws"]]
    config = completed(*groups, a_group("pool", zones=["us-east-1d"]), zones=None)

    assert config.cluster["zones"] == [*ZONES["aws"], "us-east-1d"]


def test_where_a_subnet_spans_a_region_the_groups_say_which_zones() -> None:
    config = completed(
        a_group("m", "Master", zones=["us-central1-a"], subnets=["net"]),
        cloud="gce",
        zones=None,
        subnets=[{"name": "net", "region": "us-central1"}, {"name": "old", "zone": "us-central1-f"}],
    )

    assert config.cluster["zones"] == ["us-central1-a"]


@pytest.mark.parametrize(("cloud", "zones"), [("local", ["local"]), ("metal", ["rack"])])
def test_where_the_cloud_has_no_zones_there_is_one_of_ours(cloud: str, zones: list[str]) -> None:
    config = completed(cloud=cloud)

    assert config.cluster["zones"] == zones
    assert "region" not in config.cluster


def test_three_masters_and_two_nodes_unless_groups_or_members_say_otherwise() -> None:
    usual = completed().cluster
    by_groups = completed(
        *(a_group(f"m-{zone}", "Master", zones=[zone]) for zone in ZONES["aws"]), a_group("a", minSize=0), a_group("b")
    ).cluster
    members = [{"name": "a", "instanceGroup": "master-us-east-1a"}]
    by_members = completed(etcdClusters=[{"name": "main", "members": members}]).cluster

    assert (usual["masters"], usual["nodes"]) == (3, 2)
    assert (by_groups["masters"], by_groups["nodes"]) == (3, 2)  # 0 of one group and the usual 2 of the other
    assert by_members["masters"] == 1


@pytest.mark.parametrize("cloud", ["local", "metal"])
def test_where_an_inventory_names_nodes_there_are_none_to_begin_with(cloud: str) -> None:
    assert completed(cloud=cloud).cluster["nodes"] == 0


def test_names_are_those_of_the_original() -> None:
    cluster = completed().cluster

    assert cluster["masterPublicName"] == "api.dev.example.com"
    assert cluster["masterInternalName"] == "api.internal.dev.example.com"
    assert "dnsZone" not in cluster
    assert completed(cloud="local", name="laptop").cluster["dnsZone"] == "laptop"


def test_keys_and_secrets_lie_beside_the_configuration() -> None:
    cluster = complete(a_spec(), store="file:///var/lib/protokube").cluster

    assert cluster["configBase"] == "file:///var/lib/protokube/dev.example.com"
    assert cluster["keyStore"] == "file:///var/lib/protokube/dev.example.com/pki"
    assert cluster["secretStore"] == "file:///var/lib/protokube/dev.example.com/secrets"
    assert completed().cluster["keyStore"] == "pki"


def test_a_base_the_user_names_goes_before_the_store() -> None:
    cluster = complete(a_spec(configBase="s3://mine/dev/"), store="s3://other").cluster

    assert cluster["configBase"] == "s3://mine/dev/"
    assert cluster["keyStore"] == "s3://mine/dev/pki"


def test_nodes_stand_where_masters_stand_unless_it_is_said() -> None:
    assert completed(topology={"masters": "private"}).cluster["topology"]["nodes"] == "private"
    assert completed(topology={"nodes": "private"}).cluster["topology"]["masters"] == "public"


def test_a_name_no_zone_can_hold_has_no_zone() -> None:
    assert completed(name="quick.k8s.local").cluster["topology"]["dns"] == {"type": "None"}
    assert completed().cluster["topology"]["dns"] == {"type": "Public"}


def test_the_api_is_reached_by_dns_or_by_a_balancer() -> None:
    assert completed().cluster["api"] == {"dns": {}}
    assert completed(api={"loadBalancer": {}}).cluster["api"] == {
        "loadBalancer": {"type": "Public", "useForInternalApi": False}
    }
    assert completed(api={"dns": {}}).cluster["api"] == {"dns": {}}


def test_all_problems_come_out_at_once_in_the_order_of_the_file() -> None:
    spec = a_spec(
        a_group("pool", minSize=5, maxSize=2, taints=["x"]),
        masters=2,
        podCIDR="100.64.0.0/12",
        kubelet={"tlsCurvePreferences": [1]},
        kubernetesVersion="1.30.0",
    )
    with pytest.raises(InvalidSpec) as error:
        complete(spec)

    lines = [each.where.line for each in error.value.problems if each.where]
    assert lines == sorted(lines)
    assert {each.path for each in error.value.problems} == {
        "etcdClusters.main.members",
        "etcdClusters.events.members",
        "serviceClusterIPRange",
        "kubelet.tlsCurvePreferences",
        "instanceGroups.pool.minSize",
        "instanceGroups.pool.taints[0]",
    }


def test_without_a_cloud_nothing_else_is_guessed() -> None:
    assert list(problems(cloud=None, podCIDR="x")) == ["cloud"]


def test_a_document_of_the_original_for_an_old_version_is_shown_in_the_form_of_our_oldest() -> None:
    spec = kops(
        {
            "kubernetesVersion": "1.10.3",
            "subnets": [{"name": "us-east-1a", "zone": "us-east-1a", "type": "Public", "cidr": "172.20.32.0/19"}],
            "etcdClusters": [
                {
                    "name": "main",
                    "version": "2.2.1",
                    "etcdMembers": [{"name": "a", "instanceGroup": "master-us-east-1a"}],
                }
            ],
            "kubeAPIServer": {"enableAdmissionPlugins": ["Initializers", "NodeRestriction"], "goawayChance": "0.1"},
            "kubelet": {"podLogsDir": "/x"},
        }
    )
    config = complete(spec)
    warning = warnings(config)

    assert config.cluster["kubernetesVersion"] == "1.10.3"
    assert "the oldest supported" in warning["kubernetesVersion"].message
    assert warning["kubelet.podLogsDir"].message == "kubelet 1.10 has no podLogsDir in its configuration file"
    assert warning["etcdClusters.main.version"].message == "etcd 2.2.1 is older than 3.4, the oldest supported"
    assert config.ledger.for_reading


class Calls:
    """Counts the functions of ours that are called."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        self.count += event == "call" and "protokube" in frame.f_code.co_filename

    def __enter__(self) -> Self:
        sys.setprofile(self)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)


def test_twice_as_many_groups_cost_twice_as_much() -> None:
    calls, origins, kubelets = [], [], []
    for count in (100, 200, 400):
        groups = {
            f"pool-{index:04}": {"role": "Node", "minSize": 1, "nodeLabels": {"n": "x"}} for index in range(count)
        }
        spec = replace(a_spec(), groups=groups)
        with Calls() as counted:
            config = complete(spec)
        calls.append(counted.count)
        origins.append(len(config.ledger.origins))
        kubelets.append(sum("kubelet" in warning for warning in config.rendered.values()))

    assert kubelets == [103, 203, 403]
    for low, middle, high in (calls, origins):
        assert 1.9 < (high - middle) / (middle - low) < 2.1
