"""The binaries of Kubernetes."""

from __future__ import annotations

import re
from pathlib import Path

from protokube.binaries.product import CACHE, NUMBERS, Product, Release

CONTROL_PLANE = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
PROGRAMS = (*CONTROL_PLANE, "kubelet", "kube-proxy", "kubectl")
KUBERNETES = Product(
    name="Kubernetes",
    key="kubernetes",
    programs=PROGRAMS,
    needed=CONTROL_PLANE,
    chosen="PROTOKUBE_KUBERNETES_BIN",
    example="1.34.1",
    ask_version={"kubectl": ("version", "--client")},
    answer=re.compile(rf"\bv{NUMBERS}"),
)


def find(version: str | None, cache: Path = CACHE) -> Release | None:
    """This version of Kubernetes on this machine; without a version, the newest one."""
    return KUBERNETES.find(version, cache)
