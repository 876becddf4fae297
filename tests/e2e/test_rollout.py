"""A changed spec on real Kubernetes: settings of etcd, of the API server and of real kubelets reach three masters."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from builders.command import Answer
from clusters.kubelet import KubeletCluster
from clusters.real import until
from protokube.launch import revisions
from protokube.launch.rollout import Rollout, State
from protokube.local.drill import api_writing
from protokube.local.drill.writer import as_found, lost
from protokube.store.open import open_store

SECONDS = 240.0
IMAGE = "registry.example/kube-scheduler:mine"
"""An image that the hosts do not have when they are created."""
CHANGED: dict[str, Any] = {
    "etcdClusters": [{"name": "main", "quotaBackendBytes": 600_000_000}],
    "kubeAPIServer": {"eventTTL": "2h"},
    "kubeScheduler": {"image": IMAGE},
    "kubelet": {"maxPods": 40},
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[KubeletCluster]:
    with KubeletCluster() as made:
        made.up_with_kubelet(masters=3)
        yield made
        (made.state / "spec.yaml").unlink(missing_ok=True)


def up(cluster: KubeletCluster, **fields: Any) -> Answer:
    spec = cluster.write_spec(masters=3, **fields)
    return cluster.run("up", str(spec), "--timeout", f"{SECONDS:g}", seconds=900)


def record(cluster: KubeletCluster) -> Rollout:
    found = revisions.read_rollout(open_store(f"file://{cluster.paths.store}"), cluster.name)
    assert found is not None
    return found


def command_line(cluster: KubeletCluster, host: str, program: str) -> str:
    """The arguments of a program that runs in a host now."""
    found = cluster.inside(
        host, "sh", "-c", f"for p in $(pgrep -x {program}); do tr '\\0' ' ' < /proc/$p/cmdline; done"
    )
    return found.stdout


def most_pods(cluster: KubeletCluster, host: str) -> dict[str, str]:
    """By node, how many pods its kubelet accepts, as the API says."""
    nodes = json.loads(cluster.kubectl(host, "get", "nodes", "-o", "json") or '{"items": []}')["items"]
    return {each["metadata"]["name"]: each["status"]["capacity"]["pods"] for each in nodes}


def test_three_changed_settings_arrive_on_one_master_after_the_other_and_no_writer_loses_anything(
    cluster: KubeletCluster,
) -> None:
    with cluster.writing() as etcd, api_writing.writing(cluster.paths, "rollout") as api:
        assert api is not None
        ran = up(cluster, **CHANGED)
        etcd_log, api_log = etcd.stop(), api.writer.stop()
        in_api = api.read_back()

    assert ran.code == 0, ran.err
    for path in ("etcdClusters.main.quotaBackendBytes", "kubeAPIServer.eventTTL", "kubelet.maxPods"):
        assert path in ran.err
    assert "etcd main, kube-apiserver, kube-scheduler, kubelet" in ran.err
    assert "1 image on 3 hosts" in ran.err
    assert lost(etcd_log, as_found(cluster.client().read(etcd_log.prefix))) == ()
    assert lost(api_log, in_api) == ()
    assert len(etcd_log.acknowledged) > 100
    assert len(api_log.acknowledged) > 10
    hosts = [each["name"] for each in cluster.hosts()]
    until(lambda: set(most_pods(cluster, hosts[0]).values()) == {"40"}, "every kubelet has it", SECONDS, every=1.0)
    for host in hosts:
        assert "--event-ttl=2h" in command_line(cluster, host, "kube-apiserver")
        file = cluster.paths.host(host) / "etc/kubernetes/config/etcd.yaml"
        assert "quota-backend-bytes: 600000000" in file.read_text()
    events = [each for each in record(cluster).events if each.machine]
    turns = [each.machine for each in events if each.text.startswith("takes revision 2")]
    ends = [each.machine for each in events if each.text == "runs revision 2"]
    assert turns == ends
    assert sorted(turns) == sorted(hosts)
    assert {each["revision"] for each in cluster.status()["agents"]} == {2}


def test_a_flag_that_the_api_server_rejects_stops_at_one_master_with_its_own_words(cluster: KubeletCluster) -> None:
    refused = {**CHANGED, "kubeAPIServer": {"eventTTL": "2h", "goawayChance": "0.9"}}
    with api_writing.writing(cluster.paths, "refused") as api:
        assert api is not None
        ran = up(cluster, **refused)
        log = api.writer.stop()
        in_api = api.read_back()

    assert ran.code == 4, ran.err
    assert "goaway-chance can not be less than 0 or greater than 0.02" in ran.err
    assert lost(log, in_api) == ()
    stopped = record(cluster)
    assert (stopped.state, stopped.turn) == (State.STOPPED, None)
    assert sum(each.text.startswith("takes revision 3") for each in stopped.events) == 1
    until(lambda: {each["revision"] for each in cluster.status()["agents"]} == {2}, "all report revision 2", SECONDS)
    until(lambda: not cluster.status()["lacks"], "every API server is ready again", SECONDS, every=1.0)
    for host in cluster.hosts():
        assert "goaway" not in command_line(cluster, host["name"], "kube-apiserver")


def test_a_removed_component_and_a_removed_file_are_gone_from_every_master(cluster: KubeletCluster) -> None:
    policy = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: None}]\n"
    path = "/srv/kubernetes/assets/note.txt"
    assets = [{"name": "note", "path": path, "content": policy, "roles": ["Master"]}]
    assert up(cluster, **CHANGED, fileAssets=assets).code == 0
    places: list[Path] = [cluster.paths.host(each["name"]) / path.lstrip("/") for each in cluster.hosts()]
    assert [each.read_text() for each in places] == [policy] * 3

    ran = up(cluster, **CHANGED, dnsController={"enabled": False})

    assert ran.code == 0, ran.err
    until(lambda: not any(each.exists() for each in places), "the files are removed")
    manifests = [cluster.paths.host(each["name"]) / "etc/kubernetes/manifests" for each in cluster.hosts()]
    until(
        lambda: not any((each / "dns-controller.manifest").exists() for each in manifests), "the manifests are removed"
    )
