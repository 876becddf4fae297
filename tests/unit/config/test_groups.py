"""Instance groups: names, places, sizes, labels and taints."""

from __future__ import annotations

import pytest

from builders.config import ZONES, a_group, completed, origin
from protokube.config.complete import Config
from protokube.config.groups import role_labels
from protokube.errors import InvalidSpec
from protokube.spec.version import Version


def masters_of(config: Config) -> list[str]:
    return [name for name, each in config.groups.items() if each["role"] == "Master"]


def test_each_master_has_a_group_of_one_machine_named_after_its_zone() -> None:
    config = completed()

    assert masters_of(config) == ["master-us-east-1a", "master-us-east-1b", "master-us-east-1c"]
    assert all(
        (config.groups[name]["minSize"], config.groups[name]["maxSize"]) == (1, 1) for name in masters_of(config)
    )
    assert [config.groups[name]["zones"] for name in masters_of(config)] == [[zone] for zone in ZONES["aws"]]


def test_the_second_master_in_a_zone_is_numbered_and_the_first_keeps_its_name() -> None:
    config = completed(masters=5)

    assert masters_of(config) == [
        "master-us-east-1a",
        "master-us-east-1a-2",
        "master-us-east-1b",
        "master-us-east-1b-2",
        "master-us-east-1c",
    ]
    assert config.groups["master-us-east-1b-2"]["zones"] == ["us-east-1b"]


def test_fewer_masters_than_zones_stand_in_the_first_ones() -> None:
    assert masters_of(completed(masters=1)) == ["master-us-east-1a"]


def test_all_nodes_are_one_group_over_all_zones() -> None:
    nodes = completed(nodes=7).groups["nodes"]

    assert (nodes["role"], nodes["minSize"], nodes["maxSize"], nodes["zones"]) == ("Node", 7, 7, ZONES["aws"])


def test_without_nodes_there_is_no_group_for_them_and_masters_run_pods() -> None:
    config = completed(nodes=0)

    assert "nodes" not in config.groups
    assert all(each["taints"] == [] for each in config.groups.values())


def test_a_bastion_is_made_where_the_topology_asks_for_one() -> None:
    config = completed(topology={"masters": "private", "bastion": {"bastionPublicName": "in.example.com"}})

    assert config.groups["bastions"]["role"] == "Bastion"
    assert config.groups["bastions"]["machineType"] == "t3.micro"
    assert "bastions" not in config.rendered
    assert "bastions" not in completed(topology={"masters": "private"}).groups


def test_people_reach_a_bastion_from_outside_and_everything_else_stands_inside() -> None:
    config = completed(topology={"masters": "private", "bastion": {}})

    assert config.groups["bastions"]["subnets"] == [f"utility-{zone}" for zone in ZONES["aws"]]
    assert config.groups["nodes"]["subnets"] == ZONES["aws"]
    assert config.groups["master-us-east-1b"]["subnets"] == ["us-east-1b"]


def test_a_bastion_stands_in_public_subnets_or_where_there_are_only_private_ones_in_those() -> None:
    public = completed(a_group("in", "Bastion")).groups["in"]
    fields = [{"name": "p", "zone": "us-east-1a", "type": "Private"}]
    private = completed(a_group("in", "Bastion"), zones=["us-east-1a"], subnets=fields).groups["in"]

    assert public["subnets"] == ZONES["aws"]
    assert private["subnets"] == ["p"]


def test_groups_of_the_users_take_the_place_of_those_of_their_role_only() -> None:
    config = completed(a_group("pool", minSize=4, maxSize=9))

    assert [name for name, each in config.groups.items() if each["role"] == "Node"] == ["pool"]
    assert len(masters_of(config)) == 3
    assert config.cluster["nodes"] == 4


def test_groups_that_only_members_name_are_made_with_the_zone_their_name_ends_in() -> None:
    members = [{"name": name, "instanceGroup": f"ctl-us-east-1{name}"} for name in "cab"]
    config = completed(etcdClusters=[{"name": "main", "members": members}])

    assert masters_of(config) == ["ctl-us-east-1a", "ctl-us-east-1b", "ctl-us-east-1c"]
    assert config.groups["ctl-us-east-1c"]["zones"] == ["us-east-1c"]


def test_groups_that_only_members_name_take_the_zones_in_turn_where_their_names_tell_nothing() -> None:
    members = [{"name": name, "instanceGroup": f"ctl-{name}"} for name in ("x", "y", "z")]
    config = completed(etcdClusters=[{"name": "main", "members": members}])

    assert [config.groups[f"ctl-{name}"]["zones"] for name in ("x", "y", "z")] == [[zone] for zone in ZONES["aws"]]


def test_zones_follow_from_subnets_and_subnets_from_zones() -> None:
    by_subnet = completed(a_group("pool", subnets=["us-east-1b"])).groups["pool"]
    by_zone = completed(a_group("pool", zones=["us-east-1c"])).groups["pool"]

    assert by_subnet["zones"] == ["us-east-1b"]
    assert by_zone["subnets"] == ["us-east-1c"]


def test_on_gce_a_subnet_of_the_region_serves_every_zone() -> None:
    config = completed(a_group("pool", subnets=["us-central1"]), a_group("one", zones=["us-central1-b"]), cloud="gce")

    assert config.groups["pool"]["zones"] == ZONES["gce"]
    assert config.groups["one"]["subnets"] == ["us-central1"]


@pytest.mark.parametrize(("role", "size"), [("Node", 2), ("Bastion", 1), ("APIServer", 1)])
def test_a_group_without_a_size_has_the_usual_one(role: str, size: int) -> None:
    group = completed(a_group("some", role)).groups["some"]

    assert (group["minSize"], group["maxSize"]) == (size, size)


def test_a_size_of_zero_is_an_answer() -> None:
    group = completed(a_group("pool", minSize=0), a_group("other")).groups["pool"]

    assert (group["minSize"], group["maxSize"]) == (0, 0)


@pytest.mark.parametrize(
    ("cloud", "machine", "image"),
    [("aws", "t3.medium", "136693071363/debian-12-amd64"), ("gce", "e2-medium", "debian-cloud/debian-12")],
)
def test_clouds_have_machines_and_images(cloud: str, machine: str, image: str) -> None:
    nodes = completed(cloud=cloud).groups["nodes"]

    assert (nodes["machineType"], nodes["image"]) == (machine, image)


def test_machines_in_racks_have_neither_type_nor_image() -> None:
    nodes = completed(cloud="metal", nodes=1).groups["nodes"]

    assert "machineType" not in nodes
    assert "image" not in nodes


@pytest.mark.parametrize(
    ("machine", "arch"),
    [
        ("m7g.large", "arm64"),
        ("t4g.small", "arm64"),
        ("a1.large", "arm64"),
        ("c6gn.large", "arm64"),
        ("m7i.large", "amd64"),
        ("g5.xlarge", "amd64"),
        ("t3.medium", "amd64"),
        ("p4d.24xlarge", "amd64"),
    ],
)
def test_the_image_is_for_the_processor_of_the_machine(machine: str, arch: str) -> None:
    assert completed(a_group("pool", machineType=machine)).groups["pool"]["image"].endswith(arch)


def test_the_role_of_a_machine_is_a_label_that_changed_its_name() -> None:
    old, middle, new = (role_labels("Master", Version(1, minor)) for minor in (19, 20, 24))

    assert set(old) == {"node-role.kubernetes.io/master"}
    assert set(middle) == {"node-role.kubernetes.io/master", "node-role.kubernetes.io/control-plane"}
    assert set(new) == {"node-role.kubernetes.io/control-plane"}
    assert role_labels("Node", Version(1, 36)) == {"node-role.kubernetes.io/node": ""}
    assert role_labels("Bastion", Version(1, 36)) == {}


def test_labels_of_the_users_stand_beside_those_of_the_role() -> None:
    config = completed(a_group("pool", nodeLabels={"example.com/pool": "a"}))

    assert config.groups["pool"]["nodeLabels"] == {"example.com/pool": "a", "node-role.kubernetes.io/node": ""}
    path = "instanceGroups.pool.nodeLabels"
    assert origin(config, f"{path}.example.com/pool").kind == "user"
    assert origin(config, f"{path}.node-role.kubernetes.io/node").kind == "derived"


def test_a_label_of_the_role_that_the_user_gives_a_value_keeps_it() -> None:
    config = completed(a_group("pool", nodeLabels={"node-role.kubernetes.io/node": "mine"}))

    assert config.groups["pool"]["nodeLabels"] == {"node-role.kubernetes.io/node": "mine"}


@pytest.mark.parametrize(("version", "key"), [("1.23.0", "master"), ("1.24.0", "control-plane")])
def test_masters_keep_other_pods_away_while_there_are_nodes(version: str, key: str) -> None:
    config = completed(kubernetesVersion=version)

    assert config.groups["master-us-east-1a"]["taints"] == [f"node-role.kubernetes.io/{key}:NoSchedule"]
    assert config.groups["nodes"]["taints"] == []


@pytest.mark.parametrize("fields", [[], ["a=b:NoExecute"]])
def test_taints_of_the_users_are_all_there_are(fields: list[str]) -> None:
    masters = [a_group(f"m-{zone}", "Master", taints=fields, zones=[zone]) for zone in ZONES["aws"]]

    assert completed(*masters).groups["m-us-east-1a"]["taints"] == fields


@pytest.mark.parametrize(
    ("cloud", "zones"),
    [("aws", ["us-east-1a", "us-east-1b", "us-east-1c"]), ("aws", ["us-east-1a"]), ("local", None), ("metal", None)],
)
def test_members_keep_their_names_when_masters_are_added(cloud: str, zones: list[str] | None) -> None:
    fields = {"cloud": cloud} if zones is None else {"cloud": cloud, "zones": zones}
    grown = [
        list(completed(**fields, masters=masters).cluster["etcdClusters"]["main"]["members"]) for masters in (1, 3, 5)
    ]

    assert grown[0] == ["a"]
    assert set(grown[0]) < set(grown[1]) < set(grown[2])


@pytest.mark.parametrize("field", ["kubelet", "masterKubelet"])
def test_a_label_that_a_kubelet_may_not_set_is_a_problem_that_says_where_it_belongs(field: str) -> None:
    with pytest.raises(InvalidSpec) as error:
        completed(**{field: {"nodeLabels": {"node-role.kubernetes.io/worker": ""}}})

    (problem,) = error.value.problems
    assert problem.path == f"{field}.nodeLabels.node-role.kubernetes.io/worker"
    assert "nodeLabels of an instance group" in problem.hint
