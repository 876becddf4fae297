"""The commands for `ip` that set up outbound routes; and their stored configuration."""

from __future__ import annotations

from ipaddress import IPv4Network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protokube.errors import InvalidRequest
from protokube.local.outside.config import OutsideConfig
from protokube.local.outside.routes import NEVER, Inside, outside_commands, pod_commands, read_ranges

RANGES = st.lists(st.ip_addresses(v=4).map(lambda address: IPv4Network((address, 12), strict=False)), max_size=3)


def test_a_switch_leads_outside_what_is_not_the_clusters_own() -> None:
    inside = Inside(pods=read_ranges(["100.96.0.0/11"]), services=read_ranges(["100.64.0.0/13"]))
    assert pod_commands(inside) == ["route replace 100.96.0.0/11 dev br0 proto 77"]
    assert outside_commands(inside) == [
        "address replace 10.77.1.1 peer 10.77.1.2/32 dev tap0",
        "link set tap0 up",
        "route replace unreachable 10.77.1.0/24 proto 77",
        "route replace unreachable 100.64.0.0/13 proto 77",
        "route replace unreachable 169.254.0.0/16 proto 77",
        "route replace default via 10.77.1.2 dev tap0 proto 77",
    ]


@given(RANGES, RANGES)
def test_the_default_comes_last_and_each_range_has_a_route_before_it(
    pods: list[IPv4Network], services: list[IPv4Network]
) -> None:
    inside = Inside(pods=tuple(pods), services=tuple(services))
    *before, last = outside_commands(inside)
    assert last.startswith("route replace default via ")
    for each in services:
        assert f"route replace unreachable {each} proto 77" in before
    for each in pods:
        assert f"route replace {each} dev br0 proto 77" in pod_commands(inside)
    for each in NEVER:
        assert f"route replace unreachable {each} proto 77" in before


def test_ranges_of_ipv6_have_no_way_outside() -> None:
    assert read_ranges(["100.96.0.0/11", "fd00::/48"]) == (IPv4Network("100.96.0.0/11"),)


@pytest.mark.parametrize("wrong", ["100.96.0.1/11", "10.0.0.0/8 dev br0", "", "pods"])
def test_what_is_no_range_never_gets_into_a_command(wrong: str) -> None:
    with pytest.raises(InvalidRequest, match="not a range of addresses"):
        read_ranges([wrong])


def test_a_wish_is_kept_and_read_again() -> None:
    document = {"isolated": False, "program": "/bin/slirp4netns", "libraries": ["/lib/a"], "pods": ["100.96.0.0/11"]}
    config = OutsideConfig.read(document)
    assert config.open
    assert config.libraries == ("/lib/a",)
    assert IPv4Network("100.96.0.0/11") in config.inside.everything


@pytest.mark.parametrize(
    ("document", "why"),
    [
        ({}, "`protokube up` decides"),
        ({"isolated": True, "why": "no tun"}, "asked for: --isolated"),
        ({"isolated": False, "why": "no tun"}, "no tun"),
    ],
)
def test_a_wish_that_is_not_open_says_why(document: dict[str, object], why: str) -> None:
    config = OutsideConfig.read(document)
    assert not config.open
    assert why in config.why_closed
