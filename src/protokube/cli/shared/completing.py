"""Complete a spec for a local cluster, with the versions on this machine."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from protokube.errors import InvalidSpec, Refused

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


def known_configuration(revision: Revision) -> Config | None:
    """The same, or None: one stage of an upgrade has the spec of before with another etcd, which may refuse it."""
    try:
        return complete_revision(revision)
    except InvalidSpec:
        return None


def matching_text(text: str, etcd: str, kubernetes: str) -> str:
    """The text of a spec with these versions where it names others; unchanged where it names none.

    Only these words of the text change, so that comments stay.
    """
    from protokube.spec.parse import read

    name = "spec"
    spec, lines = read([(name, text)]), text.splitlines(keepends=True)
    wanted = {f"etcdClusters.{key}.version": etcd for key in spec.cluster.get("etcdClusters") or {}}
    for path, version in {**wanted, "kubernetesVersion": kubernetes}.items():
        found, place = _value(spec.cluster, path), spec.places.get(path)
        if found and version and found != version and place is not None:
            word = rf"(?<![\w.]){re.escape(found)}(?![\w.])"
            lines[place.line - 1] = re.sub(word, version, lines[place.line - 1])
    return "".join(lines)


def _value(tree: Tree, path: str) -> str:
    value: object = tree
    for name in path.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return str(value or "")
