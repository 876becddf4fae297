"""Which Events the owners of objects get, and how often."""

from __future__ import annotations

from dataclasses import dataclass, field

from builders.dns_objects import LATER, Document, a_node, a_pod, a_service, an_ingress
from clusters.dns_round import Story, a_record
from protokube.controllers.dns.tell.events import AGAIN, BURST, MANY, event_reporter, warnings
from protokube.controllers.event_correlator import News
from protokube.providers.dns import BadRecord
from protokube.providers.dns.memory import MemoryDns
from protokube.records import Change


@dataclass
class Reported:
    """Records the news that `event_reporter` passes on, and sets its clock."""

    news: list[News] = field(default_factory=list)
    now: float = 0.0

    def __post_init__(self) -> None:
        self.report = event_reporter(self, lambda: self.now)

    def tell(self, news: News) -> None:
        self.news.append(news)

    def words(self) -> list[str]:
        return [f"{each.type} {each.reason} {each.about.kind} {each.about.name}: {each.message}" for each in self.news]


def a_pod_that_asks(number: int, name: str = "") -> Document:
    address = f"10.0.{number // 200}.{number % 200 + 1}"
    return a_pod(f"p{number}", addresses=(address,), internal_names=name or f"p{number}.example.com")


def test_a_name_that_is_set_changed_and_given_up_is_told_each_time() -> None:
    reported, story = Reported(), Story(grace=0.0)
    reported.report(story.round(a_pod(internal_names="web.example.com")))
    reported.report(story.round(a_pod(internal_names="web.example.com", addresses=("10.0.0.2",))))
    reported.report(story.round(a_pod(internal_names="web.example.com", addresses=("10.0.0.2",))))
    reported.report(story.round(a_pod(internal_names="new.example.com", addresses=("10.0.0.2",))))

    assert reported.words() == [
        "Normal DNSNameSet Pod web: web.example.com is A 10.0.0.1 in zone example.com",
        "Normal DNSNameSet Pod web: web.example.com is A 10.0.0.2, no longer A 10.0.0.1, in zone example.com",
        "Normal DNSNameSet Pod web: new.example.com is A 10.0.0.2 in zone example.com",
        "Normal DNSNameRemoved Pod web: web.example.com no longer has A 10.0.0.2 for it in zone example.com",
    ]
    assert {(each.about.uid, each.about.namespace) for each in reported.news} == {("uid-web", "default")}


def test_nobody_is_told_about_an_object_that_is_gone() -> None:
    reported, story = Reported(), Story(grace=0.0)
    story.round(a_pod(internal_names="web.example.com"))
    reported.report(done := story.round())

    assert done.zones[0].applied
    assert reported.news == []


def test_a_zone_that_is_filled_is_no_news_for_each() -> None:
    reported, story = Reported(), Story()
    reported.report(story.round(*map(a_pod_that_asks, range(MANY + 1))))
    few = Story()
    reported.report(few.round(*map(a_pod_that_asks, range(MANY))))

    assert len(reported.news) == MANY


def test_what_is_wrong_is_told_once_and_again_after_a_while_or_when_it_comes_back() -> None:
    reported, story = Reported(), Story()
    wrong = a_service("web", "ClusterIP", external_names="web.example.com")
    for at, documents in ((0.0, [wrong]), (5.0, [wrong]), (AGAIN, [wrong]), (AGAIN + 1, []), (AGAIN + 2, [wrong])):
        reported.now = at
        reported.report(story.round(*documents))

    assert len(reported.news) == 3
    assert set(reported.words()) == {
        "Warning DNSNameNotSet Service web: a service of type 'ClusterIP' cannot be reached from outside; "
        "LoadBalancer or NodePort can"
    }


def test_who_does_not_lead_tells_nothing_and_forgets_nothing() -> None:
    reported, story = Reported(), Story()
    wrong = a_service("web", "ClusterIP", external_names="web.example.com")
    for leads in (False, True, False, True):
        story.leads = leads
        reported.report(story.round(wrong))

    assert len(reported.news) == 1


def test_a_value_that_cannot_stand_there_is_told_to_who_asked_for_it() -> None:
    reported, story = Reported(), Story()
    story.write(a_record("web", "192.0.2.9"))
    reported.report(
        story.round(a_service("lb", "LoadBalancer", {"hostname": "lb.net"}, external_names="web.example.com"))
    )

    assert reported.words() == [
        "Warning DNSNameNotSet Service lb: web.example.com: "
        "CNAME lb.net cannot stand beside A 192.0.2.9, which is there and not ours"
    ]


class Picky(MemoryDns):
    """Rejects changes with a certain address."""

    def apply(self, batch: list[Change]) -> None:  # type: ignore[override]
        if any(change.after and "10.0.0.13" in change.after.values for change in batch):
            raise BadRecord("this address is cursed")
        super().apply(batch)


def test_what_a_provider_turns_away_is_told_to_its_object_alone() -> None:
    reported, story = Reported(), Story(dns=Picky("example.com"))
    reported.report(story.round(*map(a_pod_that_asks, range(11, 14))))

    assert [each for each in reported.words() if each.startswith("Warning")] == [
        "Warning DNSNameNotSet Pod p12: p12.example.com: turned away by zone example.com: this address is cursed"
    ]


def test_a_value_that_stays_because_of_doubt_is_told() -> None:
    reported, story = Reported(), Story(grace=0.0)
    story.round(a_pod(internal_names="web.example.com"))
    reported.report(story.round(a_pod(internal_names="web.example.com", addresses=()), after=1))

    (word,) = reported.words()
    assert word.startswith("Warning DNSNameNotSet Pod web: web.example.com: 10.0.0.1 stays: pod/default/web asks for")


def test_never_more_at_once_than_the_cluster_should_keep_and_the_rest_comes_later() -> None:
    reported, story = Reported(), Story()
    many = [a_service(f"s{number}", "ClusterIP", external_names="web.example.com") for number in range(BURST + 30)]
    reported.report(story.round(*many))
    assert len(reported.news) == BURST
    reported.now = 10.0
    reported.report(story.round(*many))
    assert len(reported.news) == BURST + 10
    reported.now = 1000.0
    reported.report(story.round(*many))

    assert len({each.about.name for each in reported.news}) == len(reported.news) == BURST + 30


def test_every_kind_of_object_is_named_as_the_api_names_it() -> None:
    story = Story()
    done = story.round(
        a_node(external_names="n.example.com"), an_ingress("i", ("x y",), created=LATER), a_pod(host_network=False)
    )
    about = [news.about for news in warnings(done)]

    assert [(each.kind, each.api_version, each.namespace) for each in about] == [
        ("Ingress", "networking.k8s.io/v1", "default"),
        ("Node", "v1", ""),
    ]


def test_an_object_that_is_only_the_second_to_ask_for_a_value_is_no_news() -> None:
    reported, story = Reported(), Story()
    first, second = a_pod("a", internal_names="web.example.com"), a_pod("b", internal_names="web.example.com")
    reported.report(story.round(first, second))
    reported.report(story.round(second))

    assert [each.about.name for each in reported.news] == ["a"]
