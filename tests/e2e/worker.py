"""A machine that is no master, made a node of a real local cluster: with what nodeup is to write, and a real kubelet.

No agent runs on it, and it has nothing of the state store but the kubelet's files of its group, as `launch` makes them,
the authority's certificate, and a token.
"""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

from clusters.kubelet import PKI, KubeletCluster
from clusters.real import until
from protokube.config.complete import Config, complete
from protokube.host.files import write_atomic
from protokube.kube.client import ApiError, KubeApi
from protokube.launch.derive import kubelet_of
from protokube.launch.files import kubelet_files
from protokube.launch.machine import KubeletConfig
from protokube.local.base import client_files
from protokube.local.base.paths import RUNTIME_CONFIG
from protokube.local.host.units import LocalUnits
from protokube.local.node.containerd import RuntimeConfig
from protokube.local.node.kubehost import KUBELET, PROXY_ADDRESS
from protokube.local.node.kubelet import settings
from protokube.manifests import cni, kubeconfig
from protokube.spec.parse import parse
from protokube.store import layout
from protokube.store.open import open_store

SECONDS = 240.0
MASTERS, GROUP, AGENT = "master-a", "workers", "protokube.service"
LABELS = {"example.com/pool": "tests"}
TAINT = "example.com/tests=only:NoSchedule"
"""So that nothing comes to it but what a test puts there."""
SPEC = {"role": "Node", "minSize": 1, "nodeLabels": LABELS, "taints": [TAINT]}
CERTIFICATE = "/var/lib/kubelet/pki/kubelet-client-current.pem"


class WorkerCluster(KubeletCluster):
    """One master that is a node by its agent, and a group of role Node."""

    def write_spec(self, **fields: Any) -> Path:
        file = super().write_spec(**fields)
        group = {"apiVersion": "protokube.io/v1alpha1", "kind": "InstanceGroup", "metadata": {"name": GROUP}}
        file.write_text(f"{file.read_text()}\n---\n{json.dumps({**group, 'spec': SPEC})}\n")
        return file

    def one_of(self, group: str) -> dict[str, Any]:
        """The host of a group, once it runs."""
        return until(lambda: next((x for x in self.hosts() if x["group"] == group and x["pid"]), None), f"a {group}")

    @property
    def master(self) -> str:
        return str(self.one_of(MASTERS)["name"])

    def asked(self, *words: str) -> Any:
        """What the API says, once it answers."""
        return until(lambda: self.get(self.master, *words), f"an answer to `get {' '.join(words)}`", SECONDS, every=0.5)

    def config(self) -> Config:
        """The complete configuration in the store; completing it again changes nothing."""
        store = open_store(f"file://{self.paths.store}")
        paths = [layout.complete_spec(self.name), *store.list_paths(layout.instance_groups(self.name))]
        return complete(parse([(path, store.read(path).data.decode()) for path in paths]))

    def pods(self) -> IPv4Network:
        """Where the complete configuration has all pods' addresses."""
        return IPv4Network(self.config().cluster["podCIDR"])

    def token(self, node: str) -> str:
        made = self.run("token", "create", node, "--ttl", "1h", "--cluster", self.name)
        assert made.code == 0, made.err
        return made.out.strip()

    def delete_token(self, token: str) -> None:
        gone = self.run("token", "delete", token, "--cluster", self.name)
        assert gone.code == 0, gone.err

    def answer_to(self, token: str) -> int:
        """401 while the API server does not know a token; 403 where it does, since a token may read nothing."""
        server, ca = client_files.api_server(self.paths), client_files.folder(self.paths) / "kubernetes-ca.crt"
        api = KubeApi(server, ca=ca, token=token, patience=20)
        try:
            api.get("/api/v1/nodes")
        except ApiError as refused:
            return refused.status
        finally:
            api.close()
        return 200


class Worker:
    """The one host of the group, seen from outside."""

    def __init__(self, cluster: WorkerCluster) -> None:
        self.cluster, self.kubelet = cluster, kubelet_of(cluster.config(), GROUP, settings)
        cluster.admin.call("set_group", name=GROUP, size=1, template=template(cluster, self.kubelet))
        about = cluster.one_of(GROUP)
        self.name, self.address = str(about["name"]), str(about["address"])
        self.folder = cluster.paths.host(self.name)

    def start_kubelet(self, token: str) -> None:
        """Or start it again: it reads the file with the token only then."""
        server = f"https://{PROXY_ADDRESS}"
        text = kubeconfig.by_token(self.cluster.name, server, "kubelet", ca=f"{PKI}/ca.crt", token=token)
        self._write(str(self.kubelet.flags["bootstrap-kubeconfig"]), text)
        units = LocalUnits(self.folder / "run/protokube/units.sock", seconds=30.0)
        if not units.ensure_started(KUBELET):
            units.restart(KUBELET)

    def make_pod_network(self) -> None:
        """From what the controller manager gave the Node."""
        ranges = until(lambda: self.node()["spec"].get("podCIDRs"), "the Node has a range for pods", SECONDS, every=0.5)
        self._write(cni.FILE, cni.network(ranges))

    def node(self) -> dict[str, Any]:
        found: dict[str, Any] = self.cluster.asked("node", self.name)
        return found

    def is_ready(self) -> bool:
        return self.cluster.node_is_ready(self.cluster.master, self.name)

    def requests(self, signer: str) -> list[dict[str, Any]]:
        """Of this signer, by anybody."""
        found = self.cluster.asked("certificatesigningrequests")["items"]
        return [each for each in found if each["spec"]["signerName"] == signer]

    def certificate(self) -> str:
        """By which its kubelet is known, with the key; empty while it has none."""
        return self.cluster.inside(self.name, "cat", CERTIFICATE).stdout

    def log(self) -> str:
        return (self.folder / f"var/log/{KUBELET}.log").read_text(errors="replace")

    def kubectl(self, *words: str) -> str:
        """Asked as the kubelet, by what it wrote itself; what is said, be it an error."""
        who = [f"--kubeconfig={self.kubelet.kubeconfig}", "--request-timeout=30s"]
        ran = self.cluster.with_path(self.name, "kubectl", *who, *words)
        return ran.stdout + ran.stderr

    def _write(self, path: str, text: str) -> None:
        file = self.folder / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(file, text.encode(), 0o600)


def template(cluster: WorkerCluster, kubelet: KubeletConfig) -> dict[str, Any]:
    """A host like the master's, without an agent and without anything that the store tells masters only."""
    like = cluster.template(MASTERS)
    config = RuntimeConfig(**json.loads(like["files"][str(RUNTIME_CONFIG)]))
    config = replace(config, images={cluster.pause: config.images[cluster.pause]})
    ca = (cluster.paths.host(cluster.master) / f"{PKI}/ca.crt".lstrip("/")).read_text()
    return {
        **like,
        "units": {name: command for name, command in like["units"].items() if name != AGENT},
        "files": {**kubelet_files(kubelet), str(RUNTIME_CONFIG): json.dumps(asdict(config)), f"{PKI}/ca.crt": ca},
        "master": False,
    }
