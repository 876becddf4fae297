"""Flags and files in a complete configuration are shown, not taken: one edited by hand is not lost without a word."""

from __future__ import annotations

import pytest

from builders.config import completed, read_back, written
from protokube.config.check.rendered import differences
from protokube.errors import InvalidSpec, Problem


def edited(old: str, new: str) -> list[Problem]:
    text = written(completed())
    assert text.count(old) >= 1
    with pytest.raises(InvalidSpec) as error:
        read_back(text.replace(old, new, 1))
    return list(error.value.problems)


def test_a_flag_edited_by_hand_is_a_problem_that_names_the_field_to_change() -> None:
    (problem,) = edited("      secure-port: 443\n", "      secure-port: 6443\n")

    assert problem.path == "rendered.kubeAPIServer.flags.secure-port"
    assert problem.message == "is 6443, but the fields give 443"
    assert "extraFlags" in problem.hint
    assert problem.where is not None


def test_a_flag_added_by_hand_is_a_problem() -> None:
    (problem,) = edited("      secure-port: 443\n", "      secure-port: 443\n      event-ttl: 2h\n")

    assert problem.message == "is '2h', but the fields give nothing"


def test_a_flag_removed_by_hand_is_a_problem() -> None:
    (problem,) = edited("      secure-port: 443\n", "")

    assert problem.message == "is nothing, but the fields give 443"


def test_an_entry_of_a_groups_file_edited_by_hand_is_a_problem_of_that_group() -> None:
    (problem,) = edited("        maxPods: 110\n", "        maxPods: 111\n")

    assert problem.path == (
        "instanceGroups.master-us-east-1a.rendered.kubelet.files./etc/kubernetes/config/kubelet.yaml.maxPods"
    )


def test_a_field_changed_beside_its_flag_is_a_problem_and_without_the_flags_it_is_a_change() -> None:
    (problem,) = edited("    securePort: 443\n", "    securePort: 6443\n")
    assert problem.path == "rendered.kubeAPIServer.flags.secure-port"

    text = written(completed()).replace("    securePort: 443\n", "    securePort: 6443\n")
    kept = [part.partition("\nrendered:")[0] for part in text.split("\n---\n")]
    assert read_back("\n---\n".join(kept)).cluster["kubeAPIServer"]["securePort"] == 6443


def test_what_is_wrong_with_a_field_is_told_instead_of_every_flag_that_follows_from_it() -> None:
    (problem,) = edited(
        "  serviceClusterIPRange: 100.64.0.0/13\n  subnets", "  serviceClusterIPRange: 100.64.0.0/11\n  subnets"
    )[:1]

    assert not problem.path.startswith("rendered")


def test_trees_differ_at_their_deepest_paths() -> None:
    old = {"a": {"b": 1, "c": [1]}, "d": 0}
    new = {"a": {"b": 2, "c": [1]}, "d": False, "e": {}}

    assert [path for path, _, _ in differences("x", old, new)] == ["x.a.b", "x.e"]
