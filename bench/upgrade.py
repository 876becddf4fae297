"""A newer etcd, and a newer Kubernetes, on every master, compared with a killed master: the longest gap of a writer."""

from __future__ import annotations

import json
import os
from itertools import pairwise
from pathlib import Path

import local
import rollout

from host.debian import unpacked
from protokube.binaries.etcd import ETCD
from protokube.binaries.kubernetes import KUBERNETES
from protokube.spec.version import Version, parse

NEWER = "trixie"
"""The suite of Debian that has etcd 3.5; Debian 12 has 3.4."""


def main() -> bool:
    good = measure_etcd()
    return measure_kubernetes() and good


def measure_etcd() -> bool:
    folders = [unpacked("etcd-server", suite) / "usr/bin" for suite in ("", NEWER)]
    old, new = (ETCD.version(folder / "etcd") for folder in folders)
    with local.cluster("none", spec_of(etcd=old), **{ETCD.chosen: str(folders[0])}) as (paths, _):
        environment = environment_of(paths.root.parent, **{ETCD.chosen: str(folders[1])})
        rolled = rollout.roll_out(paths, environment, spec_of(etcd=new))
        return rollout.compare(f"etcd {old} to {new} on", rolled, rollout.kill_master(environment))


def measure_kubernetes() -> bool:
    versions = sorted(filter(None, map(parse, KUBERNETES.complete_versions())))
    pairs = [(old, new) for old, new in pairwise(versions) if is_next(old, new)]
    if not pairs:
        print("upgrade of Kubernetes: not measured, no two neighbouring versions are on this machine")
        return True
    old, new = pairs[-1]
    with local.cluster(str(old), spec_of(kubernetes=str(old))) as (paths, _):
        environment = environment_of(paths.root.parent)
        rolled = rollout.roll_out(paths, environment, spec_of(kubernetes=str(new)))
        return rollout.compare(f"Kubernetes {old} to {new} on", rolled, rollout.kill_master(environment))


def is_next(old: Version, new: Version) -> bool:
    return (new.major, new.minor) in ((old.major, old.minor), (old.major, old.minor + 1))


def spec_of(*, etcd: str = "", kubernetes: str = "") -> str:
    fields = {
        "cloud": "local",
        "masters": 3,
        "etcdClusters": [{"name": "main", **({"version": etcd} if etcd else {})}],
        **({"kubernetesVersion": kubernetes} if kubernetes else {}),
    }
    return rollout.SPEC + json.dumps(fields)


def environment_of(state: Path, **variables: str) -> dict[str, str]:
    return {**os.environ, "PROTOKUBE_STATE": str(state), "PROTOKUBE_ISOLATED": "1", **variables}


if __name__ == "__main__":
    raise SystemExit(0 if main() else 1)
