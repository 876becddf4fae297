"""Groups: bounds, places, taints, counts, files and hooks."""

from __future__ import annotations

from typing import Any

import pytest

from builders.config import ZONES, a_group, completed, problems, the_problem, warnings


def test_a_group_is_never_smaller_than_it_always_is() -> None:
    problem = the_problem(a_group("pool", minSize=3, maxSize=2))

    assert (problem.path, problem.message) == ("instanceGroups.pool.minSize", "3 is more than maxSize 2")


def test_a_group_stands_in_subnets_and_zones_that_exist() -> None:
    found = problems(a_group("pool", subnets=["us-east-1d"], zones=["us-east-1a", "us-east-2a"]))

    assert found["instanceGroups.pool.subnets[0]"].message == "there is no subnet 'us-east-1d'"
    assert found["instanceGroups.pool.subnets[0]"].hint.startswith("did you mean `us-east-1")
    assert found["instanceGroups.pool.zones[1]"].message == "'us-east-2a' is not a zone of this cluster"


def test_where_nothing_is_near_the_known_places_are_named() -> None:
    found = problems(a_group("pool", subnets=["q"], zones=["q"]))

    assert found["instanceGroups.pool.subnets[0]"].hint == "known are us-east-1a, us-east-1b, us-east-1c"
    assert found["instanceGroups.pool.zones[0]"].hint == "known are us-east-1a, us-east-1b, us-east-1c"
    metal = problems(a_group("pool", subnets=["q"]), cloud="metal")
    assert metal["instanceGroups.pool.subnets[0]"].hint == "known are none"


@pytest.mark.parametrize("text", ["x", "x=y", "x:Sometimes", ":NoSchedule", "a b:NoSchedule", "a=b:NoSchedule\n", ""])
def test_a_taint_has_a_key_and_an_effect(text: str) -> None:
    problem = the_problem(a_group("pool", taints=["ok:NoExecute", text]))

    assert (problem.path, problem.message) == ("instanceGroups.pool.taints[1]", f"{text!r} is not a taint")
    assert "NoSchedule, PreferNoSchedule, NoExecute" in problem.hint


@pytest.mark.parametrize("text", ["a:NoSchedule", "a=b:PreferNoSchedule", "a=:NoExecute", "example.com/a=b:NoSchedule"])
def test_taints_as_kubernetes_writes_them_are_accepted(text: str) -> None:
    assert completed(a_group("pool", taints=[text])).groups["pool"]["taints"] == [text]


@pytest.mark.parametrize("layer", ["kubelet", "masterKubelet"])
def test_taints_that_kubelets_are_told_for_all_machines_are_checked_once(layer: str) -> None:
    problem = the_problem(a_group("a"), a_group("b"), **{layer: {"taints": ["nonsense"]}})

    assert problem.path == f"{layer}.taints[0]"


def test_taints_that_one_groups_kubelet_is_told_are_checked_there() -> None:
    assert the_problem(a_group("a", kubelet={"taints": ["nonsense"]})).path == "instanceGroups.a.kubelet.taints[0]"


@pytest.mark.parametrize(
    ("field", "count", "groups"),
    [
        ("masters", 3, [a_group("m", "Master", zones=["us-east-1a"])]),
        ("nodes", 3, [a_group("pool", minSize=2)]),
    ],
)
def test_a_count_that_the_groups_contradict_is_a_problem(field: str, count: int, groups: list[Any]) -> None:
    problem = the_problem(*groups, **{field: count})

    assert problem.path == field
    assert problem.message.startswith(f"is {count}, but the groups of role ")
    assert problem.hint == f"leave `{field}` out, or change the groups"


def test_a_count_of_masters_that_the_members_contradict_is_a_problem() -> None:
    members = [{"name": name, "instanceGroup": f"master-us-east-1{name}"} for name in "abc"]
    problem = the_problem(masters=5, etcdClusters=[{"name": "main", "members": members}])

    assert (problem.path, problem.message) == ("masters", "is 5, but the groups of role Master have 3")


def test_a_count_that_the_groups_confirm_is_fine() -> None:
    groups = [a_group(f"m-{zone}", "Master", zones=[zone]) for zone in ZONES["aws"]]

    completed(*groups, a_group("pool", minSize=4), masters=3, nodes=4)


def test_a_bastion_where_machines_are_public_is_a_warning() -> None:
    config = completed(topology={"bastion": {}})

    assert warnings(config)["topology.bastion"].message == "a bastion is useful only if machines are private"


def test_files_and_hooks_name_roles_that_exist_and_have_something_to_write_or_run() -> None:
    found = problems(
        a_group("pool", fileAssets=[{"name": "f", "content": "x", "roles": ["Nodes"]}], hooks=[{"roles": ["Zebra"]}]),
        fileAssets=[{"name": "empty"}],
        hooks=[{"name": "a"}, {"manifest": "", "execContainer": {}}, {"disabled": True}, {"manifest": "x"}],
    )

    assert {path: (each.message, each.hint) for path, each in found.items()} == {
        "fileAssets.empty.content": ("is not given", "the content of the file"),
        "hooks[0]": ("a hook needs a `manifest` or an `execContainer`", ""),
        "hooks[1]": ("a hook needs a `manifest` or an `execContainer`", ""),
        "instanceGroups.pool.fileAssets.f.roles[0]": ("'Nodes' is not a role", "did you mean `Node`?"),
        "instanceGroups.pool.hooks[0]": ("a hook needs a `manifest` or an `execContainer`", ""),
        "instanceGroups.pool.hooks[0].roles[0]": (
            "'Zebra' is not a role",
            "known are Master, Node, Bastion, APIServer",
        ),
    }


def test_a_file_may_be_empty() -> None:
    assert completed(fileAssets=[{"name": "f", "content": ""}]).cluster["fileAssets"]["f"] == {"content": ""}
