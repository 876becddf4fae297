"""Two configurations side by side, each value with its reason."""

from __future__ import annotations

from builders.config import a_group, completed
from protokube.config.diff import Difference, Side, differences, table


def test_a_configuration_does_not_differ_from_itself() -> None:
    assert list(differences(completed(), completed())) == []


def test_one_changed_value_differs_wherever_it_reaches_and_nowhere_else() -> None:
    found = list(differences(completed(), completed(kubelet={"maxPods": 50})))

    groups = ["master-us-east-1a", "master-us-east-1b", "master-us-east-1c", "nodes"]
    assert sorted(each.path for each in found) == sorted(
        [
            "kubelet.maxPods",
            *(f"instanceGroups.{name}.kubelet.maxPods" for name in groups),
            *(f"instanceGroups.{name}.kubelet.file.maxPods" for name in groups),
        ]
    )
    first = next(each for each in found if each.path == "kubelet.maxPods")
    assert first.left == Side(110, "default, what Kubernetes is tested with")
    assert first.right == Side(50, "you set it at spec.yaml:12")


def test_what_only_one_side_has_is_absent_on_the_other() -> None:
    found = {each.path: each for each in differences(completed(), completed(a_group("nodes", rootVolumeSize=1)))}

    assert found["instanceGroups.nodes.rootVolumeSize"].left == Side(None, "", present=False)
    assert found["instanceGroups.nodes.rootVolumeSize"].right.value == 1


def test_nothing_and_absent_are_two_things() -> None:
    found = {each.path: each for each in differences(completed(), completed(dnsZone=""))}

    assert not found["dnsZone"].left.present
    assert (found["dnsZone"].right.present, found["dnsZone"].right.value) == (True, "")


def test_what_only_the_right_side_has_comes_after_what_both_have() -> None:
    left, right = completed(nodes=3), completed(nodes=4, dnsZone="z", masters=1)
    found = list(differences(left, right))
    new = [each.path for each in found if not each.left.present]

    assert "dnsZone" in new
    assert [each.path for each in found][-len(new) :] == new


def test_the_table_has_two_columns_under_each_path() -> None:
    found = [Difference("kubelet.maxPods", Side(110, "default, usual"), Side(50, "you set it at b.yaml:3"))]

    assert list(table(found, "a.yaml", "b.yaml", 80)) == [
        f"  {'a.yaml':<37} | b.yaml",
        "kubelet.maxPods",
        f"  {'110':<37} | 50",
        f"  {'(default, usual)':<37} | (you set it at b.yaml:3)",
    ]


def test_an_absent_value_is_a_dash_and_an_empty_one_is_shown_empty() -> None:
    found = [Difference("x", Side(None, "", present=False), Side("", "said"))]

    assert list(table(found, "l", "r", 80))[2:] == [f'  {"-":<37} | ""', f"  {'':<37} | (said)"]


def test_long_values_and_reasons_are_folded_into_their_column() -> None:
    long = ",".join(f"value-{index}" for index in range(20))
    rows = list(table([Difference("x", Side(long, "because " * 12), Side("short", "y"))], "l", "r", 100))

    assert all(len(row.partition(" |")[0]) <= 49 for row in rows[2:])
    assert "".join(row[2:49].strip() for row in rows[2:]).startswith(long)
    assert rows[2].split(" | ")[1] == "short"


def test_a_narrow_screen_still_gets_columns_one_can_read() -> None:
    rows = list(table([Difference("x", Side("a", "b"), Side("c", "d"))], "l", "r", 20))

    assert rows[2] == f"  {'a':<30} | c"
