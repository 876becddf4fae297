"""The DNS server for pods: CoreDNS behind the Service `kube-dns`, at the address that kubelets configure in pods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from protokube.addons.corefile import corefile
from protokube.addons.rbac import API as RBAC
from protokube.addons.value import Addon, Tree
from protokube.spec.version import Version

NAMESPACE, NAME = "kube-system", "coredns"
ROLE = "system:coredns"
LABELS = {"k8s-app": "kube-dns"}
"""The usual label of the cluster's DNS server, whichever server it is."""
ROLE_TAINTS = ("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master")


def cluster_dns(dns: Mapping[str, Any], version: Version) -> Addon | None:
    """None for a provider without manifests of ours: the user supplies it as an add-on."""
    if dns["provider"] != "CoreDNS":
        return None
    return Addon(
        name="cluster-dns",
        objects=(
            _object("v1", "ServiceAccount", NAME),
            _role(),
            _binding(),
            _object("v1", "ConfigMap", NAME, data={"Corefile": corefile(dns)}),
            _deployment(dns),
            _budget(version),
            _service(dns),
        ),
    )


def _object(api_version: str, kind: str, name: str, *, labels: Tree | None = None, **content: Any) -> Tree:
    metadata: Tree = {"name": name, "namespace": NAMESPACE}
    if labels:
        metadata["labels"] = labels
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **content}


def _role() -> Tree:
    reads = ["list", "watch"]
    rules = [
        {"apiGroups": [""], "resources": ["endpoints", "services", "pods", "namespaces"], "verbs": reads},
        {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": reads},
    ]
    return {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRole", "metadata": {"name": ROLE}, "rules": rules}


def _binding() -> Tree:
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": ROLE},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": ROLE},
        "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": NAMESPACE}],
    }


def _deployment(dns: Mapping[str, Any]) -> Tree:
    template: Tree = {"metadata": {"labels": LABELS}, "spec": _pod(dns)}
    if annotations := dns.get("podAnnotations"):
        template["metadata"]["annotations"] = annotations
    spec = {
        "replicas": dns["replicas"],
        # a replica is removed only after its replacement is ready
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}},
        "selector": {"matchLabels": LABELS},
        "template": template,
    }
    return _object("apps/v1", "Deployment", NAME, labels=LABELS, spec=spec)


def _pod(dns: Mapping[str, Any]) -> Tree:
    tolerations = dns.get("tolerations") or [
        {"key": "CriticalAddonsOnly", "operator": "Exists"},
        *({"key": key, "operator": "Exists", "effect": "NoSchedule"} for key in ROLE_TAINTS),
    ]
    spread = {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": LABELS},
    }
    file = {"name": NAME, "items": [{"key": "Corefile", "path": "Corefile"}]}
    pod: Tree = {
        "serviceAccountName": NAME,
        "priorityClassName": "system-cluster-critical",
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "tolerations": tolerations,
        "topologySpreadConstraints": [spread],
        "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
        "dnsPolicy": "Default",  # the machine's name servers: CoreDNS must not query itself
        "containers": [_container(dns)],
        "volumes": [{"name": "config", "configMap": file}],
    }
    if affinity := dns.get("affinity"):
        pod["affinity"] = affinity
    return pod


def _container(dns: Mapping[str, Any]) -> Tree:
    # the protocol is part of the merge key of a port: without it, some API versions cannot merge the list
    ports = [("dns", 53, "UDP"), ("dns-tcp", 53, "TCP"), ("metrics", 9153, "TCP")]
    return {
        "name": NAME,
        "image": dns["image"],
        "args": ["-conf", "/etc/coredns/Corefile"],
        "ports": [{"name": name, "containerPort": port, "protocol": protocol} for name, port, protocol in ports],
        "resources": {
            "requests": {"cpu": dns.get("cpuRequest") or "100m", "memory": dns.get("memoryRequest") or "70Mi"},
            "limits": {"memory": dns.get("memoryLimit") or "170Mi"},
        },
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"add": ["NET_BIND_SERVICE"], "drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
        "livenessProbe": {
            "httpGet": {"path": "/health", "port": 8080},
            "initialDelaySeconds": 60, "timeoutSeconds": 5, "failureThreshold": 5,
        },
        "readinessProbe": {"httpGet": {"path": "/ready", "port": 8181}},
        "volumeMounts": [{"name": "config", "mountPath": "/etc/coredns", "readOnly": True}],
    }  # fmt: skip


def _budget(version: Version) -> Tree:
    api_version = "policy/v1" if version >= (1, 21) else "policy/v1beta1"  # v1beta1 was served up to 1.24
    spec = {"maxUnavailable": 1, "selector": {"matchLabels": LABELS}}
    return _object(api_version, "PodDisruptionBudget", NAME, labels=LABELS, spec=spec)


def _service(dns: Mapping[str, Any]) -> Tree:
    ports = [("dns", 53, "UDP"), ("dns-tcp", 53, "TCP"), ("metrics", 9153, "TCP")]
    spec = {
        "clusterIP": dns["serverIP"],
        "selector": LABELS,
        "ports": [{"name": name, "port": port, "protocol": protocol} for name, port, protocol in ports],
    }
    labels = {**LABELS, "kubernetes.io/cluster-service": "true", "kubernetes.io/name": "CoreDNS"}
    return _object("v1", "Service", "kube-dns", labels=labels, spec=spec)
