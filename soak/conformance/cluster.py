"""A cluster for the suite: a new one with kubelets, or an existing one; loads the suite's images."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

from clusters.kubelet import KubeletCluster
from clusters.real import RealCluster
from protokube.binaries.product import Release
from protokube.local.base.paths import Paths
from protokube.local.bringup import CACHE
from soak.budget import say
from soak.conformance import images
from soak.conformance.ginkgo import Suite, Target

SECONDS_TO_LOAD = 600.0


@contextmanager
def opened(name: str, masters: int) -> Iterator[RealCluster]:
    """The existing local cluster of this name, which is kept; without a name a new one, removed afterwards."""
    if name:
        paths = Paths.of(name)
        cluster = RealCluster(name, paths.root.parent)
        ran = cluster.run("status", "--cluster", name, "--output", "json")
        assert ran.out, ran.err
        yield cluster
        return
    with KubeletCluster() as own:
        say(f"{masters} masters that are nodes come up")
        yield own.up_with_kubelet(masters=masters)


def target(cluster: RealCluster, kubernetes: Release, *, loses_nodes: bool) -> Target:
    return Target(
        kubeconfig=cluster.paths.client / "kubeconfig",
        kubectl=kubernetes.programs["kubectl"],
        nodes=len(cluster.hosts()),
        loses_nodes=loses_nodes,
    )


def load_images(cluster: RealCluster, suite: Suite) -> list[str]:
    """Load every image that can be built onto all hosts; return the names of those that cannot."""
    named = suite.images()
    made = images.can_be_made(named)
    parts = images.Parts.find(suite.release, CACHE)
    archives = [images.keep(name, parts) for name in made]
    words = ["load", "image", *map(str, archives), "--cluster", cluster.name, "--output", "json"]
    ran = cluster.run(*words, seconds=SECONDS_TO_LOAD)
    assert ran.code == 0, ran.err
    say(f"{len(json.loads(ran.out)['images'])} images are on every host")
    return sorted(set(named) - set(made) - {name for name in named if name.startswith(images.FOREIGN)})
