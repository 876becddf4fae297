"""A changed setting on every master, compared with a killed master: the longest gap of a writer, in one cluster each.

A rollout restarts etcd and the API server of each of three masters; a kill takes one master away for good. Writers of
etcd and of the API see both.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import local

from protokube.binaries.kubernetes import find
from protokube.etcd.client import GatewayEtcd
from protokube.launch.machine import from_tree
from protokube.local import bringup
from protokube.local.base import client_files
from protokube.local.base.paths import Paths
from protokube.local.drill import api_writing
from protokube.local.drill.writer import WriteLog, Writer, as_found, lost
from protokube.providers.clients.local import LocalClient

RATIO = 1.5
"""A planned restart must not be worse than an unplanned loss by more than this."""
EVERY = 0.02
SPEC = "apiVersion: protokube.io/v1alpha1\nkind: Cluster\nmetadata: {name: bench}\nspec: "
CHANGED = {
    "cloud": "local",
    "masters": 3,
    "etcdClusters": [{"name": "main", "quotaBackendBytes": 600_000_000}],
    "kubeAPIServer": {"eventTTL": "2h"},
}


def main() -> bool:
    found = find(None)
    if found is None:
        print("rollout: measured for etcd alone, there is no Kubernetes on this machine")
    with local.cluster(found.version if found else "none") as (paths, _):
        environment = {**os.environ, "PROTOKUBE_STATE": str(paths.root.parent)}
        rolled = roll_out(paths, environment, SPEC + json.dumps(CHANGED))
        return compare("rollout to", rolled, kill_master(environment))


def kill_master(environment: dict[str, str]) -> dict[str, Any]:
    """The verdict of the drill."""
    command = [*local.COMMAND, "drill", "kill-master", "--timeout", "300s", "-o", "json"]
    ran = subprocess.run(command, env=environment, capture_output=True, check=True)
    verdict: dict[str, Any] = json.loads(ran.stdout)
    return verdict


def compare(doing: str, rolled: tuple[WriteLog, WriteLog | None], verdict: dict[str, Any]) -> bool:
    good = compare_one(doing, "etcd", rolled[0], verdict["writes"]["longestGap"])
    return compare_one(doing, "API", rolled[1], verdict["apiWrites"]["longestGap"]) and good if rolled[1] else good


def compare_one(doing: str, what: str, log: WriteLog, killed: float) -> bool:
    gap = log.longest_gap.seconds
    print(f"{doing} three masters: longest gap of {what} writes {gap:.2f} s, by a killed master {killed:.2f} s", end="")
    print(f"; ratio {gap / killed:.2f}, budget {RATIO}; {len(log.acknowledged)} acknowledged, none lost")
    return gap <= RATIO * killed


def roll_out(paths: Paths, environment: dict[str, str], changed: str) -> tuple[WriteLog, WriteLog | None]:
    """What writers saw while a changed spec was rolled out."""
    spec = paths.root.parent / "changed.yaml"
    spec.write_text(changed)
    with Writer(client_of(paths), "/bench/rollout/", every=EVERY) as etcd, api_writing.writing(paths, "rollout") as api:
        subprocess.run([*local.COMMAND, "up", str(spec)], check=True, env=environment, capture_output=True)
        log, in_api = etcd.stop(), api.writer.stop() if api else None
        assert not (in_api and api and lost(in_api, api.read_back())), "the API lost acknowledged writes"
    assert not lost(log, as_found(client_of(paths).read("/bench/rollout/"))), "etcd lost acknowledged writes"
    spec.unlink()
    return log, in_api


def client_of(paths: Paths) -> GatewayEtcd:
    hosts: list[Path] = sorted(paths.hosts.glob("*/etc/protokube/agent.json"))
    wanted = from_tree(json.loads(hosts[0].read_text())["master"])
    urls = bringup.endpoints(LocalClient(paths.admin_socket, patience=30), wanted.etcd[0])
    return GatewayEtcd(urls, client_files.etcd_tls(paths), timeout=1.0)


if __name__ == "__main__":
    raise SystemExit(0 if main() else 1)
