"""Manifests of other tools: what is decoded from them, or the one field for which they are refused."""

from __future__ import annotations

from contextlib import suppress

import pytest

from protokube.local.pods.fields import PodProblem
from protokube.local.pods.pods import read_pod
from protokube.local.pods.probestate import HttpGet

KUBEADM_ETCD = """
apiVersion: v1
kind: Pod
metadata:
  annotations:
    kubeadm.kubernetes.io/etcd.advertise-client-urls: https://192.0.2.10:2379
  creationTimestamp: null
  labels:
    component: etcd
    tier: control-plane
  name: etcd
  namespace: kube-system
spec:
  containers:
  - command:
    - etcd
    - --advertise-client-urls=https://192.0.2.10:2379
    - --cert-file=/etc/kubernetes/pki/etcd/server.crt
    - --client-cert-auth=true
    - --data-dir=/var/lib/etcd
    - --listen-metrics-urls=http://127.0.0.1:2381
    - --snapshot-count=10000
    image: registry.k8s.io/etcd:3.5.6-0
    imagePullPolicy: IfNotPresent
    livenessProbe:
      failureThreshold: 8
      httpGet:
        host: 127.0.0.1
        path: /health?exclude=NOSPACE&serializable=true
        port: 2381
        scheme: HTTP
      initialDelaySeconds: 10
      periodSeconds: 10
      timeoutSeconds: 15
    name: etcd
    resources:
      requests:
        cpu: 100m
        memory: 100Mi
    startupProbe:
      failureThreshold: 24
      httpGet:
        host: 127.0.0.1
        path: /health?serializable=false
        port: 2381
        scheme: HTTP
      initialDelaySeconds: 10
      periodSeconds: 10
      timeoutSeconds: 15
    volumeMounts:
    - mountPath: /var/lib/etcd
      name: etcd-data
    - mountPath: /etc/kubernetes/pki/etcd
      name: etcd-certs
  hostNetwork: true
  priority: 2000001000
  priorityClassName: system-node-critical
  securityContext:
    seccompProfile:
      type: RuntimeDefault
  volumes:
  - hostPath:
      path: /etc/kubernetes/pki/etcd
      type: DirectoryOrCreate
    name: etcd-certs
  - hostPath:
      path: /var/lib/etcd
      type: DirectoryOrCreate
    name: etcd-data
status: {}
"""

KUBEADM_APISERVER = """
apiVersion: v1
kind: Pod
metadata: {name: kube-apiserver, namespace: kube-system, labels: {component: kube-apiserver, tier: control-plane}}
spec:
  containers:
  - name: kube-apiserver
    image: registry.k8s.io/kube-apiserver:v1.28.0
    command: [kube-apiserver, --advertise-address=192.0.2.10, --secure-port=6443]
    livenessProbe:
      httpGet: {host: 192.0.2.10, path: /livez, port: 6443, scheme: HTTPS}
      failureThreshold: 8
    readinessProbe:
      httpGet: {host: 192.0.2.10, path: /readyz, port: 6443, scheme: HTTPS}
      periodSeconds: 1
    volumeMounts:
    - {mountPath: /etc/ssl/certs, name: ca-certs, readOnly: true}
  hostNetwork: true
  priorityClassName: system-node-critical
  volumes:
  - {name: ca-certs, hostPath: {path: /etc/ssl/certs, type: DirectoryOrCreate}}
"""

ORIGINAL_ETCD = """
{
  "apiVersion": "v1", "kind": "Pod",
  "metadata": {"name": "etcd-server", "namespace": "kube-system", "creationTimestamp": null,
    "labels": {"k8s-app": "etcd-server"}},
  "spec": {
    "volumes": [
      {"name": "varetcdata", "hostPath": {"path": "/mnt/master-vol-0a1b/var/etcd/data"}},
      {"name": "varlogetcd", "hostPath": {"path": "/var/log/etcd.log"}}],
    "containers": [{
      "name": "etcd-container", "image": "registry.k8s.io/etcd:2.2.1",
      "command": ["/bin/sh", "-c", "/usr/local/bin/etcd 1>>/var/log/etcd.log 2>&1"],
      "ports": [
        {"name": "serverport", "hostPort": 2380, "containerPort": 2380},
        {"name": "clientport", "hostPort": 4001, "containerPort": 4001}],
      "env": [
        {"name": "ETCD_NAME", "value": "etcd-a"},
        {"name": "ETCD_DATA_DIR", "value": "/var/etcd/data"},
        {"name": "ETCD_LISTEN_CLIENT_URLS", "value": "http://0.0.0.0:4001"}],
      "resources": {"requests": {"cpu": "200m"}},
      "volumeMounts": [
        {"name": "varetcdata", "mountPath": "/var/etcd/data"},
        {"name": "varlogetcd", "mountPath": "/var/log/etcd.log"}],
      "livenessProbe": {
        "httpGet": {"path": "/health", "port": 4001, "host": "127.0.0.1"},
        "initialDelaySeconds": 600, "timeoutSeconds": 15}}],
    "hostNetwork": true},
  "status": {}
}
"""


def test_kubeadms_etcd_is_read() -> None:
    pod = read_pod(KUBEADM_ETCD)
    assert pod.key == "kube-system/etcd"
    (container,) = pod.containers
    assert container.command[:2] == ("etcd", "--advertise-client-urls=https://192.0.2.10:2379")
    assert [(mount.host_path, mount.mount_path, mount.kind) for mount in container.mounts] == [
        ("/var/lib/etcd", "/var/lib/etcd", "DirectoryOrCreate"),
        ("/etc/kubernetes/pki/etcd", "/etc/kubernetes/pki/etcd", "DirectoryOrCreate"),
    ]
    assert container.liveness is not None
    assert (container.liveness.failures, container.liveness.timeout, container.liveness.initial_delay) == (8, 15, 10)
    assert isinstance(container.liveness.check, HttpGet)
    assert container.liveness.check.path == "/health?exclude=NOSPACE&serializable=true"
    assert container.startup is not None
    assert container.startup.failures == 24


def test_kubeadms_api_server_is_read() -> None:
    (container,) = read_pod(KUBEADM_APISERVER).containers
    assert container.liveness is not None
    assert container.readiness is not None
    assert isinstance(container.liveness.check, HttpGet)
    assert (container.liveness.check.secure, container.liveness.check.host) == (True, "192.0.2.10")
    assert container.readiness.period == 1
    (certificates,) = container.mounts
    assert certificates.read_only


def test_the_originals_etcd_is_read() -> None:
    pod = read_pod(ORIGINAL_ETCD)
    assert (pod.key, pod.grace, pod.restart_policy) == ("kube-system/etcd-server", 30, "Always")
    (container,) = pod.containers
    assert dict(container.environment)["ETCD_DATA_DIR"] == "/var/etcd/data"
    assert container.command == ("/bin/sh", "-c", "/usr/local/bin/etcd 1>>/var/log/etcd.log 2>&1")
    assert [mount.kind for mount in container.mounts] == ["", ""]
    assert container.liveness is not None
    assert container.liveness.initial_delay == 600


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("  hostNetwork: true\n", "", "spec.hostNetwork is not true"),
        ("  hostNetwork: true\n", "  hostNetwork: true\n  hostIPC: true\n", "spec.hostIPC needs a real kubelet"),
        ("    - etcd\n", "    - 3\n", "spec.containers[0].command holds something that is not a text"),
        ("kind: Pod", "kind: PodList", "kind is 'PodList', not Pod"),
        (
            "      name: etcd-data\n",
            "      name: other\n",
            "spec.containers[0].volumeMounts[0]: there is no volume 'other'",
        ),
        ("        port: 2381\n", "        port: metrics\n", "no port of the container is called 'metrics'"),
        ("      type: DirectoryOrCreate\n", "      type: directory\n", "type is 'directory', not one of"),
        (
            "    name: etcd\n    resources",
            "    name: etcd\n    envFrom: [{}]\n    resources",
            "envFrom needs a real kubelet",
        ),
    ],
)
def test_one_wrong_word_in_a_real_manifest_is_named(old: str, new: str, problem: str) -> None:
    assert old in KUBEADM_ETCD
    with pytest.raises(PodProblem) as found:
        read_pod(KUBEADM_ETCD.replace(old, new, 1))
    assert problem in str(found.value)


def test_half_a_manifest_can_be_a_valid_one_of_another_pod() -> None:
    """Why files that somebody is still writing are not read at all."""
    whole = read_pod(KUBEADM_ETCD)
    found = []
    for cut in range(len(KUBEADM_ETCD)):
        with suppress(PodProblem):
            found.append(read_pod(KUBEADM_ETCD[:cut]))
    assert {half.key for half in found} == {whole.key}
    assert {half.digest for half in found} - {whole.digest}
