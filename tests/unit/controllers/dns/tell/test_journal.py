"""The log of the dns-controller: each problem once, in a sentence that stays the same while it lasts."""

from __future__ import annotations

import logging

import pytest

from builders.dns_objects import a_pod, a_service
from clusters.dns_round import Story, a_record
from protokube.controllers.dns.tell.journal import SHOWN, changes, journal, sentences

WRONG = a_service("web", "ClusterIP", external_names="web.example.com")


def test_a_round_is_told_by_what_it_changed_and_not_by_marks(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "protokube.dns")
    story, tell = Story(), journal()
    for _ in range(2):
        tell(story.round(a_pod(internal_names="web.example.com")))

    assert caplog.messages == [
        "example.com: web.example.com A: nothing -> 10.0.0.1 (10.0.0.1 for pod/default/web)"
    ]  # fmt: skip


def test_what_is_wrong_is_told_once_and_again_only_when_it_comes_back(caplog: pytest.LogCaptureFixture) -> None:
    story, tell = Story(), journal()
    for documents in ([WRONG], [WRONG], [], [WRONG]):
        tell(story.round(*documents))

    assert len(caplog.messages) == 2
    assert caplog.messages[0].startswith("service/default/web: a service of type 'ClusterIP'")


def test_a_zone_that_is_filled_is_told_in_few_lines() -> None:
    pods = [a_pod(f"p{number}", internal_names=f"p{number}.example.com") for number in range(SHOWN + 5)]
    lines = list(changes(Story().round(*pods).zones[0].applied))

    assert (len(lines), lines[-1]) == (SHOWN + 1, "and 5 more names")


def test_every_reason_for_which_something_is_not_as_asked_for_is_a_sentence() -> None:
    story = Story()
    story.write(a_record("web", "192.0.2.9"))
    clash = a_service("lb", "LoadBalancer", {"hostname": "lb.net"}, external_names="web.example.com")
    pod = a_pod(internal_names="pod.example.com")
    story.round(clash, pod)
    story.whole = False
    refused = sorted(sentences(story.round(clash)))
    story.dns.unreachable, story.whole = True, True
    trouble = sorted(sentences(story.round(clash, after=1000)))
    story.leads = False
    waits = sorted(sentences(story.round(clash)))

    assert refused == [
        "nothing is removed: the watch is silent",
        "zone example.com: pod.example.com: A 10.0.0.1 stays: the watch is silent",
        "zone example.com: web.example.com: CNAME lb.net cannot stand beside A 192.0.2.9, which is there and not ours",
    ]
    assert trouble == ["zone example.com: the DNS server of example.com does not answer"]
    assert waits == ["waiting: another leads"]


def test_a_value_that_stays_because_its_object_may_come_back_is_told_with_the_reason() -> None:
    story = Story(grace=0.0)
    story.round(a_pod(internal_names="web.example.com"))
    lines = list(sentences(story.round(a_pod(internal_names="web.example.com", addresses=()), after=1)))

    assert "web.example.com keeps 10.0.0.1: pod/default/web asks for the name and has no address now: " in lines[-1]
