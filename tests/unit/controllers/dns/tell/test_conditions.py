"""The DNS condition of pods and services, and when it is written."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from builders.dns_objects import LATER, a_node, a_pod, a_service, an_ingress
from clusters.daemon import until
from clusters.dns_round import Story, a_record
from protokube.controllers.dns.tell.conditions import TYPE, Conditions, DesiredCondition, desired_conditions, patch_of
from protokube.kube.client import APPLY, ApiError

NOW = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)
POD = "/api/v1/namespaces/default/pods/web"


def test_who_has_its_names_says_so() -> None:
    done = Story().round(a_pod(internal_names="web.example.com,also.example.com"))
    assert desired_conditions(done) == {
        "pod/default/web": DesiredCondition("True", "Set", "also.example.com, web.example.com")
    }


def test_who_gets_nothing_says_why() -> None:
    story = Story()
    story.write(a_record("taken", "192.0.2.9"))
    done = story.round(
        a_service("no", "ClusterIP", external_names="no.example.com"),
        a_pod("late", internal_names="late.example.com", addresses=()),
        a_pod("far", internal_names="far.example.org"),
        a_pod("taken", internal_names="taken.example.com"),
    )
    desired = desired_conditions(done)
    assert {key: (each.status, each.reason) for key, each in desired.items()} == {
        "service/default/no": ("False", "NotSet"),
        "pod/default/late": ("False", "Waiting"),
        "pod/default/far": ("False", "NotSet"),
        "pod/default/taken": ("False", "NotSet"),
    }
    assert "LoadBalancer or NodePort" in desired["service/default/no"].message
    assert "no zone we manage holds far.example.org" in desired["pod/default/far"].message
    assert "is there and not ours" in desired["pod/default/taken"].message


def test_who_lost_a_name_to_an_elder_names_it() -> None:
    done = Story().round(
        a_service("old", "LoadBalancer", {"hostname": "a.example.net"}, external_names="web.example.com"),
        a_service(
            "new", "LoadBalancer", {"hostname": "b.example.net"}, external_names="web.example.com", created=LATER
        ),
    )
    desired = desired_conditions(done)
    assert desired["service/default/old"].status == "True"
    assert "service/default/old was there first" in desired["service/default/new"].message


def test_while_a_zone_cannot_be_reached_nobody_knows() -> None:
    story = Story()
    story.dns.unreachable = True
    desired = desired_conditions(story.round(a_pod(internal_names="web.example.com")))
    assert (desired["pod/default/web"].status, desired["pod/default/web"].reason) == ("Unknown", "ZoneTrouble")


def test_nodes_and_ingresses_are_left_as_they_are_and_who_does_not_lead_says_nothing() -> None:
    story = Story()
    node = a_node("n1", internal=["10.0.0.1"], internal_names="n.example.com")
    assert desired_conditions(story.round(node, an_ingress("i", ["i.example.com"], {"ip": "192.0.2.1"}))) == {}
    story.leads = False
    assert desired_conditions(story.round(a_pod(internal_names="web.example.com"))) == {}


def tree(*conditions: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": {"name": "web", "namespace": "default", "uid": "u"}, "status": {"conditions": [*conditions]}}


def test_only_our_own_condition_of_this_very_object_is_written() -> None:
    ready = {"type": "Ready", "status": "True"}
    told = patch_of("Pod", tree(ready), DesiredCondition("True", "Set", "web.example.com"), NOW)
    ours = {
        "type": TYPE, "status": "True", "reason": "Set", "message": "web.example.com",
        "lastTransitionTime": "2030-01-02T03:04:05Z",
    }  # fmt: skip
    assert told == {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "default", "uid": "u"},
        "status": {"conditions": [ours]},
    }  # fmt: skip


def test_what_an_object_says_already_is_not_written_again() -> None:
    desired = DesiredCondition("True", "Set", "web.example.com")
    first = patch_of("Pod", tree(), desired, NOW)
    assert first is not None
    assert patch_of("Pod", tree(*first["status"]["conditions"]), desired, NOW.replace(year=2031)) is None


@dataclass
class Api:
    """The far side: one pod."""

    pod: dict[str, Any] = field(default_factory=tree)
    patches: list[tuple[str, str, Mapping[str, str]]] = field(default_factory=list)
    fault: ApiError | None = None
    asked: list[str] = field(default_factory=list)

    def get(self, path: str) -> bytes:
        self.asked.append(path)
        if self.fault is not None or path != POD:
            raise self.fault or ApiError(404, "NotFound", "gone")
        return json.dumps(self.pod).encode()

    def patch(self, path: str, body: bytes, kind: str, query: Mapping[str, str]) -> bytes:
        self.pod["status"] = json.loads(body)["status"]
        self.patches.append((path, kind, query))
        return body


@contextmanager
def telling(api: Api) -> Iterator[Conditions]:
    conditions, stop = Conditions(api, between=0.0), threading.Event()
    thread = threading.Thread(target=conditions.run, args=(stop,))
    thread.start()
    try:
        yield conditions
    finally:
        stop.set()
        conditions.wake()
        thread.join(10)
        assert not thread.is_alive()


def test_a_round_that_changes_nothing_writes_nothing() -> None:
    api, story = Api(), Story()
    with telling(api) as tell:
        tell(story.round(a_pod(internal_names="web.example.com")))
        until(lambda: len(api.patches) == 1)
        tell(story.round(a_pod(internal_names="web.example.com")))
        tell(story.round(a_pod(internal_names="web.example.com,more.example.com")))
        until(lambda: len(api.patches) == 2)
    assert api.patches[0] == (f"{POD}/status", APPLY, {"fieldManager": "protokube-dns-controller", "force": "true"})
    (ours,) = api.pod["status"]["conditions"]
    assert ours["message"] == "more.example.com, web.example.com"


def test_an_object_that_is_gone_or_may_not_be_written_disturbs_nobody() -> None:
    api, story = Api(fault=ApiError(403, "Forbidden", "you may not")), Story()
    with telling(api) as tell:
        tell(story.round(a_pod(internal_names="web.example.com"), a_pod("gone", internal_names="gone.example.com")))
        until(lambda: len(api.asked) == 2)
        api.fault = None
        tell(story.round(a_pod(internal_names="new.example.com"), a_pod("gone", internal_names="gone.example.com")))
        until(lambda: api.patches)
