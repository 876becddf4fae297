"""A rollout and the list of revisions, for a person and as data."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from builders.revisions import a_revision
from builders.view import NOW
from protokube.cli.render.rollout import event_line, render_history, render_rollout, revision_tree
from protokube.cli.render.tree import rollout_tree
from protokube.launch.rollout import Event, Failure, Rollout, State, Turn, decode, encode

TURN = Turn(machine="i-1", name="master-1", at=NOW - 42)
FAILURE = Failure(machine="i-1", name="master-1", revision=3, text="main/b: it does not run after 60 s")


@pytest.fixture(autouse=True)
def _utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def a_record(**fields: Any) -> Rollout:
    return Rollout(**{"wanted": 3, "before": 2, "state": State.ROLLING, **fields})


def test_a_rollout_under_way_says_who_restarts_and_what_each_host_runs() -> None:
    record = a_record(turn=TURN).noted(NOW - 60, "", "revision 3 put in force by anna@laptop")
    record = record.noted(NOW - 42, "master-1", "takes revision 3: restarts etcd main")

    assert render_rollout("dev.local", record, {"master-1": 2, "master-0": 3, "master-2": 0}, NOW) == [
        "dev.local: revision 3, rolling",
        "master-1 restarts, for 42 s",
        "",
        "HOST      REVISION",
        "master-0  3",
        "master-1  2",
        "master-2  -",
        "",
        "07:59:00  revision 3 put in force by anna@laptop",
        "07:59:18  master-1: takes revision 3: restarts etcd main",
    ]


def test_a_rollout_that_stopped_says_where_and_why() -> None:
    lines = render_rollout("dev.local", a_record(state=State.STOPPED, failure=FAILURE), {}, NOW)

    assert lines == [
        "dev.local: revision 3, stopped",
        "stopped at master-1: main/b: it does not run after 60 s",
    ]


def test_a_rollout_that_is_done_is_one_line_without_hosts_and_events() -> None:
    assert render_rollout("dev.local", a_record(state=State.DONE), {}, NOW) == ["dev.local: revision 3, done"]


def test_a_failure_of_before_is_not_shown_while_it_is_tried_again() -> None:
    assert render_rollout("dev.local", a_record(failure=FAILURE), {}, NOW) == ["dev.local: revision 3, rolling"]


def test_a_turn_by_a_clock_that_is_ahead_has_just_begun() -> None:
    turn = Turn(machine="i-1", name="master-1", at=NOW + 3600)

    assert render_rollout("dev.local", a_record(turn=turn), {}, NOW)[1] == "master-1 restarts, for 0.0 s"


def test_an_event_of_an_operator_has_no_host() -> None:
    assert event_line(Event(at=NOW, machine="", text="x")) == "08:00:00  x"
    assert event_line(Event(at=NOW, machine="master-1", text="x")) == "08:00:00  master-1: x"


def test_the_history_marks_what_is_in_force() -> None:
    found = {
        10: a_revision(10, at=NOW - 30, note="as revision 9", kubernetes="1.34.1", etcd="3.6.1", source="dev.yaml"),
        9: a_revision(9, at=NOW - 7200, source="dev.yaml", etcd="3.5.21"),
    }

    assert render_history(Rollout(wanted=10), found, NOW) == [
        "REVISION  WHEN      BY           KUBERNETES  ETCD    FROM",
        "9         2 h ago   anna@laptop  none        3.5.21  dev.yaml",
        "10 *      30 s ago  anna@laptop  1.34.1      3.6.1   as revision 9",
    ]
    assert render_history(Rollout(wanted=9), {}, NOW) == []
    assert "*" not in "".join(render_history(None, found, NOW))


def test_a_revision_as_data_has_everything_but_its_configuration() -> None:
    assert revision_tree(a_revision(2, etcd="3.6.1"), wanted=True) == {
        "number": 2,
        "digest": a_revision(2).digest,
        "author": "anna@laptop",
        "at": 200.0,
        "source": "",
        "kubernetes": "",
        "etcd": "3.6.1",
        "note": "",
        "snapshots": {},
        "inForce": True,
    }


def test_a_record_as_data_is_as_it_is_in_the_store() -> None:
    record = a_record(turn=TURN, failure=FAILURE).noted(NOW, "master-1", "x")
    tree = json.loads(json.dumps(rollout_tree(record)))

    assert tree == json.loads(encode(record))
    assert decode(json.dumps(tree).encode()) == record
