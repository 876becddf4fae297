"""What a change means, before it is made: for a person, and as data."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.examples import examples
from protokube.cli.render.change import change_tree, render_change, step
from protokube.config.diff import Difference, Side
from protokube.errors import Problem, Where
from protokube.launch.plan import ChangePlan

MASTERS = ("master-a", "master-b", "master-c")
QUOTA = Difference(
    "etcdClusters.main.quotaBackendBytes",
    Side(2147483648, "default, half of its disk"),
    Side(4294967296, "you set it at b.yaml:9"),
)
PODS = Difference(
    "kubelet.maxPods", Side(110, "default, what Kubernetes is tested with"), Side(60, "you set it at b.yaml:11")
)
ABSENT = Side(None, "", present=False)


def a_plan(*values: Difference, **fields: Any) -> ChangePlan:
    given = {"refused": (), "restarts": (), "masters": MASTERS, **fields}
    return ChangePlan(values=values, **given)


def lines(plan: ChangePlan, width: int = 100) -> list[str]:
    return render_change(plan, "laptop", 3, 4, width)


def test_a_change_shows_each_value_with_its_reasons_and_then_the_restarts() -> None:
    plan = a_plan(QUOTA, PODS, restarts=("etcd main", "kube-apiserver", "kubelet"))

    assert lines(plan) == [
        "laptop: revision 3 would change to 4",
        "",
        "  etcdClusters.main.quotaBackendBytes  2147483648 -> 4294967296",
        "      was: default, half of its disk",
        "      now: you set it at b.yaml:9",
        "  kubelet.maxPods  110 -> 60",
        "      was: default, what Kubernetes is tested with",
        "      now: you set it at b.yaml:11",
        "",
        "restarts on master-a, master-b, master-c, one master after the other:",
        "  etcd main, kube-apiserver, kubelet",
    ]


def test_a_change_without_restarts_says_so() -> None:
    assert lines(a_plan(PODS))[-1] == "written on master-a, master-b, master-c without a restart"


def test_no_change_is_one_line() -> None:
    assert lines(a_plan()) == ["laptop: revision 3 has all of it already: nothing changes"]


@pytest.mark.parametrize(
    ("restarts", "line"),
    [
        (("etcd main",), "the API and etcd do not answer while the only master restarts them; `--yes` confirms it"),
        (("kube-apiserver",), "the API does not answer while the only master restarts it; `--yes` confirms it"),
    ],
)
def test_a_single_master_warns_that_nothing_answers_meanwhile(restarts: tuple[str, ...], line: str) -> None:
    found = lines(a_plan(PODS, restarts=restarts, masters=("master-a",)))

    assert found[-3:] == ["restarts on master-a:", f"  {restarts[0]}", line]


def test_a_single_master_that_restarts_the_scheduler_keeps_answering() -> None:
    found = lines(a_plan(PODS, restarts=("kube-scheduler",), masters=("master-a",)))

    assert found[-2:] == ["restarts on master-a:", "  kube-scheduler"]


def test_what_follows_is_shown_without_reasons_and_only_the_first_few() -> None:
    more = [Difference(f"instanceGroups.g{index}.kubelet.maxPods", PODS.left, PODS.right) for index in range(10)]
    found = lines(a_plan(PODS, *more, following=frozenset(each.path for each in more)))

    assert found[5] == "  and what follows from it:"
    assert found[6] == "    instanceGroups.g0.kubelet.maxPods  110 -> 60"
    assert found[14] == "    and 2 values more"
    assert len(found) == 17


def test_values_that_only_follow_from_each_other_are_shown_like_others() -> None:
    found = lines(a_plan(PODS, following=frozenset({PODS.path})))

    assert found[2:4] == ["  kubelet.maxPods  110 -> 60", "      was: default, what Kubernetes is tested with"]


def test_a_refused_change_shows_every_refusal_with_its_place_and_hint_and_no_restarts() -> None:
    problems = (
        Problem(path="podCIDR", message="cannot change", hint="keep it", where=Where("b.yaml", 6)),
        Problem(path="", message="something else", hint="create a new cluster"),
    )
    found = lines(a_plan(PODS, refused=problems, restarts=("kubelet",)))

    assert found[0] == "laptop: revision 3 cannot change to 4"
    assert found[-5:] == [
        "refused, nothing is changed:",
        "  b.yaml:6 podCIDR: cannot change",
        "    hint: keep it",
        "  something else",
        "    hint: create a new cluster",
    ]


STEPS: list[tuple[Any, Any, str]] = [
    (True, False, "true -> false"),
    ("", "x", '"" -> x'),
    ("a", "\x1b[2J", "a -> \\x1b[2J"),
    ([], ["a"], "[] -> [a]"),
    ([f"name-{n}" for n in range(30)], [f"name-{n}" for n in range(1, 31)], "adds [name-30], removes [name-0]"),
    ([*"abcdefghijklmnopqrst"], [*"bacdefghijklmnopqrst"], "the same 20 items in another order, or more often"),
    ("a\nb\nc\n", "a\nB\nc\n", "line 2 of 3: b -> B"),
    ("a\nb\n", "a\n", "line 2 of 2: b -> (end)"),
    ("a\nb\n", "a\nb", "differs only in line ends or type"),
    ("registry.example/kubernetes/kube-apiserver:v1", "registry.example/kubernetes/kube-apiserver:v2",
        "... rnetes/kube-apiserver:v1 -> ... rnetes/kube-apiserver:v2"),
    ("x" * 200, "y" * 200, f"{'x' * 24} ... -> {'y' * 24} ..."),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after", "expected"), STEPS)
def test_of_long_values_the_part_is_shown_that_differs(before: Any, after: Any, expected: str) -> None:
    assert step(Side(before, ""), Side(after, ""), 60) == expected


def test_a_value_that_only_one_side_has_is_not_set_on_the_other() -> None:
    assert step(ABSENT, Side("30s", ""), 60) == "not set -> 30s"
    assert step(Side("30s", ""), ABSENT, 60) == "30s -> not set"
    assert step(ABSENT, Side("first\nsecond\n", ""), 60) == "not set -> first ... (2 lines)"
    assert step(ABSENT, Side({}, ""), 60) == "not set -> {}"


def test_a_whole_item_is_added_or_removed() -> None:
    assert step(ABSENT, Side({"role": "Node"}, ""), 60) == "added"
    assert step(Side({"role": "Node"}, ""), ABSENT, 60) == "removed"


def test_a_reason_takes_three_lines_at_most() -> None:
    long = Difference("x", Side(1, "because " * 100), Side(2, "y"))
    found = lines(a_plan(long), 60)

    assert len(found) == 2 + 1 + 3 + 1 + 2
    assert found[5].endswith(" ...")


VALUES: st.SearchStrategy[Any] = st.one_of(
    st.none(), st.booleans(), st.integers(), st.text(), st.lists(st.text() | st.integers()), st.just({})
)


@given(VALUES, VALUES, st.integers(0, 200))
@examples(200)
def test_any_step_is_one_line_that_does_not_run_on(before: Any, after: Any, width: int) -> None:
    for left, right in ((Side(before, ""), Side(after, "")), (ABSENT, Side(after, "")), (Side(before, ""), ABSENT)):
        text = step(left, right, width)
        assert len(text.splitlines()) == 1
        assert len(text) <= max(width, 40) + 40


def test_the_same_as_data_has_whole_values() -> None:
    long = Difference("fileAssets.f.content", ABSENT, Side("text\n" * 50, "you set it at b.yaml:3"))
    problem = Problem(path="podCIDR", message="cannot change", hint="keep it", where=Where("b.yaml", 6))
    plan = a_plan(
        PODS, long, refused=(problem,), restarts=("etcd main",), masters=("master-a",), following=frozenset({long.path})
    )
    tree = change_tree(plan, "laptop", 3, 4)

    assert json.loads(json.dumps(tree)) == tree
    assert tree == {
        "cluster": "laptop",
        "before": 3,
        "after": 4,
        "changes": True,
        "values": [
            {
                "path": "kubelet.maxPods",
                "before": {"value": 110, "why": "default, what Kubernetes is tested with"},
                "after": {"value": 60, "why": "you set it at b.yaml:11"},
                "follows": False,
            },
            {
                "path": "fileAssets.f.content",
                "before": None,
                "after": {"value": "text\n" * 50, "why": "you set it at b.yaml:3"},
                "follows": True,
            },
        ],
        "refused": [{"path": "podCIDR", "message": "cannot change", "hint": "keep it", "where": "b.yaml:6"}],
        "restarts": ["etcd main"],
        "stages": [],
        "oneWay": [],
        "masters": ["master-a"],
        "adds": [],
        "replacesHosts": False,
        "apiAway": True,
    }


def test_an_upgrade_shows_its_stages_and_what_cannot_be_undone() -> None:
    names = ("etcd main", "kube-apiserver", "kubelet")
    plan = a_plan(
        PODS, restarts=names, masters=("a", "b", "c"), stages=(names[:1], names[1:2], names[2:]),
        one_way=("etcd main 3.5 -> 3.6: once all members run it, 3.5 cannot read the data any more",),
    )  # fmt: skip
    lines = render_change(plan, "laptop", 3, 4, 120)

    assert lines[0] == "laptop: revision 3 would change to 6"
    assert lines[-4:] == [
        "  stage 1: etcd main",
        "  stage 2: kube-apiserver",
        "  stage 3: kubelet",
        "no way back: etcd main 3.5 -> 3.6: once all members run it, 3.5 cannot read the data any more",
    ]


def test_what_is_added_comes_first_and_a_stage_that_replaces_hosts_says_so() -> None:
    api, node = ("kube-apiserver",), ("etcd main", "kube-apiserver", "kubelet")
    adds = ("Kubernetes 1.36.4", "kubelets")
    plan = a_plan(restarts=node, stages=(api, node), replacing=(False, True), adds=adds, first_api=True)

    assert lines(plan) == [
        "laptop: revision 3 would change to 5",
        "",
        "  adds Kubernetes 1.36.4",
        "  adds kubelets",
        "",
        "restarts on master-a, master-b, master-c, one master after the other:",
        "  stage 1: kube-apiserver",
        "  stage 2: etcd main, kube-apiserver, kubelet",
        "stage 2 replaces each host by a new one, which takes over its disks",
    ]
    tree = change_tree(plan, "laptop", 3, 4)
    assert (tree["adds"], tree["replacesHosts"]) == (list(adds), True)


def test_a_control_plane_that_is_added_starts_and_restarts_nothing() -> None:
    plan = a_plan(restarts=("kube-apiserver",), stages=(("kube-apiserver",),), replacing=(False,), first_api=True)

    assert lines(plan)[-2:] == [
        "starts on master-a, master-b, master-c, one master after the other:",
        "  kube-apiserver",
    ]


def test_etcd_that_runs_already_restarts_also_where_a_control_plane_is_added() -> None:
    both = ("etcd main", "kube-apiserver")
    plan = a_plan(restarts=both, stages=(both,), replacing=(False,), first_api=True)

    assert lines(plan)[-2] == "restarts on master-a, master-b, master-c, one master after the other:"


def test_the_only_host_that_is_replaced_takes_etcd_and_the_api_away() -> None:
    plan = a_plan(restarts=("etcd main", "kubelet"), masters=("a",), replacing=(True,), adds=("kubelets",))

    assert "this replaces each host by a new one, which takes over its disks" in lines(plan, 200)
    assert lines(plan, 200)[-1].startswith(
        "the API and etcd do not answer while the only master is replaced, for half a"
    )
