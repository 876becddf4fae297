"""What only Route 53 has: accounts, sets that it chooses from, limits, lost answers, and zones of one name."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace

import pytest

from conformance.store.bad_server import nobody
from fakes.name_servers import ZONE, a_text, an_address, an_alias, change, create, delete
from fakes.route53 import PER_SECOND, Route53Server
from fakes.watch_server import until
from protokube.errors import ProtokubeError, Refused, TryLater
from protokube.providers.dns import BadRecord, NotAllowed, Stale
from protokube.providers.dns.budget import Budget, TokenBucket
from protokube.providers.dns.route53 import CALLS_AT_ONCE, CALLS_PER_SECOND, Route53Dns, Route53Zones
from protokube.records import Record
from protokube.records.zones import Zone

A = an_address("a")
AMAZON = {"HostedZoneId": "Z1", "DNSName": "elb.example.net.", "EvaluateTargetHealth": False}


@pytest.fixture
def hosted(route53: Route53Server) -> Zone:
    return route53.zone(ZONE)


@pytest.fixture
def provider(route53: Route53Server, hosted: Zone) -> Route53Dns:
    return route53.account.open(hosted)


def spent(route53: Route53Server, call: Callable[[], object]) -> dict[str, int]:
    """The requests that a call takes."""
    before = route53.requests.copy()
    call()
    return dict(route53.requests - before)


def test_zones_of_one_name_are_told_apart_page_after_page(route53: Route53Server) -> None:
    made = [route53.zone(f"z{number}.test", private=bool(number % 2)) for number in range(110)]
    made += [route53.zone("z1.test"), route53.zone("z1.test", private=True)]

    listed = route53.account.list_zones()

    assert set(made) <= set(listed)
    assert list(listed) == sorted(listed)
    assert len({zone.id for zone in listed if zone.name == "z1.test"}) == 3


def test_a_zone_of_many_pages_is_listed_whole(route53: Route53Server, provider: Route53Dns) -> None:
    records = [an_address(f"n{number:03}") for number in range(310)]
    for batch in provider.split([create(record) for record in records]):
        provider.apply(batch)

    assert list(provider.list_records()) == records
    assert spent(route53, provider.list_records) == {"rrset": 2}
    assert spent(route53, lambda: provider.read([record.name for record in records[:50]])) == {"rrset": 2}


def test_a_name_and_its_marks_are_read_by_one_request(route53: Route53Server, provider: Route53Dns) -> None:
    mark = a_text("_protokube.a")
    provider.apply(create(A, mark, an_address("b"), an_address("x.a")))

    assert spent(route53, lambda: provider.read([A.name, mark.name])) == {"rrset": 1}
    assert provider.read([A.name, mark.name]) == (mark, A)


def test_a_name_of_more_sets_than_a_page_is_read_whole(
    route53: Route53Server, hosted: Zone, provider: Route53Dns
) -> None:
    for number in range(30):
        kind, value = ("AAAA", "2001:db8::1") if number > 14 else ("A", "10.0.0.1")
        told = {"SetIdentifier": f"s{number}", "Weight": 1, "TTL": 5, "ResourceRecords": [{"Value": value}]}
        route53.write(hosted, "CREATE", Name=f"a.{ZONE}.", Type=kind, **told)
    provider.apply(create(a_text("a"), an_address("b")))

    assert provider.read([f"a.{ZONE}", f"b.{ZONE}"]) == (a_text("a"), an_address("b"))


def test_a_name_that_is_cut_by_the_end_of_a_page_is_read_whole(route53: Route53Server, provider: Route53Dns) -> None:
    between = [an_address(f"ab{number:02}") for number in range(18)]
    provider.apply(create(A, *between, an_address("b"), a_text("b")))

    assert provider.read([A.name, f"b.{ZONE}"]) == (A, an_address("b"), a_text("b"))
    assert spent(route53, lambda: provider.read([A.name, f"b.{ZONE}"])) == {"rrset": 2}


def test_one_change_is_one_request(route53: Route53Server, provider: Route53Dns) -> None:
    assert spent(route53, lambda: provider.apply(create(A))) == {"change": 1}
    assert spent(route53, lambda: provider.apply([change(A, an_address("a", "10.0.0.2"))])) == {"change": 1}
    assert spent(route53, lambda: provider.apply(delete(an_address("a", "10.0.0.2")))) == {"change": 1}


@pytest.mark.parametrize(
    ("kind", "values", "seen"),
    [
        ("A", ["10.0.0.1"], A),
        ("AAAA", ["2001:0DB8:0::1"], an_address("a", "2001:db8::1")),
        ("TXT", ['"he" "llo"', '"\\163econd"'], a_text("a", "hello", "second")),
        ("CNAME", [f"Target.{ZONE}"], an_alias("a")),
    ],
)
def test_what_others_wrote_in_their_own_form_can_be_changed(
    route53: Route53Server, hosted: Zone, provider: Route53Dns, kind: str, values: list[str], seen: Record
) -> None:
    told = {"TTL": 77, "ResourceRecords": [{"Value": value} for value in values]}
    route53.write(hosted, "CREATE", Name=f"A.{ZONE}", Type=kind, **told)
    assert provider.read([f"a.{ZONE}"]) == (replace(seen, ttl=77),)

    provider.apply([*delete(seen), *create(an_address("b"))])

    assert provider.list_records() == (an_address("b"),)


def test_a_ttl_that_somebody_changed_does_not_matter(
    route53: Route53Server, hosted: Zone, provider: Route53Dns
) -> None:
    provider.apply(create(A))
    told = {"TTL": 300, "ResourceRecords": [{"Value": "10.0.0.1"}]}
    route53.write(hosted, "UPSERT", Name=f"a.{ZONE}", Type="A", **told)

    provider.apply([change(A, an_address("a", "10.0.0.2"))])

    assert provider.list_records() == (an_address("a", "10.0.0.2"),)


@pytest.mark.parametrize(
    "told",
    [
        {"Type": "A", "AliasTarget": AMAZON},
        {"Type": "A", "SetIdentifier": "one", "Weight": 1, "TTL": 5, "ResourceRecords": [{"Value": "10.0.0.9"}]},
        {"Type": "CNAME", "SetIdentifier": "one", "Weight": 1, "TTL": 5, "ResourceRecords": [{"Value": "x.test."}]},
    ],
    ids=["alias of Amazon's", "weighted", "weighted CNAME"],
)
@pytest.mark.parametrize("listed", [False, True], ids=["not seen", "seen"])
def test_what_route_53_chooses_from_is_never_written(
    route53: Route53Server, hosted: Zone, provider: Route53Dns, told: dict[str, object], listed: bool
) -> None:
    route53.write(hosted, "CREATE", Name=f"a.{ZONE}.", **told)
    before = route53.sets(hosted)
    if listed:
        assert provider.list_records() == ()

    def attempt() -> None:
        with pytest.raises(BadRecord) as caught:
            provider.apply(create(an_address("b"), A))
        assert f"a.{ZONE}" in str(caught.value)

    assert spent(route53, attempt).get("change", 0) == (0 if listed else 1)
    assert route53.sets(hosted) == before
    assert provider.read([f"a.{ZONE}"]) == ()


def test_a_name_that_is_free_again_can_be_written(route53: Route53Server, hosted: Zone, provider: Route53Dns) -> None:
    told = {"Name": f"a.{ZONE}.", "Type": "A", "AliasTarget": AMAZON}
    route53.write(hosted, "CREATE", **told)
    with pytest.raises(BadRecord):
        provider.apply(create(A))
    route53.write(hosted, "DELETE", **told)

    provider.read([A.name])
    provider.apply(create(A))

    assert provider.list_records() == (A,)


def test_what_other_types_hold_stays(route53: Route53Server, hosted: Zone, provider: Route53Dns) -> None:
    told = {"TTL": 5, "ResourceRecords": [{"Value": f"10 mail.{ZONE}."}]}
    route53.write(hosted, "CREATE", Name=f"a.{ZONE}.", Type="MX", **told)
    provider.apply(create(A))
    provider.apply(delete(A))

    with pytest.raises(BadRecord) as caught:
        provider.apply(create(an_alias("a")))

    assert "InvalidChangeBatch" in str(caught.value)
    assert [each.type for each in route53.sets(hosted)] == ["NS", "SOA", "MX"]


def test_batches_stay_within_what_route_53_takes(route53: Route53Server, provider: Route53Dns) -> None:
    """A hundred records of ten values, changed: two thousand elements, before and after."""
    before = [an_address(f"n{name:03}", *(f"10.0.{name}.{value + 1}" for value in range(10))) for name in range(100)]
    after = [replace(record, values=tuple(sorted(f"10.9{value[4:]}" for value in record.values))) for record in before]
    for batch in provider.split([create(record) for record in before]):
        provider.apply(batch)

    units = [[change(*pair)] for pair in zip(before, after, strict=True)]
    batches = provider.split(units)
    for batch in batches:
        provider.apply(batch)

    assert [len(batch) for batch in batches] == [50, 50]
    assert list(provider.list_records()) == after


def test_long_texts_count_as_they_are_written(provider: Route53Dns) -> None:
    batches = provider.split([create(a_text(f"n{number}", "ü" * 450)) for number in range(20)])
    for batch in batches:
        provider.apply(batch)

    assert len(batches) == 3
    assert len(provider.list_records()) == 20


@pytest.mark.parametrize(
    "records",
    [
        [an_address("a", *(f"10.0.{number // 250}.{number % 250 + 1}" for number in range(401)))],
        [a_text("a", "ü" * 1000)],
        [an_address(f"n{number}") for number in range(1001)],
    ],
    ids=["values of one record", "characters of one value", "values of a batch"],
)
def test_what_is_too_much_is_turned_away_without_a_request(
    route53: Route53Server, provider: Route53Dns, records: list[Record]
) -> None:
    def attempt() -> None:
        with pytest.raises(BadRecord) as caught:
            provider.apply(create(*records))
        assert "at most" in caught.value.want

    assert spent(route53, attempt) == {}


def test_a_change_whose_answer_was_lost_may_have_been_carried_out(route53: Route53Server, hosted: Zone) -> None:
    provider, hasty = route53.zones().open(hosted), route53.zones(read_seconds=2).open(hosted)

    with route53.losing_answers(), pytest.raises(TryLater) as caught:
        hasty.apply(create(A))

    assert "may have been carried out" in caught.value.hint
    assert type(caught.value) is TryLater
    until(lambda: len(route53.sets(hosted)) == 3, "it is carried out, beside NS and SOA")
    assert provider.list_records() == (A,)
    with pytest.raises(Stale):
        provider.apply(create(A))


@pytest.mark.parametrize(
    ("status", "code", "kind", "said"),
    [
        (400, "PriorRequestNotComplete", TryLater, "later each time"),
        (400, "Throttling", TryLater, "five a second"),
        (403, "AccessDenied", NotAllowed, "ChangeResourceRecordSets"),
        (403, "SignatureDoesNotMatch", Refused, "our account needs"),
        (403, "ExpiredToken", TryLater, "clock"),
        (404, "NoSuchHostedZone", Refused, "deleted"),
        (500, "InternalFailure", TryLater, "could not change"),
        (503, "ServiceUnavailable", TryLater, "could not change"),
    ],
)
def test_what_each_refusal_of_a_change_means(
    route53: Route53Server, provider: Route53Dns, status: int, code: str, kind: type[ProtokubeError], said: str
) -> None:
    def attempt() -> None:
        route53.refusals.append((status, code))
        with pytest.raises(kind) as caught:
            provider.apply(create(A))
        assert type(caught.value) is kind
        assert said in str(caught.value)
        assert code in str(caught.value)

    assert spent(route53, attempt) == {"change": 1}
    assert provider.list_records() == ()


def test_a_read_is_repeated_where_a_change_is_not(route53: Route53Server, provider: Route53Dns) -> None:
    provider.apply(create(A))
    route53.refusals.append((503, "ServiceUnavailable"))

    assert provider.list_records() == (A,)


def test_where_nobody_listens_it_is_tried_later(route53: Route53Server, hosted: Zone) -> None:
    with nobody() as url, pytest.raises(TryLater) as caught:
        Route53Zones(endpoint=url, budget=Budget()).open(hosted).apply(create(A))

    assert "cannot be reached" in str(caught.value)


def test_a_zone_that_is_gone_is_refused(route53: Route53Server) -> None:
    provider = route53.account.open(Zone(name=ZONE, id="ZGONE"))

    with pytest.raises(Refused) as caught:
        provider.list_records()

    assert "deleted" in caught.value.hint


class Clock:
    """A time in which only sleeping takes time."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def test_the_budget_keeps_within_what_the_account_has(route53: Route53Server, hosted: Zone) -> None:
    """The far side turns away the sixth request of any second; two zones together never make one."""
    clock, other = Clock(), route53.zone("other.test")
    budget = Budget(TokenBucket(CALLS_PER_SECOND, CALLS_AT_ONCE), clock=clock, sleep=clock.sleep)
    zones = route53.zones(budget=budget)

    with route53.throttling(clock):
        for number in range(10):
            zones.open(hosted).apply(create(an_address(f"n{number}")))
            zones.open(other).apply(create(replace(A, name=f"n{number}.other.test")))

    assert budget.calls == {"apply": 20}
    assert clock.now - 1000 < 20 / CALLS_PER_SECOND


def test_without_a_budget_the_far_side_does_turn_requests_away(route53: Route53Server, provider: Route53Dns) -> None:
    with route53.throttling(Clock()):
        for number in range(PER_SECOND):
            provider.apply(create(an_address(f"n{number}")))
        with pytest.raises(TryLater) as caught:
            provider.apply(create(A))

    assert "Throttling" in str(caught.value)


def test_botocore_is_not_loaded_before_it_is_needed() -> None:
    code = (
        "import sys; from protokube.providers.dns.route53 import Route53Zones; Route53Zones(); "
        "sys.exit(any(name.startswith(('boto', 'dns.')) for name in sys.modules))"
    )

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
