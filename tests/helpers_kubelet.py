"""A local cluster whose hosts run the real kubelet on containerd, for tests with real Kubernetes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from helpers_cli import environment
from helpers_cluster import RealCluster
from protokube.agent.launchdata import from_config
from protokube.config.complete import complete
from protokube.local import binaries, bringup, kubehost
from protokube.programs.kubernetes import find
from protokube.spec.parse import read
from protokube.store.configuration import put_config
from protokube.store.open import open_store

SPEC = """apiVersion: protokube.io/v1alpha1
kind: Cluster
metadata: {{name: {name}}}
spec:
  cloud: local
  masters: {masters}
  kubernetesVersion: {version}
  etcdClusters:
  - {{name: main, version: {etcd}}}
"""
PKI = "/srv/kubernetes"
START_DAEMON = """
import sys
from pathlib import Path
from protokube.local.bringup import start_daemon
from protokube.local.paths import Paths
start_daemon(Paths.at(Path(sys.argv[1])))
"""
"""In a process of its own, as `up` is: the daemon is nobody's child afterwards."""


class KubeletCluster(RealCluster):
    """Brought up step by step by the functions that `up` calls; everything else is a cluster like any other."""

    def up_with_kubelet(self, masters: int = 1) -> KubeletCluster:
        kubernetes = find(None, bringup.CACHE)
        assert kubernetes is not None, "no Kubernetes on this machine: `scripts/kubernetes` has it made"
        etcd = binaries.find("etcd", bringup.CACHE)
        version = binaries.version(etcd)
        text = SPEC.format(name=self.name, masters=masters, version=kubernetes.version, etcd=version)
        texts = [("(the spec of a test)", text)]
        config = complete(read(texts))
        tree, groups = config.cluster, [group for group in config.rendered if group]
        kubelet = config.rendered[groups[0]]["kubelet"]
        runtime = kubehost.obtain(tree, kubernetes.folder, etcd, bringup.CACHE)
        self.paths.create()
        store = open_store(f"file://{self.paths.store}")
        put_config(store, config, texts)
        wanted = kubehost.as_nodes(from_config(config), kubelet, tree["networking"]["plugin"])
        bringup.ensure_authorities(store, wanted)
        bringup.write_client(store, self.paths, wanted)
        key = bringup.tsig_key(store, wanted.cluster)
        subprocess.run([sys.executable, "-c", START_DAEMON, str(self.paths.root)], check=True, env=environment())
        self.admin.call("set_dns", zones=[tree["dnsZone"]], keys=[{"name": key.name, "secret": key.secret}])
        volumes = bringup.create_founders(self.admin, wanted)
        for each in wanted.etcd:
            bringup.record_generation(store, wanted.cluster, each, volumes)
        launch = bringup.launch_data(wanted, key, tree["dnsZone"])
        plain = bringup.template(launch, [etcd.parent])
        sandbox, switch = tree["containerd"]["sandboxImage"], self.paths.switch
        told = kubehost.with_kubelet(plain, runtime, kubelet, sandbox_image=sandbox, switch=switch)
        bringup.set_groups(self.admin, wanted, told)
        self.programs = f"{kubernetes.folder}:{':'.join(str(folder) for folder in runtime.folders)}"
        return self

    def with_path(self, host: str, *words: str) -> subprocess.CompletedProcess[str]:
        return self.inside(host, "env", f"PATH={self.programs}:/usr/sbin:/usr/bin:/sbin:/bin", *words)

    def kubectl(self, host: str, *words: str) -> str:
        """Asked in a host, as its agent; empty, if there is no answer."""
        who = [f"--certificate-authority={PKI}/ca.crt", f"--client-certificate={PKI}/protokube.crt"]
        who += [f"--client-key={PKI}/protokube.key", "--server=https://127.0.0.1", "--request-timeout=10s"]
        return self.with_path(host, "kubectl", *who, *words).stdout

    def get(self, host: str, *words: str) -> Any:
        return json.loads(self.kubectl(host, "get", *words, "--output=json"))

    def node_is_ready(self, host: str, node: str = "") -> bool:
        conditions = self.get(host, "node", node or host)["status"]["conditions"]
        return any((each["type"], each["status"]) == ("Ready", "True") for each in conditions)

    def containers(self, host: str) -> dict[str, tuple[str, int]]:
        """By the name of the container, `sandbox of POD` for those that hold a pod together: its id, and its pid."""
        tasks = self.with_path(host, "ctr", "--namespace=k8s.io", "task", "list").stdout.splitlines()[1:]
        found = {}
        for identity, pid, state in (line.split() for line in tasks):
            if state == "RUNNING":
                about = json.loads(self.with_path(host, "ctr", "--namespace=k8s.io", "c", "info", identity).stdout)
                labels = about["Labels"]
                name = labels.get("io.kubernetes.container.name") or f"sandbox of {labels['io.kubernetes.pod.name']}"
                found[name] = (identity, int(pid))
        return found

    def write_inside(self, host: str, path: str, text: str) -> None:
        place: Path = self.paths.host(host) / path.lstrip("/")
        place.write_text(text)
