"""The Deployment of the dns-controller: where its pods go, and how a new version takes the place of the old one."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from protokube.addons.value import Tree

FILE = Path(__file__).parents[3] / "deploy" / "dns-controller.yaml"


def deployment() -> Tree:
    (found,) = (tree for tree in yaml.safe_load_all(FILE.read_text()) if tree["kind"] == "Deployment")
    spec: Tree = found["spec"]
    return spec


def rolled(masters: int, *, replicas: int, surge: int, unavailable: int) -> tuple[int, int]:
    """Pods of the old and of the new version that run when Kubernetes has done all it may: one fits on a master."""
    old, new, old_runs, new_runs = replicas, 0, min(replicas, masters), 0
    while True:
        before = old, new
        new += min(replicas - new, max(0, replicas + surge - old - new))
        new_runs = min(new, masters - old_runs)
        spare = max(0, old + new - (replicas - unavailable) - (new - new_runs))
        waiting = min(spare, old - old_runs)  # the unhealthy ones go first
        going = min(old_runs, max(0, min(spare - waiting, old_runs + new_runs - (replicas - unavailable))))
        old, old_runs = old - waiting - going, old_runs - going
        new_runs = min(new, masters - old_runs)
        if (old, new) == before:
            return old_runs, new_runs


@pytest.mark.parametrize("masters", [1, 2, 3])
def test_a_new_version_takes_the_place_of_the_old_one_however_many_masters_there_are(masters: int) -> None:
    spec = deployment()
    strategy = spec["strategy"]["rollingUpdate"]
    bounds = {"replicas": spec["replicas"], "surge": strategy["maxSurge"], "unavailable": strategy["maxUnavailable"]}
    assert rolled(masters, **bounds) == (0, min(masters, spec["replicas"]))


def test_as_kubernetes_does_it_by_itself_the_old_version_would_stay_for_ever() -> None:
    by_itself = {"replicas": 2, "surge": 1, "unavailable": 0}
    assert [rolled(masters, **by_itself) for masters in (1, 2, 3)] == [(1, 0), (2, 0), (0, 2)]
    one_by_one = {"replicas": 2, "surge": 0, "unavailable": 1}
    assert [rolled(masters, **one_by_one) for masters in (1, 2, 3)] == [(1, 0), (0, 2), (0, 2)]


@pytest.mark.parametrize("label", ["node-role.kubernetes.io/master", "node-role.kubernetes.io/control-plane"])
def test_it_goes_to_masters_by_either_of_their_names(label: str) -> None:
    pod = deployment()["template"]["spec"]
    needed = pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert {"matchExpressions": [{"key": label, "operator": "Exists"}]} in needed  # one of the terms is enough
    assert {"key": label, "operator": "Exists"} in pod["tolerations"]
    assert "nodeSelector" not in pod
