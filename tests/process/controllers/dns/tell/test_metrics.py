"""Metrics, as Prometheus would read them."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator

import pytest

from builders.dns_objects import Document, a_pod, a_service
from clusters.dns_round import Story, a_record
from fakes.name_servers import free_port
from protokube.controllers.dns.controller import Round
from protokube.controllers.dns.tell.metrics import Metrics
from protokube.errors import InvalidRequest, Refused

PODS = [a_pod(f"p{number}", internal_names=f"p{number}.example.com") for number in range(3)]
WRONG = a_service("web", "ClusterIP", external_names="web.example.com")
CLASH = a_service("lb", "LoadBalancer", {"hostname": "lb.net"}, external_names="taken.example.com")
ZONE = '{zone="example.com (example.com)"}'


class Served:
    def __init__(self) -> None:
        self.calls = {"list": 1}
        self.seconds: float | None = None
        self.leads = True
        self.metrics = Metrics(lambda: self.calls, lambda: self.seconds, lambda: self.leads)
        for _ in range(3):  # another process may have taken the free port meanwhile
            self.address = f"127.0.0.1:{free_port()}"
            try:
                self.metrics.serve(self.address)
            except Refused:
                continue
            return

    def scrape(self) -> dict[str, float]:
        with urllib.request.urlopen(f"http://{self.address}/metrics", timeout=10) as answer:
            lines = [line for line in answer.read().decode().splitlines() if not line.startswith("#")]
        return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


@pytest.fixture
def served() -> Iterator[Served]:
    found = Served()
    yield found
    found.metrics.close()


def test_a_round_can_be_read_from_the_metrics(served: Served) -> None:
    story = Story()
    story.write(a_record("taken", "192.0.2.9"))
    documents: list[Document] = [*PODS, WRONG, CLASH]
    for _ in range(2):
        served.metrics(story.round(*documents))
    metrics = served.scrape()

    assert metrics["protokube_dns_rounds_total"] == 2
    assert metrics[f"protokube_dns_names_written_total{ZONE}"] == 3
    assert metrics[f"protokube_dns_values{ZONE}"] == 3
    assert metrics['protokube_dns_left{kind="refused",zone="example.com (example.com)"}'] == 1
    assert metrics["protokube_dns_problems"] == 1
    assert (metrics["protokube_dns_leading"], metrics["protokube_dns_in_touch"]) == (1, 1)
    assert metrics[f"protokube_dns_trouble{ZONE}"] == 0
    assert metrics["protokube_dns_last_success_seconds"] > 1e9


def test_trouble_and_the_loss_of_the_lead_are_seen_and_no_success_is_claimed(served: Served) -> None:
    story = Story()
    story.dns.unreachable, story.whole = True, False
    served.metrics(story.round(*PODS))
    metrics = served.scrape()
    assert metrics[f"protokube_dns_trouble{ZONE}"] == 1
    assert metrics["protokube_dns_in_touch"] == 0
    assert metrics["protokube_dns_last_success_seconds"] == 0
    served.leads = story.leads = False
    served.metrics(story.round(*PODS))
    metrics = served.scrape()

    assert metrics["protokube_dns_leading"] == 0
    assert f"protokube_dns_trouble{ZONE}" not in metrics, "who does not write says nothing about zones"


def test_who_leads_and_cannot_list_its_zones_is_told_as_leading(served: Served) -> None:
    served.metrics(Round(waits="the zones cannot be listed: nobody answers"))

    assert served.scrape()["protokube_dns_leading"] == 1


def test_who_lost_the_lead_is_told_as_such_before_its_next_round(served: Served) -> None:
    served.metrics(Story().round(*PODS))
    served.leads = False

    assert served.scrape()["protokube_dns_leading"] == 0


def test_a_value_that_is_kept_because_of_doubt_is_counted(served: Served) -> None:
    story = Story(grace=0.0)
    served.metrics(story.round(a_pod(internal_names="web.example.com")))
    served.metrics(story.round(a_pod(internal_names="web.example.com", addresses=()), after=1))

    assert served.scrape()[f"protokube_dns_kept{ZONE}"] == 1


def test_calls_of_the_provider_are_counted_when_somebody_looks(served: Served) -> None:
    served.calls = {"apply": 7, "list": 2}
    metrics = served.scrape()

    assert metrics['protokube_dns_provider_calls_total{kind="apply"}'] == 7
    assert metrics['protokube_dns_provider_calls_total{kind="list"}'] == 2


def test_the_time_from_change_to_record_is_counted_for_rounds_that_wrote(served: Served) -> None:
    story = Story()
    for seconds in (None, 0.3, 0.2):  # no change triggered the first round; the last one writes nothing
        served.seconds = seconds
        served.metrics(story.round(*PODS[: 1 if seconds is None else 2]))
    metrics = served.scrape()

    assert (metrics["protokube_dns_lag_seconds_count"], metrics["protokube_dns_lag_seconds_sum"]) == (1, 0.3)


@pytest.mark.parametrize("address", ["here", "127.0.0.1", "127.0.0.1:http", "127.0.0.1:0", "127.0.0.1:70000"])
def test_what_is_no_address_is_told_as_such(address: str) -> None:
    with pytest.raises(InvalidRequest, match="is no address for metrics"):
        Metrics().serve(address)


def test_an_address_that_is_taken_is_for_a_person_to_change(served: Served) -> None:
    with pytest.raises(Refused, match="cannot serve metrics") as caught:
        Metrics().serve(served.address)

    assert "--metrics" in caught.value.hint
