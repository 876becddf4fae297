"""`status` says whether hosts reach the outside."""

from __future__ import annotations

from dataclasses import replace

import pytest

from builders.view import a_view
from protokube.cli.render.status import render_changes, render_status
from protokube.cli.render.tree import view_tree
from protokube.view.values import OutsideView

OPEN = OutsideView(reached=True, isolated=False)
CLOSED = OutsideView(reached=False, isolated=False, why="this machine has no /dev/net/tun")


@pytest.mark.parametrize(
    ("outside", "line"),
    [
        (OPEN, "hosts reach the outside"),
        (CLOSED, "hosts do not reach the outside: this machine has no /dev/net/tun"),
    ],
)
def test_it_is_said_below_the_headline(outside: OutsideView, line: str) -> None:
    assert render_status(a_view(outside=outside))[1] == line


def test_a_cloud_that_says_nothing_of_it_is_not_spoken_for() -> None:
    assert not [line for line in render_status(a_view()) if "outside" in line]
    assert view_tree(a_view())["outside"] is None


def test_it_is_told_as_data_and_does_not_make_a_cluster_unready() -> None:
    tree = view_tree(a_view(outside=CLOSED))
    assert tree["outside"] == {"reached": False, "isolated": False, "why": CLOSED.why}
    assert tree["ready"]


def test_a_change_of_it_is_one_line_for_whoever_waits() -> None:
    before, after = a_view(outside=OPEN), a_view(outside=CLOSED)
    assert render_changes(before, after) == [f"hosts do not reach the outside: {CLOSED.why}"]
    assert render_changes(before, replace(before)) == []
