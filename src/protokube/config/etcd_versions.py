"""Which version of etcd goes with which Kubernetes."""

from __future__ import annotations

from protokube.config.images import by_version
from protokube.spec.version import Version

ETCD = {(1, 20): "3.4.13", (1, 22): "3.5.24", (1, 34): "3.6.8"}
"""As Kubernetes' own releases have them: there are images of these. Never 3.5.0 to 3.5.2, which corrupt data."""
ASKS_FOR_PROGRESS = Version(1, 31)
"""Since then, API servers answer lists from their cache, and ask etcd how far their watch is."""
ANSWERS_PROGRESS = {(3, 4): 31, (3, 5): 13}
"""Patch releases since which etcd's answer to that can be relied on, as API servers judge it; 3.6 always could."""


def etcd_for(kubernetes: Version) -> str:
    return by_version(ETCD, kubernetes)


def too_old(etcd: Version, kubernetes: Version) -> str:
    """What a Kubernetes misses at an etcd that is too old for it, if so."""
    if kubernetes < ASKS_FOR_PROGRESS or etcd.series >= (3, 6):
        return ""
    since = ANSWERS_PROGRESS.get((etcd.major, etcd.minor))
    if since is not None and etcd.patch >= since:
        return ""
    return (
        f"etcd {etcd} does not answer progress requests, which Kubernetes {kubernetes.short} makes: "
        "watches end with `Too large resource version`"
    )
