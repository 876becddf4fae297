"""What commands read: files, directories, standard input; and what they say when they cannot."""

from __future__ import annotations

from pathlib import Path

from builders.command import MINIMAL, Call
from builders.spec import a_cluster, a_group
from protokube.errors import ExitCode


def test_a_dash_is_standard_input(call: Call) -> None:
    text = Path(MINIMAL).read_bytes()

    assert call("complete", "-", stdin=text) == call("complete", MINIMAL)


def test_problems_in_standard_input_name_it(call: Call) -> None:
    assert "  <stdin>:8 colour: unknown field" in call("complete", "-", stdin=a_cluster("colour: blue").encode()).err


def test_a_file_and_standard_input_go_together(call: Call, here: Path) -> None:
    (here / "cluster.yaml").write_text(a_cluster())
    nodes = a_group("role: Node\nminSize: 7").encode()

    answer = call("complete", "cluster.yaml", "-", "--why", "instanceGroups.nodes.minSize", stdin=nodes)

    assert answer.out == "instanceGroups.nodes.minSize is 7: you set it at <stdin>:7.\n"


def test_standard_input_that_is_not_utf_8_is_told_likewise(call: Call) -> None:
    answer = call("complete", "-", stdin=b"\xff\xfea\x00:\x00")

    assert answer.code == ExitCode.INVALID
    assert "  <stdin>:1: not UTF-8 text: " in answer.err
