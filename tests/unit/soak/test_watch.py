"""What a watcher reads out of one look at a cluster."""

from __future__ import annotations

import pytest

from protokube.notes import Note
from protokube.view.cluster import ClusterView
from protokube.view.values import AgentView, DaemonView, DiskView, HostView
from soak.chaos.watch import last_line_of_traceback, unexplained


def a_view(phase: str, *notes: Note, alive: bool = True) -> ClusterView:
    disk = DiskView(
        id="vol-1", member="main/a", size=1, attached_to="m", mark="formed", epoch=1, last_holder="m", phase=phase
    )
    return ClusterView(
        cluster="t",
        at=0.0,
        daemon=DaemonView(alive=True),
        hosts=(HostView(id="m", name="m", group="master-a", address="10.77.0.11", alive=alive),),
        disks=(disk,),
        agents=(AgentView(host="m", at=0.0, round=1, elected=False, waits=notes),),
    )


def test_a_member_that_is_served_needs_no_reason() -> None:
    assert list(unexplained(a_view("serving"))) == []


def test_a_member_that_is_held_and_not_served_needs_one() -> None:
    assert list(unexplained(a_view("mounted"))) == ["main/a on m"]


@pytest.mark.parametrize("about", ["main/a", "vol-1", "etcd-a.internal.t"])
def test_a_note_about_the_member_its_volume_or_its_name_is_one(about: str) -> None:
    assert list(unexplained(a_view("mounted", Note(step="etcd", about=about, text="its peers do not answer")))) == []


def test_a_note_about_another_member_is_none() -> None:
    note = Note(step="lost", about="main/b", text="its volume is gone")

    assert list(unexplained(a_view("mounted", note))) == ["main/a on m"]


def test_nobody_asks_a_host_that_is_gone() -> None:
    assert list(unexplained(a_view("mounted", alive=False))) == []


def test_the_error_of_a_traceback_is_found_among_other_lines() -> None:
    log = (
        "2026-01-01 round 3\nException in thread lease:\nTraceback (most recent call last):\n"
        '  File "x.py", line 1, in f\n    raise KeyError(1)\nKeyError: 1\n2026-01-01 round 4\n'
    )

    assert last_line_of_traceback(log) == "KeyError: 1"
