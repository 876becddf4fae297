"""A real kubelet that was told what a group of role Node is told, and a token, becomes a node; others do not."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv4Network
from typing import Any

import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID

from clusters.real import until
from e2e.pods import apply
from e2e.served import served
from e2e.worker import CERTIFICATE, LABELS, SECONDS, TAINT, Worker, WorkerCluster
from protokube.addons import approve
from protokube.addons.nodes import MACHINE, parse_taint
from protokube.local.host import cgroups

CLIENT = "kubernetes.io/kube-apiserver-client-kubelet"
ROLE, MASTER_ROLE = "node-role.kubernetes.io/node", "node-role.kubernetes.io/master"
PORT = 10250
POD = "web"


@pytest.fixture(scope="module")
def cluster() -> Iterator[WorkerCluster]:
    with WorkerCluster() as made:
        made.up_with_kubelet()
        yield made
    assert not cgroups.find(cgroups.name(made.paths.switch))


@pytest.fixture(scope="module")
def machine(cluster: WorkerCluster) -> Worker:
    """Its kubelet has run, with a token that was deleted, and with the token of another node."""
    made = Worker(cluster)
    deleted, foreign = cluster.token(made.name), cluster.token("somebody-else")
    until(lambda: cluster.answer_to(deleted) == 403, "the token is known", SECONDS)
    cluster.delete_token(deleted)
    until(lambda: cluster.answer_to(deleted) == 401, "the token is no longer known", SECONDS)
    made.start_kubelet(deleted)
    until(lambda: "Unauthorized" in made.log(), "the kubelet was refused", SECONDS, every=0.5)
    made.start_kubelet(foreign)
    until(lambda: made.requests(CLIENT), "it asked by the token of another one", SECONDS, every=0.5)
    return made


@pytest.fixture(scope="module")
def token(cluster: WorkerCluster, machine: Worker) -> str:
    return cluster.token(machine.name)


@pytest.fixture(scope="module")
def worker(machine: Worker, token: str) -> Worker:
    """The same one with a token that is good, and with a network for its pods as soon as it has a range."""
    machine.start_kubelet(token)
    machine.make_pod_network()
    until(machine.is_ready, "the node is ready", SECONDS, every=0.5)
    return machine


def names_of(certificate: x509.Certificate) -> dict[str, str]:
    oids = {NameOID.COMMON_NAME: "CN", NameOID.ORGANIZATION_NAME: "O"}
    return {oids[each.oid]: str(each.value) for each in certificate.subject}


def issued_by_the_cluster(cluster: WorkerCluster, certificate: x509.Certificate) -> bool:
    ca = cluster.paths.host(cluster.master) / "srv/kubernetes/ca.crt"
    certificate.verify_directly_issued_by(x509.load_pem_x509_certificate(ca.read_bytes()))
    return True


def reasons(requests: list[dict[str, Any]]) -> set[str]:
    """Why requests were approved, by those who did it."""
    return {each["reason"] for request in requests for each in request["status"]["conditions"]}


def test_a_token_that_is_deleted_another_nodes_or_with_another_secret_lets_nobody_in(
    cluster: WorkerCluster, machine: Worker, token: str
) -> None:
    until(lambda: cluster.answer_to(token) == 403, "a good one is known", SECONDS)
    known, _, secret = token.partition(".")

    assert cluster.answer_to(f"{known}.{secret[::-1]}") == 401
    why = f"its token was created for somebody-else, and it is for CN=system:node:{machine.name},O=system:nodes"
    until(lambda: why in cluster.run("status", "--cluster", cluster.name).out, "it is told why", SECONDS, every=0.5)
    assert [each["status"] for each in machine.requests(CLIENT)] == [{}]
    assert [each["metadata"]["name"] for each in cluster.asked("nodes")["items"]] == [cluster.master]
    assert machine.certificate() == ""


def test_the_token_gets_it_a_certificate_of_its_own_name_and_nothing_more(
    cluster: WorkerCluster, worker: Worker, token: str
) -> None:
    own = f"system:bootstrap:{token.partition('.')[0]}"
    requests = [each for each in worker.requests(CLIENT) if each["spec"]["username"] == own]
    certificate = x509.load_pem_x509_certificate(worker.certificate().encode())

    assert reasons(requests) == {"ProtokubeApproved"}
    assert names_of(certificate) == {"CN": f"system:node:{worker.name}", "O": "system:nodes"}
    assert issued_by_the_cluster(cluster, certificate)
    assert CERTIFICATE in (worker.folder / "var/lib/kubelet/kubeconfig").read_text()
    assert cluster.answer_to(token) == 403


def test_the_node_has_addresses_a_range_of_its_own_and_what_its_group_says(
    cluster: WorkerCluster, worker: Worker
) -> None:
    node, (other,) = worker.node(), cluster.asked("node", cluster.master)["spec"]["podCIDRs"]
    (own,) = node["spec"]["podCIDRs"]

    assert {each["type"]: each["address"] for each in node["status"]["addresses"]} == {
        "InternalIP": worker.address,
        "Hostname": worker.name,
    }
    assert IPv4Network(own).subnet_of(cluster.pods())
    assert not IPv4Network(own).overlaps(IPv4Network(other))
    assert LABELS.items() <= node["metadata"]["labels"].items()
    assert parse_taint(TAINT) in node["spec"]["taints"]


def test_it_serves_with_a_certificate_that_the_agent_approved_for_its_names_alone(
    cluster: WorkerCluster, worker: Worker
) -> None:
    def signed() -> list[dict[str, Any]]:
        return [each for each in worker.requests(approve.SIGNER) if each.get("status", {}).get("certificate")]

    requests = until(signed, "its request to serve is signed", SECONDS, every=0.5)
    healthy = f"/api/v1/nodes/{worker.name}/proxy/healthz"
    until(lambda: cluster.kubectl(cluster.master, "get", "--raw", healthy) == "ok", "the API server asks it", SECONDS)
    shown = served(cluster, worker.address, PORT)
    names = shown.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    server = cluster.asked("pod", "--namespace=kube-system", f"kube-apiserver-{cluster.master}")["spec"]["containers"][
        0
    ]

    assert any(each.startswith("--kubelet-certificate-authority=") for each in server["command"]), "else any would do"
    assert {each["spec"]["username"] for each in requests} == {f"system:node:{worker.name}"}
    assert reasons(requests) == {"ProtokubeApproved"}
    assert issued_by_the_cluster(cluster, shown)
    assert names_of(shown) == {"CN": f"system:node:{worker.name}", "O": "system:nodes"}
    assert {str(each.value) for each in names} == {worker.name, worker.address}


def a_pod(cluster: WorkerCluster, node: str) -> dict[str, Any]:
    """Put on its node by us; it shows a secret to whoever fetches it."""
    command = ["/busybox", "sh", "-c", "echo it runs; exec /busybox httpd -f -p 80 -h /secret"]
    mount = {"name": "secret", "mountPath": "/secret"}
    told = {"name": "web", "image": cluster.pause, "command": command, "volumeMounts": [mount]}
    volume = {"name": "secret", "secret": {"secretName": "its-own"}}
    spec = {"nodeName": node, "terminationGracePeriodSeconds": 0, "volumes": [volume]}
    spec["containers"] = [{**told, "imagePullPolicy": "Never"}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": POD}, "spec": spec}


def a_secret(name: str) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": {"word": f"of {name}"}}


@pytest.fixture(scope="module")
def pod(cluster: WorkerCluster, worker: Worker) -> str:
    """Its address."""
    master = cluster.master
    apply(cluster, master, [a_secret("its-own"), a_secret("of-others")])
    cluster.asked("serviceaccount", "default")
    apply(cluster, master, [a_pod(cluster, worker.name)])

    def address() -> str:
        status = cluster.asked("pod", POD)["status"]
        return status.get("podIP", "") if status["phase"] == "Running" else ""

    return until(address, "the pod runs", SECONDS, every=0.5)


def test_a_pod_that_is_bound_to_it_runs_is_looked_into_and_is_reached_from_the_master(
    cluster: WorkerCluster, worker: Worker, pod: str
) -> None:
    master, (own,) = cluster.master, worker.node()["spec"]["podCIDRs"]
    fetch = f"import urllib.request; print(urllib.request.urlopen('http://{pod}/word', timeout=5).read())"

    assert IPv4Address(pod) in IPv4Network(own)
    until(lambda: "it runs" in cluster.kubectl(master, "logs", POD), "its log is read", SECONDS, every=0.5)
    until(lambda: "uid=0" in cluster.kubectl(master, "exec", POD, "--", "/busybox", "id"), "it is looked into", SECONDS)
    until(lambda: worker.address in cluster.inside(master, "ip", "route", "show", own).stdout, "a route leads there")
    until(lambda: "of its-own" in cluster.inside(master, "python3", "-c", fetch).stdout, "the pod answers", SECONDS)


def test_as_the_kubelet_one_reads_the_secrets_of_its_pods_and_no_others_and_changes_no_role(
    cluster: WorkerCluster, worker: Worker, pod: str
) -> None:
    def refused(*words: str) -> None:
        until(lambda: "forbidden" in worker.kubectl(*words).lower(), f"{' '.join(words)} is refused")

    word = b64encode(b"of its-own").decode()
    read = ("get", "secret", "its-own", "--output=jsonpath={.data.word}")
    until(lambda: worker.kubectl(*read) == word, "what its pod uses is read")
    refused("get", "secret", "of-others")
    refused("get", "secrets", "--all-namespaces")
    refused("label", "node", cluster.master, "example.com/pool=tests")
    refused("delete", "node", cluster.master)
    refused("label", "node", worker.name, f"{MASTER_ROLE}=")

    until(lambda: ROLE in worker.node()["metadata"]["labels"], "the agent gives it its role", SECONDS, every=0.5)
    node = worker.node()["metadata"]
    assert node["annotations"][MACHINE] == worker.name
    assert MASTER_ROLE not in node["labels"]
