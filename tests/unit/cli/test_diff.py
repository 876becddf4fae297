"""`protokube diff`: what would be different, and why."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from builders.command import EXAMPLES, MINIMAL, Call
from builders.spec import a_cluster
from protokube.errors import ExitCode


@pytest.fixture
def two(here: Path) -> tuple[str, str]:
    """Two specs of one cluster that differ in how many pods a node takes."""
    (here / "before.yaml").write_text(a_cluster())
    (here / "after.yaml").write_text(a_cluster("kubelet: {maxPods: 60}"))
    return "before.yaml", "after.yaml"


def test_equal_specs_give_the_same_configuration(call: Call) -> None:
    answer = call("diff", MINIMAL, MINIMAL)

    assert (answer.code, answer.out, answer.err) == (ExitCode.OK, "the same configuration\n", "")


def test_what_is_said_and_what_is_default_anyway_is_no_difference(call: Call, here: Path) -> None:
    (here / "said.yaml").write_text(a_cluster("kubelet: {maxPods: 110}"))
    (here / "unsaid.yaml").write_text(a_cluster())

    assert call("diff", "said.yaml", "unsaid.yaml").code == ExitCode.OK


def test_a_spec_and_its_complete_configuration_are_the_same(call: Call, here: Path) -> None:
    (here / "whole.yaml").write_text(call("complete", MINIMAL).out)

    assert call("diff", MINIMAL, "whole.yaml").code == ExitCode.OK


def test_a_difference_is_shown_side_by_side_with_both_reasons(call: Call, two: tuple[str, str]) -> None:
    answer = call("diff", *two, "--width", "120")

    assert (answer.code, answer.err) == (ExitCode.DIFFERENT, "")
    lines = answer.out.splitlines()
    assert [part.strip() for part in lines[0].split("|")] == list(two)
    index = lines.index("kubelet.maxPods")
    assert [part.strip() for part in lines[index + 1].split("|")] == ["110", "60"]
    assert [part.strip() for part in lines[index + 2].split("|")] == [
        "(default, what Kubernetes is tested with)",
        "(you set it at after.yaml:8)",
    ]


def test_what_one_side_does_not_have_is_a_dash(call: Call, here: Path) -> None:
    (here / "with.yaml").write_text(a_cluster("egressProxy: {excludes: example.org}"))
    (here / "without.yaml").write_text(a_cluster())
    lines = call("diff", "with.yaml", "without.yaml", "--width", "100").out.splitlines()

    index = lines.index("egressProxy.excludes")
    assert [part.strip() for part in lines[index + 1].split("|")] == ["example.org", "-"]


@pytest.mark.parametrize("width", [70, 100, 160])
def test_the_table_is_no_wider_than_asked_for(call: Call, two: tuple[str, str], width: int) -> None:
    lines = call("diff", *two, "--width", str(width)).out.splitlines()

    assert max(len(line) for line in lines if "|" in line) <= width
    assert {line.index("|") for line in lines if "|" in line} == {3 + (width - 5) // 2}


def test_the_width_of_the_terminal_is_taken_where_none_is_said(
    call: Call, two: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "90")

    assert call("diff", *two).out == call("diff", *two, "--width", "90").out


def test_as_data_each_difference_has_both_values_and_reasons(call: Call, two: tuple[str, str]) -> None:
    answer = call("diff", *two, "-o", "json")

    rows = {row["path"]: row for row in json.loads(answer.out)}
    assert answer.code == ExitCode.DIFFERENT
    assert rows["kubelet.maxPods"] == {
        "path": "kubelet.maxPods",
        "left": {"value": 110, "why": "default, what Kubernetes is tested with"},
        "right": {"value": 60, "why": "you set it at after.yaml:8"},
    }
    assert all(path.endswith(".maxPods") for path in rows)


def test_as_data_nothing_different_is_an_empty_list(call: Call) -> None:
    answer = call("diff", MINIMAL, MINIMAL, "-o", "json")

    assert (answer.code, json.loads(answer.out)) == (ExitCode.OK, [])


def test_as_data_what_one_side_does_not_have_is_null(call: Call) -> None:
    rows = json.loads(call("diff", MINIMAL, str(EXAMPLES / "overrides.yaml"), "-o", "json").out)

    (row,) = [each for each in rows if each["path"] == "kubeAPIServer.oidcClientID"]
    assert row["left"] is None
    assert row["right"]["value"] == "kubernetes"


def test_a_side_that_is_invalid_is_told_and_nothing_is_compared(call: Call, here: Path) -> None:
    (here / "bad.yaml").write_text(a_cluster("colour: blue"))
    answer = call("diff", MINIMAL, "bad.yaml")

    assert (answer.code, answer.out) == (ExitCode.INVALID, "")
    assert "bad.yaml:8 colour: unknown field" in answer.err
