"""The etcd version for each Kubernetes version."""

from __future__ import annotations

from protokube.config.images import by_version
from protokube.spec.version import Version

ETCD = {(1, 20): "3.4.13", (1, 22): "3.5.24", (1, 34): "3.6.8"}
"""The versions that Kubernetes releases use, so that images exist. Never 3.5.0 to 3.5.2, which can corrupt data."""
ASKS_FOR_PROGRESS = Version(1, 31)
"""Since this version, API servers serve consistent lists from their cache, which needs progress requests to etcd."""
ANSWERS_PROGRESS = {(3, 4): 31, (3, 5): 13}
"""First patch releases whose progress replies API servers rely on; 3.6 supports them from the start."""


def etcd_for(kubernetes: Version) -> str:
    return by_version(ETCD, kubernetes)


def too_old(etcd: Version, kubernetes: Version) -> str:
    """What this etcd lacks for this Kubernetes; "" if nothing."""
    if kubernetes < ASKS_FOR_PROGRESS or etcd.series >= (3, 6):
        return ""
    since = ANSWERS_PROGRESS.get((etcd.major, etcd.minor))
    if since is not None and etcd.patch >= since:
        return ""
    return (
        f"etcd {etcd} does not answer progress requests, which Kubernetes {kubernetes.short} makes: "
        "watches end with `Too large resource version`"
    )
