"""One name among many that a provider does not take: all others stand in the same round, and it is told."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from clusters.dns_world import Cluster
from fakes.name_servers import LOOPBACK, ZONE, bind, knot
from fakes.route53 import Route53Server
from protokube.controllers.dns.write.confirm import Look
from protokube.controllers.dns.write.writing import GIVE_UP
from protokube.controllers.dns.write.zones import ZoneView
from protokube.controllers.dns.write.zonework import Outcome, Policy, Sight, ZoneWork
from protokube.providers.dns import DnsProvider
from protokube.providers.dns.rfc2136 import Rfc2136Dns
from protokube.records.owners import Want
from protokube.records.quarantine import FIRST as ASIDE
from protokube.records.zones import Zone

OURS = f"k8s.{ZONE}"
MANY = 5000
CROWD = tuple(f"10.1.0.{number}" for number in range(1, 102))
"""More values in one record than BIND takes."""


def a_want(name: str, value: str = "10.0.0.1") -> Want:
    return Want(name=name, type="A", value=value, by=f"pod/default/{name.partition('.')[0]}")


def good(count: int) -> list[Want]:
    return [a_want(f"w{number}.{OURS}") for number in range(count)]


def a_work(dns: DnsProvider) -> Callable[..., Outcome]:
    """A zone that is looked after from now on; what is returned is one round of it."""
    work = ZoneWork(Zone(name=ZONE, id=ZONE), ZoneView(dns), Policy(owner="us"), lambda: True)
    sight = Sight(look=Look(Cluster("us"), {}, {}), whole=True)
    return lambda wants, now=0.0: work.settle(tuple(wants), sight, now)


def names(dns: DnsProvider) -> set[str]:
    return {record.name for record in dns.list_records() if record.type == "A"} - {f"ns.{ZONE}"}


@contextmanager
def by_policy(kind: str, folder: Path) -> Iterator[DnsProvider]:
    """A server that lets us write below one name only."""
    with (bind if kind == "bind" else knot)(folder, below=OURS) as running:
        yield Rfc2136Dns(ZONE, LOOPBACK, running.key, port=running.port, read_seconds=20)


@pytest.mark.parametrize("kind", ["bind", "knot"])
@pytest.mark.parametrize("bad", [f"aaa.{ZONE}", f"zzz.{ZONE}"])
def test_a_name_outside_of_what_a_policy_allows_stops_no_other_one(kind: str, bad: str, tmp_path: Path) -> None:
    wants = [*good(50), a_want(bad)]
    with by_policy(kind, tmp_path) as dns:
        settle = a_work(dns)
        done = settle(wants)
        assert names(dns) == {want.name for want in good(50)}
        assert (done.trouble, [unit.name for unit, _ in done.refused]) == ("", [bad])

        later = settle(wants, ASIDE)  # it is tried again by itself, and is still no trouble of the zone
        assert (later.trouble, [unit.name for unit, _ in later.refused]) == ("", [bad])
        settle([*wants, a_want(f"new.{OURS}")], ASIDE + 1)
        assert f"new.{OURS}" in names(dns)


@pytest.mark.parametrize("count", [1, 5, 200])
def test_where_nothing_is_allowed_the_zone_is_in_trouble_and_not_every_name_is_asked_for(
    count: int, tmp_path: Path
) -> None:
    with by_policy("bind", tmp_path) as dns:
        settle = a_work(dns)
        done = settle([a_want(f"w{number}.{ZONE}") for number in range(count)])
        assert "does not let us change" in done.trouble
        assert done.refused == []
        assert done.look_again_at is not None
        assert names(dns) == set()
        settle([*good(1), *(a_want(f"w{number}.{ZONE}") for number in range(3))], done.look_again_at)
        assert names(dns) == {f"w0.{OURS}"}, "and one that is allowed is found all the same"


def test_a_name_that_a_condition_of_iam_denies_stops_no_other_one(route53: Route53Server) -> None:
    zone = route53.zone(ZONE)
    dns = route53.account.open(zone)
    route53.forbidden = bad = f"shop.{ZONE}"
    try:
        before = route53.requests["change"]
        done = a_work(dns)([*good(50), a_want(bad)])
        assert names(dns) == {want.name for want in good(50)}
        assert (done.trouble, [unit.name for unit, _ in done.refused]) == ("", [bad])
        assert "AccessDenied" in done.refused[0][1]
        assert route53.requests["change"] - before < GIVE_UP
    finally:
        route53.forbidden = ""


def test_of_5000_names_one_that_cannot_be_written_stops_none_of_the_others(tmp_path: Path) -> None:
    crowd = [a_want(f"w2500x.{OURS}", value) for value in CROWD]
    with bind(tmp_path) as running:
        dns = Rfc2136Dns(ZONE, LOOPBACK, running.key, port=running.port, read_seconds=60)
        done = a_work(dns)([*good(MANY - 1), *crowd])
        assert names(dns) == {want.name for want in good(MANY - 1)}
        assert (done.trouble, len(done.applied)) == ("", MANY - 1)
        assert [unit.name for unit, _ in done.refused] == [f"w2500x.{OURS}"]
