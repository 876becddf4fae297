"""Kubernetes' own programs."""

from __future__ import annotations

from pathlib import Path

from protokube.programs.product import CACHE, Product, Release

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
)


def find(version: str | None, cache: Path = CACHE) -> Release | None:
    """This version of Kubernetes, or the newest there is."""
    return KUBERNETES.find(version, cache)
