"""A name of four hundred nodes, with marks for each: it is made, one goes and one comes, each in one request."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from uuid import UUID

import pytest

from conformance.dns.conftest import Zone, make_zone
from fakes.name_servers import ZONE
from protokube.providers.dns import BadRecord
from protokube.records.guard import Removal
from protokube.records.marklines import marks_in
from protokube.records.owners import Mark, Want, mark_name
from protokube.records.shared import SharedPlan, plan_shared

MOST = 400
"""As many values as Route 53 takes in one record; BIND takes a hundred unless it is told otherwise."""
OWNER, NAME = str(UUID(int=7)), f"web.{ZONE}"
AWS = "ip-10-0-{0}-{1}.eu-west-1.compute.internal"
Named = Callable[[int], tuple[str, str]]


def by_address(number: int) -> tuple[str, str]:
    high, low = divmod(number, 250)
    return f"10.0.{high + 200}.{low}", AWS.format(high + 200, low)


def by_instance(number: int) -> tuple[str, str]:
    return by_address(number)[0], f"i-0{hashlib.sha256(str(number).encode()).hexdigest()[:16]}"


def by_outer_address(number: int) -> tuple[str, str]:
    digest = hashlib.sha256(str(number).encode()).digest()
    return ".".join(str(1 + byte % 223) for byte in digest[:4]), by_address(number)[1]


def wants(numbers: range, named: Named) -> list[Want]:
    nodes = map(named, numbers)
    return [
        Want(name=NAME, type="A", value=value, by=f"service/default/web>node/{node}") for value, node in nodes
    ]  # fmt: skip


def planned(zone: Zone, asked: list[Want]) -> SharedPlan:
    removal = Removal(allowed=True, now=0.0, grace=0.0)
    return plan_shared(zone.provider.read([NAME, mark_name(NAME)]), asked, owner=OWNER, ttl=60, removal=removal)


def settle(zone: Zone, asked: list[Want]) -> None:
    for batch in zone.provider.split(planned(zone, asked).units):
        zone.provider.apply(batch)


@pytest.mark.parametrize(
    ("kind", "named"),
    [
        ("embedded", by_address),
        ("knot", by_outer_address),
        ("route53", by_address),
        ("route53", by_instance),
        ("route53", by_outer_address),
    ],
)
def test_four_hundred_nodes_stand_at_a_name_and_one_can_go_and_another_come(
    kind: str, named: Named, request: pytest.FixtureRequest
) -> None:
    zone = make_zone(kind, request)
    for numbers in (range(MOST), range(1, MOST), range(1, MOST + 1), range(2, MOST + 2)):
        asked = wants(numbers, named)
        settle(zone, asked)

        there = {record.type: record for record in zone.provider.read([NAME, mark_name(NAME)])}
        assert set(there["A"].values) == {want.value for want in asked}
        assert {mark for text in there["TXT"].values for mark in marks_in(text)} == {
            Mark(owner=OWNER, type="A", value=want.value, by=want.by) for want in asked
        }
        assert planned(zone, asked).units == ()


def test_one_more_is_refused_with_the_limit_in_words_and_all_stays(request: pytest.FixtureRequest) -> None:
    zone = make_zone("route53", request)
    settle(zone, wants(range(MOST), by_address))
    before = zone.records()

    with pytest.raises(BadRecord, match=r"at most 400 of at most 4000 characters each|at most 1000 of 32000"):
        settle(zone, wants(range(MOST + 1), by_address))
    assert zone.records() == before
