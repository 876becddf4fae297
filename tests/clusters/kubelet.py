"""A local cluster whose hosts run the real kubelet on containerd, for tests with real Kubernetes."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from clusters.real import RealCluster
from protokube.binaries.kubernetes import find
from protokube.config.images import PAUSE, by_version
from protokube.local.bringup import CACHE
from protokube.spec.version import parse

PKI = "/srv/kubernetes"


class KubeletCluster(RealCluster):
    """Brought up by `up --kubelet`; everything else is a cluster like any other."""

    programs, pause = "", ""
    """Where a host finds programs, and the image that is on every host."""

    def up_with_kubelet(self, masters: int = 1, **fields: Any) -> KubeletCluster:
        """`fields` are more of the spec."""
        kubernetes = find(None, CACHE)
        assert kubernetes is not None, "no Kubernetes on this machine: `scripts/kubernetes` has it made"
        spec = self.write_spec(masters=masters, **fields)
        self.up(str(spec), "--kubernetes", kubernetes.version, "--kubelet", "--timeout", "400")
        spec.unlink()
        self.learn(kubernetes.version)
        return self

    def learn(self, release: str) -> None:
        """Where its hosts have their programs, and which image."""
        self.programs = self.template("master-a")["path"]
        version = parse(release)
        assert version is not None
        self.pause = f"registry.k8s.io/pause:{by_version(PAUSE, version)}"

    def with_path(self, host: str, *words: str) -> subprocess.CompletedProcess[str]:
        return self.inside(host, "env", f"PATH={self.programs}", *words)

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
                about = self.with_path(host, "ctr", "--namespace=k8s.io", "c", "info", identity).stdout
                if not about:  # it went meanwhile
                    continue
                labels = json.loads(about)["Labels"]
                name = labels.get("io.kubernetes.container.name") or f"sandbox of {labels['io.kubernetes.pod.name']}"
                found[name] = (identity, int(pid))
        return found

    def write_inside(self, host: str, path: str, text: str) -> None:
        place: Path = self.paths.host(host) / path.lstrip("/")
        place.write_text(text)
