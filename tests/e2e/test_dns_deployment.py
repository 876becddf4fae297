"""The Deployment that we ship, with the image that we make, where the masters run no dns-controller of their own."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from clusters.kubelet import KubeletCluster
from clusters.real import until
from e2e.pods import SECONDS, apply
from protokube.config.dnscontroller import IMAGE, KEY_SECRET, LOCAL_SERVER
from protokube.launch.prepare import tsig_key
from protokube.store.open import open_store

FILE = Path(__file__).parents[2] / "deploy/dns-controller.yaml"
ROUTE53 = re.compile(r"^ *- --dns=aws-route53\n *- --zone=.*\n", re.MULTILINE)
OFFERED = re.compile(r"^( *)# ( *(?:- --.*|- name: .*|\w+:(?: \S+)?))$", re.MULTILINE)
"""A line of it that the reader is to take in: it looks like YAML."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[KubeletCluster]:
    with KubeletCluster() as made:
        yield made.up_with_kubelet(dnsController={"enabled": False})


def for_a_server(text: str, zone: str) -> list[dict[str, Any]]:
    """The file, changed as its comments say for a server that takes updates."""
    taken = OFFERED.sub(r"\1\2", ROUTE53.sub("", text))
    taken = taken.replace("192.0.2.53", LOCAL_SERVER).replace("--zone=example.com", f"--zone={zone}")
    return list(yaml.safe_load_all(taken))


def running(cluster: KubeletCluster, host: str) -> list[Any]:
    pods = cluster.get(host, "pods", "--namespace=kube-system", "--selector=k8s-app=dns-controller")["items"]
    return [each for each in pods if each["status"]["phase"] == "Running"]


def test_as_its_comments_say_it_runs_and_writes_what_annotations_ask_for(cluster: KubeletCluster) -> None:
    host = str(cluster.hosts()[0]["name"])
    (zone,) = cluster.admin.call("about")["zones"]
    archive = cluster.paths.host(host) / "srv/ours.tar"
    made = cluster.run("get", "image", str(archive))
    assert made.code == 0, made.err
    imported = cluster.with_path(host, "ctr", "--namespace=k8s.io", "images", "import", "/srv/ours.tar")
    assert imported.returncode == 0, imported.stderr

    key = tsig_key(open_store(f"file://{cluster.paths.store}"), cluster.name)
    told = json.dumps({"name": key.name, "secret": key.secret})
    metadata = {"name": KEY_SECRET, "namespace": "kube-system"}
    secret: dict[str, object] = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata,
        "stringData": {"update.key": told},
    }
    apply(cluster, host, [secret, *for_a_server(FILE.read_text(), zone)])

    def ready() -> bool:
        status = cluster.get(host, "deployment", "dns-controller", "--namespace=kube-system")["status"]
        return bool(status.get("readyReplicas") == 1)  # the other one waits for a second master

    until(ready, "one of the Deployment's pods is ready", SECONDS, every=0.5)

    cluster.kubectl(host, "annotate", "node", host, f"dns.alpha.kubernetes.io/internal=here.{zone}")
    until(lambda: cluster.answers(f"here.{zone}") == [cluster.hosts()[0]["address"]], "the name stands", SECONDS)
    cluster.kubectl(host, "annotate", "node", host, "dns.alpha.kubernetes.io/internal-")
    until(lambda: cluster.answers(f"here.{zone}") == [], "the name is gone", SECONDS)
    (pod,) = running(cluster, host)
    (container,) = pod["status"]["containerStatuses"]
    assert (pod["spec"]["containers"][0]["image"], container["restartCount"]) == (IMAGE, 0)

    cluster.kubectl(host, "rollout", "restart", "deployment/dns-controller", "--namespace=kube-system")

    def replaced() -> bool:
        return ready() and pod["metadata"]["name"] not in [each["metadata"]["name"] for each in running(cluster, host)]

    until(replaced, "a new pod has taken the place of the old one, on the only master", SECONDS, every=0.5)
