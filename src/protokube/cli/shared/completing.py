"""Complete a spec for a local cluster, with the versions on this machine."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from protokube.errors import Refused

if TYPE_CHECKING:
    from protokube.config.complete import Config
    from protokube.launch.revisions import Revision
    from protokube.spec.decode import Tree
    from protokube.spec.parse import Spec


def complete_here(spec: Spec, etcd: str, kubernetes: str) -> Config:
    """Complete a spec with the versions on this machine, because flags depend on the version that runs.

    An empty `kubernetes` means a cluster without Kubernetes.
    """
    from protokube.config.complete import complete
    from protokube.launch.cloud import cloud_config

    versions = {"kubernetesVersion": kubernetes} if kubernetes else {}
    clusters = spec.cluster.get("etcdClusters") or {"main": {}}
    here = {"etcdClusters": {name: {"version": etcd, **each} for name, each in clusters.items()}}
    config = complete(replace(spec, cluster={**versions, **spec.cluster, **here}), without_kubernetes=not kubernetes)
    if (cloud := cloud_config(config).kind) != "local":
        raise Refused(f"the spec is for {cloud}", want="cloud: local", hint="clouds are not built yet: docs/limits.md")
    return config


def complete_revision(revision: Revision) -> Config:
    """Complete the spec of a revision again, to know the reason for each value."""
    from protokube.spec.parse import read

    spec = read([(f"revision {revision.number}", revision.spec)])
    clusters = spec.cluster.get("etcdClusters") or {"main": {}}
    # The versions that it ran, whatever its spec names: one stage of an upgrade has those of two specs.
    versions: Tree = {"etcdClusters": {name: {**each, "version": revision.etcd} for name, each in clusters.items()}}
    if revision.kubernetes:
        versions["kubernetesVersion"] = revision.kubernetes
    return complete_here(replace(spec, cluster={**spec.cluster, **versions}), revision.etcd, revision.kubernetes)
