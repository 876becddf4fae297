"""`protokube diff`: what would be different, and why."""

from __future__ import annotations

from pathlib import Path

import pytest

from builders.command import Call
from builders.spec import a_cluster
from protokube.errors import ExitCode


@pytest.fixture
def two(here: Path) -> tuple[str, str]:
    """Two specs of one cluster that differ in how many pods a node takes."""
    (here / "before.yaml").write_text(a_cluster())
    (here / "after.yaml").write_text(a_cluster("kubelet: {maxPods: 60}"))
    return "before.yaml", "after.yaml"


def test_one_side_may_come_from_standard_input(call: Call, two: tuple[str, str]) -> None:
    answer = call("diff", "before.yaml", "-", stdin=Path("after.yaml").read_bytes())

    assert answer.code == ExitCode.DIFFERENT
    assert "you set it at <stdin>:8" in answer.out
