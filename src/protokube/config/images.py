"""Versions and images of all components, by Kubernetes version."""

from __future__ import annotations

from protokube.config.draft import Draft
from protokube.spec.version import Version

REGISTRY = "registry.k8s.io"

PAUSE = {
    (1, 20): "3.2", (1, 21): "3.4.1", (1, 22): "3.5", (1, 23): "3.6", (1, 24): "3.7", (1, 25): "3.8", (1, 26): "3.9",
    (1, 31): "3.10", (1, 34): "3.10.1", (1, 36): "3.10.2",
}  # fmt: skip
COREDNS = {
    (1, 20): "1.7.0", (1, 21): "v1.8.0", (1, 22): "v1.8.4", (1, 23): "v1.8.6", (1, 25): "v1.9.3", (1, 27): "v1.10.1",
    (1, 29): "v1.11.1", (1, 31): "v1.11.3", (1, 33): "v1.12.0", (1, 34): "v1.12.1",
    (1, 36): "v1.14.2", (1, 37): "v1.14.6",
}  # fmt: skip
CONTAINERD = {(1, 20): "1.6.36", (1, 26): "1.7.28", (1, 31): "2.1.4"}
"""1.26 and later speak CRI v1 only; 1.31 and later are tested upstream with containerd 2."""


def by_version(table: dict[tuple[int, int], str], version: Version) -> str:
    """The newest entry that is not newer than this version; the oldest for anything older."""
    fitting = [entry for series, entry in table.items() if series <= (version.major, version.minor)]
    return fitting[-1] if fitting else next(iter(table.values()))


def registry(cluster: Draft) -> tuple[str, tuple[str, ...]]:
    """The registry of images, and the fields that it comes from."""
    assets = cluster.get("assets") or {}
    for name in ("containerRegistry", "containerProxy"):
        if assets.get(name):
            return str(assets[name]).rstrip("/"), (cluster.at(f"assets.{name}"),)
    return REGISTRY, ()


def image(cluster: Draft, name: str, tag: str) -> tuple[str, tuple[str, ...]]:
    """An image by name and tag, and the fields it is derived from besides the version."""
    host, of = registry(cluster)
    return f"{host}/{name}:{tag}", of
