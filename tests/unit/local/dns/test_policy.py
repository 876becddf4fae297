"""Which queries are forwarded outside of the cluster."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network
from typing import Any

import dns.flags
import dns.message
import dns.name
import dns.opcode
import dns.update
import pytest
from hypothesis import given
from hypothesis import strategies as st

from protokube.local.dns.policy import Policy, reverse_range

ZONES = (dns.name.from_text("dev.test"),)
OWN = (IPv4Network("10.77.0.0/24"), IPv4Network("100.96.0.0/11"))
POLICY = Policy.of(["cluster.local"], OWN)


def is_let_out(name: str, kind: str = "A", **more: Any) -> bool:
    return POLICY.lets_out(dns.message.make_query(name, kind, **more), ZONES)


@pytest.mark.parametrize("name", ["registry.k8s.io", "dev.test.example", "mydev.test", "example", ".", "arpa"])
def test_other_peoples_names_are_asked_for_outside(name: str) -> None:
    assert is_let_out(name)


@pytest.mark.parametrize(
    "name",
    ["dev.test", "DEV.Test", "a.internal.dev.test", "cluster.local", "web.svc.cluster.local", "localhost"],
)
def test_names_of_the_cluster_never_are(name: str) -> None:
    assert not is_let_out(name)


@given(st.ip_addresses(v=4))
def test_the_reverse_of_an_address_is_asked_for_outside_unless_it_is_the_clusters(address: IPv4Address) -> None:
    inside = any(address in own for own in OWN)
    assert is_let_out(address.reverse_pointer, "PTR") is not inside


@pytest.mark.parametrize(
    ("name", "out"),
    [
        ("0.77.10.in-addr.arpa", False),
        ("77.10.in-addr.arpa", True),
        ("in-addr.arpa", True),
        ("300.77.10.in-addr.arpa", True),
        ("_dns-sd.11.0.77.10.in-addr.arpa", False),
        ("x.0.77.10.in-addr.arpa", True),
    ],
)
def test_parts_of_the_reverse_tree(name: str, out: bool) -> None:
    assert is_let_out(name, "PTR") is out


@given(st.lists(st.text(alphabet="0123456789abc-²", min_size=1, max_size=4), max_size=5))
def test_no_name_breaks_the_reading_of_the_reverse_tree(labels: list[str]) -> None:
    name = dns.name.Name([label.encode() for label in labels] + [b"in-addr", b"arpa", b""])
    found = reverse_range(name)
    assert found is None or found.prefixlen == 8 * min(len(labels), 4)


@pytest.mark.parametrize("kind", ["AXFR", "IXFR", "TSIG", "OPT"])
def test_transfers_and_the_like_stay_here(kind: str) -> None:
    assert not is_let_out("example.com", kind)


def test_updates_signed_questions_and_odd_ones_stay_here() -> None:
    assert not POLICY.lets_out(dns.update.UpdateMessage("example.com"), ZONES)
    notify = dns.message.make_query("example.com", "A")
    notify.set_opcode(dns.opcode.NOTIFY)
    assert not POLICY.lets_out(notify, ZONES)
    several = dns.message.make_query("example.com", "A")
    several.question *= 2
    assert not POLICY.lets_out(several, ZONES)
    assert not is_let_out("example.com", flags=0), "nobody wants it looked up"
    assert not POLICY.lets_out(dns.message.make_query("example.com", "A", rdclass="CH"), ZONES)
    assert not is_let_out("example.com", use_edns=1), "a version that nobody knows"
