"""A round in one sentence, and as data."""

from __future__ import annotations

from protokube.agent.report import Report
from protokube.errors import Refused, TryLater


def a_report() -> Report:
    report = Report()
    report.done("volumes", "attached vol-1", "main/a")
    report.done("kubelet", "started")
    report.waiting("names", TryLater("no answer", saw="a timeout"), "etcd-a.internal.dev")
    report.needs_a_person("volumes", Refused("two volumes", hint="untag one"), "main/b")
    report.broken("api", "ValueError: x")
    report.warn("keys", "ends in 90 days", hint="make another")
    return report


def test_a_round_reads_as_one_sentence() -> None:
    assert a_report().sentence() == (
        "volumes main/a: attached vol-1; kubelet started; names etcd-a.internal.dev: waits: no answer; "
        "volumes main/b: NEEDS A PERSON: two volumes; api BROKEN: ValueError: x; keys WARNING: ends in 90 days"
    )


def test_a_round_without_news_says_nothing() -> None:
    report = Report()
    report.done("volumes", "")
    assert report.sentence() == ""
    assert report.settled


def test_a_round_that_only_did_something_is_settled() -> None:
    report = Report()
    report.done("volumes", "attached vol-1")
    assert report.settled
    assert not a_report().settled


def test_as_data_what_is_not_known_is_left_out() -> None:
    assert a_report().to_tree() == {
        "did": [
            {"step": "volumes", "about": "main/a", "text": "attached vol-1"},
            {"step": "kubelet", "text": "started"},
        ],
        "waiting": [{"step": "names", "about": "etcd-a.internal.dev", "text": "no answer", "saw": "a timeout"}],
        "needsAPerson": [{"step": "volumes", "about": "main/b", "text": "two volumes", "hint": "untag one"}],
        "broken": [{"step": "api", "text": "ValueError: x"}],
        "warnings": [{"step": "keys", "text": "ends in 90 days", "hint": "make another"}],
    }


def test_a_warning_alone_leaves_a_round_settled() -> None:
    report = Report()
    report.warn("keys", "ends in 90 days")
    assert report.settled
    assert report.sentence() == "keys WARNING: ends in 90 days"


def test_a_hint_given_beside_a_text_is_kept() -> None:
    report = Report()
    report.needs_a_person("volumes", "blank", "main/a", "look for a copy")
    assert report.person[0].hint == "look for a copy"
