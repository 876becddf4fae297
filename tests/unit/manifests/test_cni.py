"""The network of a node's pods, as the runtime's plugins read it."""

from __future__ import annotations

import json

import pytest

from protokube.manifests import cni


def test_pods_get_addresses_of_the_nodes_range_and_a_way_out() -> None:
    document = json.loads(cni.network(["100.96.3.0/24"]))
    bridge, ports = document["plugins"]
    assert bridge["ipam"]["ranges"] == [[{"subnet": "100.96.3.0/24"}]]
    assert bridge["ipam"]["routes"] == [{"dst": "0.0.0.0/0"}]
    assert (bridge["type"], bridge["isGateway"], ports["type"]) == ("bridge", True, "portmap")


def test_a_node_of_both_families_has_a_range_and_a_way_out_of_each() -> None:
    ipam = json.loads(cni.network(["100.96.3.0/24", "fd00:3::/64"]))["plugins"][0]["ipam"]
    assert ipam["ranges"] == [[{"subnet": "100.96.3.0/24"}], [{"subnet": "fd00:3::/64"}]]
    assert ipam["routes"] == [{"dst": "0.0.0.0/0"}, {"dst": "::/0"}]


def test_what_is_no_range_is_never_written() -> None:
    with pytest.raises(ValueError, match="does not appear to be"):
        cni.network(["ten-dot-something"])
