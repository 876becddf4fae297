"""The pod ranges of a cluster, from the fields that the controller manager's flags are made of."""

from __future__ import annotations

from typing import Any

import pytest

from builders.config import completed
from protokube.config.podranges import pod_ranges


def ranges(cluster: dict[str, Any]) -> list[tuple[str, int]]:
    return [(str(each.network), each.node_mask) for each in pod_ranges(cluster)]


@pytest.mark.parametrize(
    ("pods", "manager", "found"),
    [
        ("100.96.0.0/11", {"nodeCIDRMaskSize": 25}, [("100.96.0.0/11", 25)]),
        ("100.96.0.0/11", {"nodeCIDRMaskSizeIPv4": 26}, [("100.96.0.0/11", 26)]),
        ("100.96.0.0/11", {}, [("100.96.0.0/11", 24)]),
        ("100.96.0.0/11", {"nodeCIDRMaskSize": 0}, [("100.96.0.0/11", 24)]),
        ("fd00::/48", {"nodeCIDRMaskSize": 60}, [("fd00::/48", 60)]),
        ("100.96.0.0/11,fd00::/48", {}, [("100.96.0.0/11", 24), ("fd00::/48", 64)]),
        (
            "fd00::/48,10.1.0.0/16",
            {"nodeCIDRMaskSizeIPv6": 60, "nodeCIDRMaskSizeIPv4": 26},
            [("fd00::/48", 60), ("10.1.0.0/16", 26)],
        ),
    ],
)
def test_each_family_has_its_range_and_its_mask(
    pods: str, manager: dict[str, int], found: list[tuple[str, int]]
) -> None:
    assert ranges({"podCIDR": pods, "kubeControllerManager": manager}) == found


def test_a_complete_configuration_has_the_range_and_the_mask_that_the_controller_manager_is_told() -> None:
    config = completed(podCIDR="100.96.0.0/16", kubeControllerManager={"nodeCIDRMaskSizeIPv4": 25})

    assert ranges(config.cluster) == [("100.96.0.0/16", 25)]
    assert ranges(completed().cluster) == [("100.96.0.0/11", 24)]
