"""etcd itself, started on the file we write, does what the file says.

etcd passes over keys of its file that it does not know, so a start alone proves nothing: we read back what it says it
runs with, and try to get in without a certificate. It runs in mount and network namespaces of its own, with the file
unchanged, at the paths and names that are in it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from builders.certificates import write_certificates
from clusters.etcd import SERIES, etcd_binary
from protokube.config.complete import Config, complete
from protokube.config.flags import flag_table
from protokube.config.render.etcd_file import DURATIONS
from protokube.spec.parse import parse
from protokube.spec.version import Version

SPEC = """
apiVersion: protokube.io/v1alpha1
kind: Cluster
metadata: {{name: dev.example.com}}
spec:
  cloud: aws
  zones: [us-east-1a]
  masters: 1
  etcdClusters:
  - name: main
    version: {version}
    heartbeatInterval: 250ms
    leaderElectionTimeout: 2s500ms
    quotaBackendBytes: 4294967296
    extraFlags: {{auto-compaction-mode: periodic, auto-compaction-retention: 30m, snapshot-count: 50000, {durations}}}
"""
INSIDE = Path(__file__).with_name("etcd_inside.py")


VERSIONS = {"3.4": "3.4.23", "3.5": "3.5.21", "3.6": "3.6.8"}
"""What a spec says of each."""


@pytest.fixture(params=SERIES, scope="module")
def started(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, Any]]:
    """A real etcd on our file: its version, and what was seen of it."""
    version = VERSIONS[request.param]
    assert os.geteuid() == 0, "this test makes namespaces: run it as root"
    return version, run(tmp_path_factory.mktemp("etcd"), version, etcd_binary(request.param))


def run(work: Path, version: str, etcd: str) -> dict[str, Any]:
    text = SPEC.format(version=version, durations=durations(version))
    config = complete(parse([("spec.yaml", text)]))
    told = config.rendered[""]["etcd"]["main"]["a"]
    (content,) = told["files"].values()
    (work / "etcd.yaml").write_text(yaml.safe_dump(content))
    write_certificates(work / "pki", certificates_of(config))
    host = content["initial-advertise-peer-urls"].removeprefix("https://").partition(":")[0]
    command = ["unshare", "--mount", "--net", "--pid", "--fork", sys.executable, str(INSIDE), str(work), etcd, host]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return {"said": json.loads(done.stdout), "log": (work / "etcd.log").read_text(), "file": content}


def durations(version: str) -> str:
    """Every duration that this version has a flag for: with one of them in a form that it cannot read it ends."""
    major, minor, _ = map(int, version.split("."))
    known = DURATIONS & flag_table("etcd", Version(major, minor)).sure.keys()
    former = {f"experimental-{flag}" for flag in known}
    return ", ".join(f"{flag}: 1s" for flag in sorted(known - former))


def certificates_of(config: Config) -> dict[str, Any]:
    """Of the configuration's own list, the certificates of this member and of its client."""
    wanted = ("etcd-a-peer", "etcd-a-server", "kube-apiserver-etcd-client")
    return {name: config.cluster["pki"]["certificates"][name] for name in wanted}


def settings(log: str) -> dict[str, Any]:
    """What etcd says it runs with, in one line of its log."""
    line = next(each for each in log.splitlines() if '"starting an etcd server"' in each)
    found: dict[str, Any] = json.loads(line)
    return found


def test_etcd_is_healthy_on_our_file_with_our_certificates(started: tuple[str, dict[str, Any]]) -> None:
    version, seen = started
    assert seen["said"]["health"] == "true"
    assert seen["said"]["version"].startswith(version.rpartition(".")[0])


def test_etcd_runs_with_what_the_file_says_and_not_with_its_defaults(started: tuple[str, dict[str, Any]]) -> None:
    _, seen = started
    running, file = settings(seen["log"]), seen["file"]
    assert running["name"] == "etcd-a"
    assert running["data-dir"] == "/var/etcd/data"
    assert running["initial-cluster"] == file["initial-cluster"]
    assert running["initial-cluster-token"] == "etcd-cluster-token-etcd-dev.example.com"
    assert running["initial-cluster-state"] == "new"
    assert running["heartbeat-interval"] == "250ms"
    assert running["election-timeout"] == "2.5s"
    assert running["snapshot-count"] == 50000
    assert running["listen-client-urls"] == ["https://0.0.0.0:4001"]
    assert running["listen-metrics-urls"] == ["http://127.0.0.1:2390"]
    assert running["advertise-client-urls"] == ["https://etcd-a.internal.dev.example.com:4001"]
    assert running["pre-vote"] is True
    quota = running.get("quota-size-bytes", running.get("quota-backend-bytes"))
    assert quota == 4294967296
    assert running["auto-compaction-mode"] == "periodic"


def test_nobody_gets_in_without_a_certificate_of_the_etcd_authority(started: tuple[str, dict[str, Any]]) -> None:
    _, seen = started
    assert seen["said"]["with certificate"] == "answered"
    assert seen["said"]["without certificate"] == "refused"
    assert seen["said"]["with a peer certificate"] == "refused"
