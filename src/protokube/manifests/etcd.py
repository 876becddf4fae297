"""The static pod of an etcd member, and the file that etcd reads when it starts.

The kubelet restarts a pod that changes, so it changes only with the configuration. Founding, joining and continuing
differ only in etcd's file, which is read at startup. Continuing is guarded: with an `initial-cluster` of only itself
and the state `existing`, an etcd whose data has vanished finds no peer and stops, instead of founding a second cluster.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from protokube.config.places import DIRECTORY
from protokube.manifests.text import as_yaml

PKI = DIRECTORY
MANIFESTS = "k8s.io/manifests"
"""Directory on the volume, as in the original."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EtcdPod:
    """What the pods of one etcd cluster have in common."""

    key: str
    manifest: str
    """`etcd` or `etcd-events`: the file is named after it."""
    image: str
    client_port: int
    peer_port: int
    metrics_port: int
    data_dir: str
    """Inside the pod."""
    config_file: str
    environment: dict[str, str]
    cpu_request: str
    memory_request: str

    @property
    def file_name(self) -> str:
        return f"{self.manifest}.manifest"

    @property
    def name(self) -> str:
        return "etcd-server" if self.key == "main" else f"etcd-server-{self.key}"


def pod(etcd: EtcdPod, volume: str, *, settings: dict[str, Any], generation: str, epoch: int) -> str:
    """The manifest; `volume` is where its volume is mounted on the machine.

    `settings` are etcd's as the configuration has them: a change of them restarts etcd, how it starts does not.
    """
    config_directory = str(PurePosixPath(etcd.config_file).parent)
    data = f"{volume}/{etcd.data_dir.lstrip('/')}"
    container = {
        "name": "etcd-container",
        "image": etcd.image,
        "command": ["/usr/local/bin/etcd"],
        "env": [{"name": name, "value": value} for name, value in sorted(etcd.environment.items())],
        "livenessProbe": {
            # not /health: it fails without a quorum, and restarting a member that waits for the others does not help
            "tcpSocket": {"host": "127.0.0.1", "port": etcd.metrics_port},
            "initialDelaySeconds": 15,
            "timeoutSeconds": 15,
            "failureThreshold": 8,
        },
        "ports": [
            {"name": "serverport", "containerPort": etcd.peer_port, "hostPort": etcd.peer_port},
            {"name": "clientport", "containerPort": etcd.client_port, "hostPort": etcd.client_port},
        ],
        "resources": {"requests": {"cpu": etcd.cpu_request, "memory": etcd.memory_request}},
        "volumeMounts": [
            {"name": "varetcdata", "mountPath": etcd.data_dir},
            {"name": "config", "mountPath": config_directory, "readOnly": True},
            {"name": "srvkubernetes", "mountPath": PKI, "readOnly": True},
            {"name": "hosts", "mountPath": "/etc/hosts", "readOnly": True},
        ],
    }
    manifest = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": etcd.name,
            "namespace": "kube-system",
            "labels": {"k8s-app": etcd.name},
            "annotations": {
                "scheduler.alpha.kubernetes.io/critical-pod": "",
                "protokube.io/generation": generation,
                "protokube.io/epoch": str(epoch),
                "protokube.io/settings": digest(settings),
            },
        },
        "spec": {
            "hostNetwork": True,
            "priorityClassName": "system-node-critical",
            "tolerations": [{"key": "CriticalAddonsOnly", "operator": "Exists"}],
            "containers": [container],
            "volumes": [
                {"name": "varetcdata", "hostPath": {"path": data, "type": "DirectoryOrCreate"}},
                {"name": "config", "hostPath": {"path": config_directory, "type": "Directory"}},
                {"name": "srvkubernetes", "hostPath": {"path": PKI, "type": "Directory"}},
                {"name": "hosts", "hostPath": {"path": "/etc/hosts", "type": "File"}},
            ],
        },
    }
    return as_yaml(manifest)


def digest(settings: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(settings, sort_keys=True, default=str).encode()).hexdigest()[:16]


def founding(settings: dict[str, Any], token: str) -> str:
    """etcd's file for a founder: the fixed set of members, `new`, and the token of this creation."""
    return _text({**settings, "initial-cluster-state": "new", "initial-cluster-token": token})


def joining(settings: dict[str, Any], token: str, peers: Sequence[tuple[str, str]]) -> str:
    """etcd's file right after our own add: exactly the members that are listed now, by name and peer URL."""
    listed = ",".join(f"{name}={url}" for name, url in sorted(peers))
    changes = {"initial-cluster": listed, "initial-cluster-state": "existing", "initial-cluster-token": token}
    return _text({**settings, **changes})


def going_on(settings: dict[str, Any], token: str) -> str:
    """etcd's file if data is present: etcd uses its data; without data it must not start at all."""
    only_me = f"{settings['name']}={settings['initial-advertise-peer-urls']}"
    return _text(
        {**settings, "initial-cluster": only_me, "initial-cluster-state": "existing", "initial-cluster-token": token}
    )


def _text(settings: dict[str, Any]) -> str:
    return as_yaml(dict(sorted(settings.items())))
