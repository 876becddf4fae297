"""`protokube explain record` with --dns: from the objects that ask for a name to the zone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from builders.command import Call
from builders.dns_objects import LATER, a_node, a_pod, a_service, an_ingress
from fakes.name_servers import Running, embedded, free_port
from fakes.object_api import CLUSTER, DnsApi, dns_api
from protokube.cli.render.dns_name import Story, lines, tree
from protokube.controllers.dns.read.watching import LEASES
from protokube.controllers.dns.tell.explain_zone import AtZone
from protokube.errors import ExitCode
from protokube.providers.dns.rfc2136 import Rfc2136Dns
from protokube.records import Change, Record
from protokube.records.api import LEASE, LEASE_NAMES
from protokube.records.zones import Zone

WEB = "web.example.com"
POD = a_pod(internal_names=WEB)
RENEWED = "2026-03-01T10:00:00.000000Z"
LOSER = a_service("lb", "LoadBalancer", {"hostname": "lb.net"}, external_names=WEB, created=LATER)


@pytest.fixture
def api() -> Iterator[DnsApi]:
    with dns_api() as found:
        found.add(a_node("n1"), POD)
        yield found


@pytest.fixture
def dns() -> Iterator[Running]:
    with embedded("example.com") as found:
        yield found


@pytest.fixture
def options(api: DnsApi, dns: Running, tmp_path: Path) -> tuple[str, ...]:
    key = tmp_path / "key"
    key.write_text(json.dumps({"name": dns.key.name, "secret": dns.key.secret}))
    return (
        "--dns", "rfc2136", "--server", f"127.0.0.1:{dns.port}", "--key-file", str(key), "--zone", "example.com",
        "--kubeconfig", str(api.kubeconfig(tmp_path)),
    )  # fmt: skip


def write(dns: Running, name: str, *values: str) -> None:
    """By hand."""
    record = Record(name=name, type="A", values=values, ttl=300)
    provider = Rfc2136Dns("example.com", "127.0.0.1", dns.key, port=dns.port)
    provider.apply([Change(before=None, after=record, why="by hand")])


def test_the_whole_way_of_a_name_before_and_after_it_is_written(
    call: Call, options: tuple[str, ...], api: DnsApi
) -> None:
    api.add(LOSER, a_pod("inner", host_network=False, internal_names=WEB))
    before = call("explain", "record", f"{WEB.upper()}.", *options)
    call("dns-controller", *options, "--once")
    after = call("explain", "record", WEB, *options)

    asked = [
        WEB,
        "asked for by:",
        "  pod/default/inner (annotation dns.alpha.kubernetes.io/internal): nothing",
        "    but the pod is not on its node's network (hostNetwork), so no name can lead to it",
        "  pod/default/web (annotation dns.alpha.kubernetes.io/internal): A 10.0.0.1",
        "  service/default/lb (annotation dns.alpha.kubernetes.io/external): CNAME lb.net",
        "    but CNAME lb.net: pod/default/web was there first and has A 10.0.0.1 there",
        "zones:",
        "  example.com (example.com)",
        "in DNS now:",
    ]
    assert (before.code, after.code) == (ExitCode.OK, ExitCode.OK)
    assert before.out.splitlines() == [
        *asked,
        "  nothing",
        f"next: {WEB} A: nothing -> 10.0.0.1 (10.0.0.1 for pod/default/web)",
    ]
    assert after.out.splitlines() == [
        *asked,
        "  A 10.0.0.1, TTL 60: ours, for pod/default/web",
        "next: nothing, until the reasons above are resolved",
    ]
    assert [each for each in api.wrote if "leases" in each[1]] == []


def test_a_name_in_order_says_so_also_when_asked_for_by_its_mark(call: Call, options: tuple[str, ...]) -> None:
    call("dns-controller", *options, "--once")

    for name in (WEB, f"_protokube.{WEB}"):
        shown = call("explain", "record", name, *options).out.splitlines()
        assert (shown[0], shown[-1]) == (WEB, "next: nothing: it is in order")


def test_a_value_that_nobody_asks_for_any_more_is_told_to_leave(
    call: Call, options: tuple[str, ...], api: DnsApi
) -> None:
    call("dns-controller", *options, "--once")
    api.remove(POD)
    shown = call("explain", "record", WEB, *options).out.splitlines()

    assert shown[1:3] == ["asked for by:", "  nobody"]
    assert shown[-1] == f"next: {WEB} A 10.0.0.1 goes after 30 s: pod/default/web no longer asks for it"


def test_a_value_whose_object_lost_its_address_is_told_to_stay(
    call: Call, options: tuple[str, ...], api: DnsApi
) -> None:
    call("dns-controller", *options, "--once")
    api.add(a_pod(internal_names=WEB, addresses=()))
    shown = call("explain", "record", WEB, *options).out

    assert "    but it has no address yet\n" in shown
    assert "  A 10.0.0.1 stays: pod/default/web asks for the name and has no address now" in shown
    assert shown.splitlines()[-1] == "next: nothing, until the reasons above are resolved"


def test_a_record_made_by_hand_is_told_as_nobodys_and_keeps_others_out(
    call: Call, options: tuple[str, ...], dns: Running
) -> None:
    write(dns, WEB, "192.0.2.9")
    shown = call("explain", "record", WEB, *options).out.splitlines()

    assert "  A 192.0.2.9, TTL 300: no owner is recorded, so it stays" in shown
    assert shown[-3:] == [
        "not as asked for:",
        "  A 192.0.2.9 is there and not ours",
        "next: nothing, until the reasons above are resolved",
    ]


def test_a_value_of_another_cluster_is_told_with_its_owner(call: Call, options: tuple[str, ...]) -> None:
    call("dns-controller", *options, "--once", "--owner", "cluster-b")

    assert "  A 10.0.0.1, TTL 60: of cluster-b, for pod/default/web" in call("explain", "record", WEB, *options).out


def test_a_name_of_the_agents_is_theirs(call: Call, options: tuple[str, ...], api: DnsApi, dns: Running) -> None:
    lease = {"metadata": {"name": LEASE, "annotations": {LEASE_NAMES: WEB}}, "spec": {"renewTime": RENEWED}}
    api.put(f"{LEASES}/{LEASE}", lease)
    write(dns, WEB, "10.0.0.5")
    shown = call("explain", "record", WEB, *options).out.splitlines()

    assert "    but the masters' agents answer for this name themselves" in shown
    assert "  A 10.0.0.5, TTL 300: managed by the masters' agents" in shown
    assert shown[-2:] == [
        f"next: nothing, if the masters' agents still renew the Lease protokube-api-names (last: {RENEWED})",
        "      otherwise the Lease has expired, and the dns-controller takes the name over",
    ]


def test_only_the_ttl_that_the_controller_is_told_is_in_order(call: Call, options: tuple[str, ...]) -> None:
    call("dns-controller", *options, "--once", "--ttl", "300")

    other = call("explain", "record", WEB, *options).out.splitlines()
    same = call("explain", "record", WEB, *options, "--ttl", "300").out.splitlines()
    assert other[-1] == f"next: {WEB} A: 10.0.0.1 -> 10.0.0.1 (TTL 60)"
    assert same[-1] == "next: nothing: it is in order"


def test_hosts_of_ingresses_count_where_they_are_watched(call: Call, options: tuple[str, ...], api: DnsApi) -> None:
    api.add(an_ingress("front", ("front.example.com",), {"ip": "192.0.2.3"}))
    unseen = call("explain", "record", "front.example.com", *options)
    seen = call("explain", "record", "front.example.com", *options, "--watch-ingress")

    assert unseen.code == ExitCode.INVALID
    assert "  ingress/default/front (host of a rule): A 192.0.2.3" in seen.out.splitlines()


def test_a_name_that_no_zone_holds_says_which_rules_there_are(
    call: Call, options: tuple[str, ...], api: DnsApi
) -> None:
    api.add(a_pod("far", internal_names="far.other.org"))
    shown = call("explain", "record", "far.other.org", *options).out.splitlines()

    assert "  no managed zone contains it (rules: example.com)" in shown
    assert shown[-1] == "next: nothing, until a zone that contains the name is managed; see --zone"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("wep.example.com", "did you mean `web.example.com`?"),
        ("star.wild.example.com", "*.wild.example.com answers for it"),
        ("bad..name", "is not a DNS name"),
    ],
)
def test_a_name_that_nobody_knows_is_told_with_what_may_be_meant(
    call: Call, options: tuple[str, ...], dns: Running, name: str, expected: str
) -> None:
    write(dns, "*.wild.example.com", "192.0.2.1")
    answer = call("explain", "record", name, *options)

    assert (answer.code, answer.out) == (ExitCode.INVALID, "")
    assert expected in answer.err


def test_a_zone_that_cannot_be_read_is_told_after_all_the_rest(call: Call, options: tuple[str, ...]) -> None:
    answer = call("explain", "record", WEB, *options, "--server", f"127.0.0.1:{free_port()}")

    assert answer.code == ExitCode.TRY_LATER
    assert "  pod/default/web (annotation dns.alpha.kubernetes.io/internal): A 10.0.0.1" in answer.out.splitlines()
    assert answer.out.splitlines()[-3:] == ["in DNS now:", "  not known", "next: nothing, until its zone can be read"]
    assert "a zone could not be read" in answer.err


@pytest.mark.parametrize("output", ["json", "yaml"])
def test_the_same_is_told_to_programs_as_data(call: Call, options: tuple[str, ...], output: str) -> None:
    call("dns-controller", *options, "--once")
    text = call("explain", "record", WEB, *options, "-o", output).out
    document = json.loads(text) if output == "json" else yaml.safe_load(text)

    assert (document["kind"], document["name"], document["owner"], document["reserved"]) == (
        "record",
        WEB,
        CLUSTER,
        False,
    )
    assert document["askedForBy"] == [
        {
            "source": "pod/default/web",
            "where": "annotation dns.alpha.kubernetes.io/internal",
            "gives": [{"type": "A", "value": "10.0.0.1"}],
            "why": [],
        }
    ]
    (zone,) = document["zones"]
    assert zone["standing"] == [
        {"type": "A", "value": "10.0.0.1", "ttl": 60, "whose": "ours, for pod/default/web"}
    ]  # fmt: skip
    assert (zone["changes"], zone["leaving"], document["next"]) == ([], [], ["nothing: it is in order"])


def test_only_a_record_is_explained_by_objects(call: Call, options: tuple[str, ...]) -> None:
    answer = call("explain", "volume", "vol-1", *options)

    assert answer.code == ExitCode.INVALID
    assert "do not apply to a volume" in answer.err


def test_a_provider_that_is_exported_for_other_commands_does_not_hide_a_volume(
    call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PROTOKUBE_STATE", str(tmp_path))
    alone = call("explain", "volume", "vol-1")
    monkeypatch.setenv("PROTOKUBE_DNS", "aws-route53")
    exported = call("explain", "volume", "vol-1")

    assert exported == alone
    assert "say nothing about" not in exported.err


def test_two_zones_of_one_name_are_told_apart() -> None:
    public, private = Zone(name="example.com", id="Z1"), Zone(name="example.com", id="Z2", private=True)
    other = Zone(name="example.com", id="Z3")
    story = Story(
        name=WEB, owner="a", grace=30.0, reserved=False, asked=(), rules=("*",),
        zones=(AtZone(zone=public), AtZone(zone=private, wildcard="*.example.com")), left_alone=((other, "no rule"),),
    )  # fmt: skip

    assert lines(story)[4:9] == [
        "  example.com (Z1)",
        "  example.com (private, Z2)",
        "  example.com (Z3) is left alone: no rule",
        "in DNS now:",
        "  example.com (Z1): nothing",
    ]
    assert tree(story)["zonesLeftAlone"] == [{"zone": "example.com (Z3)", "why": "no rule"}]
