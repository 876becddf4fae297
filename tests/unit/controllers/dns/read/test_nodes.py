"""Nodes as targets, and what they ask for themselves."""

from __future__ import annotations

import pytest

from builders.dns_objects import LATER, a_node, a_target, lines
from protokube.controllers.dns.decide.desired import desired
from protokube.controllers.dns.read.nodes import roles_of

ROLE = "node-role.kubernetes.io/"


def test_a_node_keeps_its_addresses_by_view_and_no_host_name() -> None:
    node = a_target(a_node(internal=["10.0.0.2", "10.0.0.1", "FD00::1"], external=["192.0.2.1"]))

    assert node.internal == ("10.0.0.1", "10.0.0.2", "fd00::1")
    assert node.external == ("192.0.2.1",)
    assert node.source is None


@pytest.mark.parametrize(
    ("labels", "roles"),
    [
        ({}, ("node",)),
        ({"kubernetes.io/os": "linux"}, ("node",)),
        ({ROLE + "node": ""}, ("node",)),
        ({ROLE + "worker": "", ROLE + "gpu": ""}, ("gpu", "worker")),
        ({"kubernetes.io/role": "spot"}, ("spot",)),
        ({"kubernetes.io/role": "master", ROLE + "node": ""}, ("control-plane", "master", "node")),
        ({ROLE + "master": ""}, ("control-plane", "master")),
        ({ROLE + "control-plane": ""}, ("control-plane", "master")),
        ({"kubernetes.io/role": "", ROLE: ""}, ("node",)),
    ],
)
def test_a_node_has_every_role_that_its_labels_give(labels: dict[str, str], roles: tuple[str, ...]) -> None:
    assert roles_of(labels) == roles


def test_an_annotated_node_gets_its_own_addresses_of_each_view() -> None:
    node = a_node(
        internal=["10.0.0.1"], external=["192.0.2.1"], internal_names="in.example.com", external_names="out.example.com"
    )

    assert lines(desired([], [a_target(node)]).wants) == [
        "in.example.com A 10.0.0.1 node/n1",
        "out.example.com A 192.0.2.1 node/n1",
    ]


def test_a_node_that_is_drained_counts_until_it_is_gone() -> None:
    assert a_target(a_node(deleted=LATER)).internal == ("10.0.0.1",)


def test_an_address_of_a_node_that_nobody_else_can_reach_is_told() -> None:
    node = a_target(a_node(internal=["10.0.0.1", "fe80::1", "169.254.0.1"]))

    assert node.internal == ("10.0.0.1",)
    assert [problem.source for problem in desired([], [node]).problems] == ["node/n1", "node/n1"]
