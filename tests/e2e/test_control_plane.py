"""Three masters with real Kubernetes from our manifests: they come up, serve, schedule, and heal."""

from __future__ import annotations

import base64
import http.client
import json
import re
import ssl
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from builders.command import environment
from builders.kubeconfigs import a_kubeconfig, marks
from clusters.real import RealCluster, until
from e2e.listening import assert_nothing_without_tls
from protokube.binaries.kubernetes import find
from protokube.cli.shared.contexts import take_out_contexts
from protokube.kube.session import Session, Silent
from protokube.manifests.certificate import CertificateWanted
from protokube.pki.authority import make_authority
from protokube.pki.issue import issue
from protokube.records.owners import mark_name

COMPONENTS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
NODE = "pretended"
MANY = 4


class Kubernetes:
    """A cluster with its API, asked as its owner asks it: by kubectl."""

    def __init__(self, cluster: RealCluster) -> None:
        self.cluster = cluster
        self.kubectl = cluster.told["kubectl"]
        self.config = cluster.told["env"]["KUBECONFIG"]

    def run(self, *words: str, stdin: str = "", host: str = "") -> str:
        """Through api.internal, or from inside a host to its very own API server."""
        command = [self.kubectl, f"--kubeconfig={self.config}", "--request-timeout=20s", *words]
        if host:
            inside = [f"--target={self.pid(host)}", "--net"]
            command = ["nsenter", *inside, *command[:2], "--server=https://127.0.0.1:443", *command[2:]]
        ran = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=60)
        if ran.returncode:
            raise OSError(ran.stderr.strip())
        return ran.stdout

    def get(self, *words: str) -> Any:
        return json.loads(self.run("get", *words, "-o", "json"))

    def apply(self, *trees: dict[str, Any]) -> None:
        self.run("apply", "-f", "-", stdin=yaml.safe_dump_all(trees))

    def pid(self, host: str) -> int:
        return int(next(each["pid"] for each in self.cluster.hosts() if each["name"] == host))

    def hosts(self) -> list[str]:
        return sorted(each["name"] for each in self.cluster.hosts())


@pytest.fixture(scope="module")
def kubernetes() -> Iterator[Kubernetes]:
    found = find(None)
    assert found is not None, "scripts/kubernetes brings Kubernetes here"
    with RealCluster() as cluster:
        cluster.up("--kubernetes", found.version, "--timeout", "400")
        yield Kubernetes(cluster)


def test_every_check_of_every_api_server_is_good(kubernetes: Kubernetes) -> None:
    assert len(kubernetes.hosts()) == 3
    for host in kubernetes.hosts():
        said = kubernetes.run("get", "--raw", "/readyz?verbose", host=host)
        assert "readyz check passed" in said
        assert "[-]" not in said


def test_plain_kubectl_reaches_the_cluster_by_the_merged_context(kubernetes: Kubernetes, tmp_path: Path) -> None:
    cluster, config = kubernetes.cluster, tmp_path / "config"
    config.write_bytes(a_kubeconfig("prod", current="prod"))
    env = environment(PROTOKUBE_STATE=str(cluster.state), PROTOKUBE_KUBECONFIG="1", KUBECONFIG=str(config))
    said = cluster.run("up", "--cluster", cluster.name, "-o", "json", PROTOKUBE_KUBECONFIG="1", KUBECONFIG=str(config))

    def kubectl(*words: str) -> str:
        return subprocess.run([kubernetes.kubectl, *words], env=env, check=True, capture_output=True, text=True).stdout

    assert said.code == 0, said.err
    told = json.loads(said.out)
    assert (told["context"], told["contextIsCurrent"]) == (f"protokube-{cluster.name}", True)
    assert kubectl("get", "--raw", "/readyz").strip() == "ok"
    kubectl("config", "rename-context", told["context"], "mine")
    kubectl("config", "set-context", "mine", "--namespace", "kube-system")
    assert kubectl("config", "get-contexts", "-o", "name").split() == ["mine", "prod"]

    assert take_out_contexts(cluster.paths) == ["removed the context mine, prod is current again"]
    assert (kubectl("config", "current-context").strip(), marks([config.read_bytes()])) == ("prod", 0)
    assert kubectl("config", "get-contexts", "-o", "name").split() == ["prod"]


def test_every_component_runs_as_it_was_started_and_says_nothing_of_unknown_flags(kubernetes: Kubernetes) -> None:
    for host in kubernetes.hosts():
        told = json.loads((kubernetes.cluster.paths.host(host) / "run/protokube/pods.json").read_text())
        for name in COMPONENTS:
            (container,) = told["pods"][f"kube-system/{name}"]["containers"].values()
            assert container["state"] == "running"
            log = kubernetes.cluster.paths.host(host) / f"var/log/pods/kube-system_{name}/{name}.log"
            text = log.read_text(errors="replace")
            assert "unknown flag" not in text
            deprecated = set(re.findall(r"Flag --(\S+) has been deprecated", text))
            assert deprecated <= {"port"}, "the one way to close the port without TLS of old versions"


def test_status_says_that_all_api_servers_are_ready(kubernetes: Kubernetes) -> None:
    told = kubernetes.cluster.until_ready()
    assert [each["serving"] for each in told["agents"]] == [True] * 3


def test_the_pods_of_a_deployment_are_scheduled(kubernetes: Kubernetes) -> None:
    kubernetes.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}})
    ready = {"conditions": [{"type": "Ready", "status": "True", "reason": "Pretended", "message": ""}],
             "capacity": {"cpu": "4", "memory": "4Gi", "pods": "50"},
             "allocatable": {"cpu": "4", "memory": "4Gi", "pods": "50"}}  # fmt: skip
    patch_status(kubernetes, f"/api/v1/nodes/{NODE}", {"status": ready})
    labels = {"app": "sleepers"}
    tolerations = [{"operator": "Exists"}]
    container = {"name": "sleeper", "image": "none.invalid/sleeper:1"}
    kubernetes.apply({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "sleepers", "namespace": "default"},
        "spec": {"replicas": MANY, "selector": {"matchLabels": labels}, "template": {
            "metadata": {"labels": labels}, "spec": {"containers": [container], "tolerations": tolerations}}},
    })  # fmt: skip

    def placed() -> bool:
        pods = kubernetes.get("pods", "-l", "app=sleepers")["items"]
        return [each["spec"].get("nodeName") for each in pods] == [NODE] * MANY

    until(placed, "the scheduler has found a place for all of them", 120)
    node = until(lambda: kubernetes.get("node", NODE)["spec"].get("podCIDR"), "its part of the pods' range", 60)
    assert node.endswith("/24")
    kubernetes.run("delete", "deployment", "sleepers")
    kubernetes.run("delete", "node", NODE)


def patch_status(kubernetes: Kubernetes, path: str, tree: dict[str, Any]) -> None:
    """kubectl of this version knows no subresources: by its own door."""
    user = yaml.safe_load(Path(kubernetes.config).read_text())["users"][0]["user"]
    pair = tuple(base64.b64decode(user[name]) for name in ("client-certificate-data", "client-key-data"))
    assert ask(kubernetes, "PATCH", f"{path}/status", pair, tree) == 200


def ask(
    kubernetes: Kubernetes, method: str, path: str, pair: tuple[bytes, ...] = (), tree: dict[str, Any] | None = None
) -> int:
    """The status of an answer to whoever has this certificate and key, or none."""
    cluster = yaml.safe_load(Path(kubernetes.config).read_text())["clusters"][0]["cluster"]
    context = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
    with tempfile.NamedTemporaryFile() as file:
        if pair:
            Path(file.name).write_bytes(b"".join(pair))
            context.load_cert_chain(file.name)
    where = urlsplit(cluster["server"])
    assert where.hostname
    body = None if tree is None else json.dumps(tree)
    with closing(http.client.HTTPSConnection(where.hostname, where.port, context=context, timeout=20)) as connection:
        connection.request(method, path, body, {"Content-Type": "application/merge-patch+json"})
        return connection.getresponse().status


def test_who_watches_a_kind_on_which_nothing_happens_hears_that_the_watch_goes_on(kubernetes: Kubernetes) -> None:
    """Else nobody could tell a quiet watch from a broken one. API servers of 1.20 do not pass on what etcd says."""
    path = "/apis/node.k8s.io/v1/runtimeclasses"
    session = Session.open(Path(kubernetes.config))
    version = json.loads(session.get(path))["metadata"]["resourceVersion"]
    query = {"watch": "true", "allowWatchBookmarks": "true", "resourceVersion": version}

    def first() -> str:
        with session.watch(path, query) as watch:
            return str(json.loads(next(iter(watch)))["type"])

    if kubernetes.cluster.told["kubernetes"].startswith("1.20."):
        with pytest.raises(Silent):
            first()
    else:
        assert first() == "BOOKMARK"


def test_nothing_listens_without_tls_but_on_loopback(kubernetes: Kubernetes) -> None:
    for host in kubernetes.hosts():
        assert_nothing_without_tls(kubernetes.cluster, host, {443, 2380, 4001})


def test_whoever_has_no_certificate_or_a_wrong_one_is_refused_by_the_api_server(kubernetes: Kubernetes) -> None:
    stranger = make_authority("kubernetes-ca", time.time())
    wanted = CertificateWanted(
        authority="kubernetes-ca", common_name="admin", organizations=("system:masters",), usages=("client auth",)
    )
    made = issue(wanted, stranger, time.time())
    for path in ("/api/v1/namespaces", "/readyz", "/version", "/"):
        assert ask(kubernetes, "GET", path) == 401
        assert ask(kubernetes, "GET", path, (made.certificate, made.key)) == 401


def test_no_certificate_of_the_cluster_opens_anything_in_etcd(kubernetes: Kubernetes) -> None:
    (host, *_) = kubernetes.hosts()
    keys = kubernetes.cluster.paths.host(host) / "srv/kubernetes"
    for name in ("protokube", "kube-apiserver-kubelet-client", "kube-scheduler", "front-proxy-client"):
        assert etcd_health(kubernetes, host, f"--cert={keys}/{name}.crt", f"--key={keys}/{name}.key") != 0
    assert etcd_health(kubernetes, host) != 0, "nor does anybody without one"
    client = (f"--cert={keys}/kube-apiserver-etcd-client.crt", f"--key={keys}/kube-apiserver-etcd-client.key")
    assert etcd_health(kubernetes, host, *client) == 0, "and the right one does"


def etcd_health(kubernetes: Kubernetes, host: str, *words: str) -> int:
    keys = kubernetes.cluster.paths.host(host) / "srv/kubernetes"
    where = ["--endpoints=https://127.0.0.1:4001", f"--cacert={keys}/etcd-client-ca.crt", "--command-timeout=5s"]
    inside = ["nsenter", f"--target={kubernetes.pid(host)}", "--net", kubernetes.cluster.told["etcdctl"]]
    ran = subprocess.run(
        [*inside, *where, *words, "get", "x"], env={"ETCDCTL_API": "3"}, capture_output=True, timeout=60
    )
    return ran.returncode


def leader(kubernetes: Kubernetes, component: str) -> str:
    lease = kubernetes.get("lease", component, "-n", "kube-system")
    return str(lease["spec"]["holderIdentity"]).partition("_")[0]


def test_when_the_master_of_the_leading_controller_manager_dies_another_leads(kubernetes: Kubernetes) -> None:
    cluster = kubernetes.cluster
    before = until(lambda: leader(kubernetes, "kube-controller-manager"), "somebody leads")
    old = next(name for name in kubernetes.hosts() if name == before)
    cluster.admin.call("kill_host", host=old)
    until(lambda: leader(kubernetes, "kube-controller-manager") not in ("", old), "another one leads", 120)
    cluster.until_ready(300)


def verdict_of(kubernetes: Kubernetes, drill: str) -> dict[str, Any]:
    cluster = kubernetes.cluster
    cluster.until_ready(300)
    said = cluster.run("drill", drill, "--cluster", cluster.name, "--timeout", "300s", "--output", "json", seconds=500)
    assert said.out, said.err
    verdict: dict[str, Any] = json.loads(said.out)
    assert said.code == 0, verdict
    return verdict


def test_the_api_answers_again_after_a_power_cut_and_has_lost_nothing(kubernetes: Kubernetes) -> None:
    assert_nothing_is_lost(verdict_of(kubernetes, "power-off"))


def assert_nothing_is_lost(verdict: dict[str, Any]) -> None:
    writes = verdict["apiWrites"]
    assert writes["acknowledged"] >= 5, "too few to tell"
    assert writes["readBack"] == writes["acknowledged"]


def test_after_a_killed_master_nothing_is_lost_and_the_names_of_the_api_are_still_the_agents_beside_a_dns_controller(
    kubernetes: Kubernetes,
) -> None:
    cluster = kubernetes.cluster
    (zone,) = cluster.admin.call("about")["zones"]
    lease = ("lease", "protokube-api-names", "-n", "kube-system")
    told = until(lambda: kubernetes.get(*lease), "the agents say which names are theirs", 120)
    names = told["metadata"]["annotations"]["protokube.io/names"].split(",")
    asking = f"asking.{zone}"

    def masters() -> list[str]:
        return sorted(each["address"] for each in cluster.hosts())

    metadata = {"name": "asking", "annotations": {"dns.alpha.kubernetes.io/internal": ",".join([asking, *names])}}
    status = {"addresses": [{"type": "InternalIP", "address": "10.77.200.9"}]}
    kubernetes.apply({"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": status})
    until(lambda: cluster.answers(asking) == ["10.77.200.9"], "a controller has written what is not the agents'", 120)
    assert_nothing_is_lost(verdict_of(kubernetes, "kill-master"))
    for name in names:
        until(lambda name=name: cluster.answers(name) == masters(), f"{name} holds the live masters", 120)  # type: ignore[misc]
        assert cluster.answers(mark_name(name), "TXT") == []
    kubernetes.run("annotate", "node", "asking", f"dns.alpha.kubernetes.io/internal={names[0]}", "--overwrite")
    until(lambda: cluster.answers(asking) == [], "a controller is at work after the drill as before", 120)
    assert cluster.answers(names[0]) == masters()
    logs = [log.read_text() for log in cluster.paths.root.glob("**/kube-system_dns-controller/dns-controller.log")]
    assert any("we lead" in log for log in logs)
    assert not any("not ours" in log for log in logs), "none must even have tried to write them"
    kubernetes.run("delete", "node", "asking")
