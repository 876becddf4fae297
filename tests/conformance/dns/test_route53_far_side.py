"""The stand-in for Route 53 refuses what Amazon documents as refused; otherwise the tests against it prove nothing."""

from __future__ import annotations

from typing import Any

import pytest

from fakes.name_servers import ZONE
from fakes.route53 import InvalidBatch, Route53Server, StrictBackend
from protokube.records.zones import Zone

NAME = f"a.{ZONE}."
Change = dict[str, Any]


def told(action: str, kind: str, *values: str, name: str = NAME, **more: Any) -> Change:
    records = [{"Value": value} for value in values]
    return {
        "Action": action,
        "ResourceRecordSet": {"Name": name, "Type": kind, "TTL": 5, "ResourceRecords": records, **more},
    }


@pytest.fixture
def backend(route53: Route53Server) -> tuple[StrictBackend, Zone]:
    zone = route53.zone(ZONE)
    route53.backend.change_resource_record_sets(zone.id, [told("CREATE", "A", "10.0.0.1")])
    return route53.backend, zone


@pytest.mark.parametrize(
    "refused",
    [
        [told("CREATE", "A", "10.0.0.1")],
        [told("DELETE", "A", "10.0.0.2")],
        [told("DELETE", "A", "10.0.0.1", TTL=6)],
        [told("DELETE", "AAAA", "2001:db8::1")],
        [told("CREATE", "CNAME", "b.test.")],
        [told("CREATE", "A", "10.0.0.1", SetIdentifier="x", Weight=1)],
        [told("CREATE", "A", "10.0.0.999.1", name=f"b.{ZONE}.")],
        [told("CREATE", "A", "10.0.0.1", "10.0.0.1", name=f"b.{ZONE}.")],
        [told("CREATE", "TXT", "bare")],
        [told("CREATE", "TXT", '"' + "x" * 256 + '"')],
        [told("CREATE", "CNAME", "b.test.", name=f"{ZONE}.")],
        [told("CREATE", "CNAME", "b.test.", "c.test.", name=f"b.{ZONE}.")],
        [told("CREATE", "A", "10.0.0.1", name="a.other.test.")],
        [told("UPSERT", "A", "10.0.0.1", name=f"n{number}.{ZONE}.") for number in range(501)],
        [told("CREATE", "A", "10.0.0.1", name=f"n{number}.{ZONE}.") for number in range(1001)],
        [told("CREATE", "TXT", f'"{"x" * 200}"', name=f"n{number}.{ZONE}.") for number in range(170)],
    ],
    ids=[
        "made twice",
        "deleted with another value",
        "deleted with another TTL",
        "deleted though not there",
        "alias beside",
        "chosen from beside plain",
        "bad address",
        "value twice",
        "text without quotes",
        "long string",
        "alias at the top",
        "alias of two",
        "outside",
        "501 upserts",
        "1001 values",
        "34000 characters",
    ],
)
def test_a_batch_that_amazon_refuses_is_refused_as_a_whole(
    backend: tuple[StrictBackend, Zone], route53: Route53Server, refused: list[Change]
) -> None:
    server, zone = backend
    before = route53.sets(zone)

    with pytest.raises(InvalidBatch):
        server.change_resource_record_sets(zone.id, [told("CREATE", "TXT", '"first"', name=f"z.{ZONE}."), *refused])

    assert route53.sets(zone) == before


def test_what_amazon_takes_is_taken(backend: tuple[StrictBackend, Zone], route53: Route53Server) -> None:
    server, zone = backend

    server.change_resource_record_sets(zone.id, [told("DELETE", "A", "10.0.0.1"), told("CREATE", "CNAME", "b.test.")])
    server.change_resource_record_sets(
        zone.id, [told("CREATE", "A", "10.0.0.1", name=f"*.n{number}.{ZONE}.") for number in range(999)]
    )

    names = [each.name for each in route53.sets(zone)]
    assert names[:3] == [f"{ZONE}.", f"{ZONE}.", NAME]
    assert f"\\052.n0.{ZONE}." in names
