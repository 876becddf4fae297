"""What `protokube up` goes by: the user's spec or a few lines for what is here, and which Kubernetes."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from protokube.errors import Problem, ProtokubeError, Refused

if TYPE_CHECKING:
    from protokube.binaries.product import Release
    from protokube.binaries.telling import ProgressReporter
    from protokube.cli.shared.inputs import Texts
    from protokube.cli.up.before import Made
    from protokube.config.complete import Config
    from protokube.local.etcd_choice import Etcd
    from protokube.spec.parse import Spec


def need_kubernetes(found: Release | None, *, kubelet: bool) -> None:
    if not kubelet:
        return
    if found is None:
        raise Refused("there is no Kubernetes on this machine to take a kubelet from", hint="protokube get kubernetes")
    if "kubelet" not in found.programs:
        raise Refused(f"{found.folder} has no kubelet", hint="`protokube get kubernetes` brings all of its programs")


def read_spec(file: Path) -> tuple[Spec, Texts]:
    """What the user wrote."""
    from protokube.cli.shared.inputs import read_specs
    from protokube.spec.parse import read

    texts = read_specs((str(file),))
    return read(texts), texts


def read_lines(lines: str) -> tuple[Spec, Texts]:
    """The few lines that stand for a spec."""
    from protokube.spec.parse import read

    texts = [("(the spec of `protokube up`)", lines)]
    return read(texts), texts


def find_kubernetes(spec: Spec | None, release: str) -> Release | None:
    """The programs that are here: of the release that was asked for, of the spec's, or the newest."""
    from protokube.binaries.kubernetes import find
    from protokube.local.bringup import CACHE
    from protokube.spec.version import parse

    if release == "none":
        return None
    said = spec.cluster.get("kubernetesVersion") if spec else None
    if said and release and parse(said) != parse(release):
        raise Refused(f"the spec is for Kubernetes {said}", saw=f"--kubernetes {release}", hint="leave out one of them")
    wanted = release or said
    found = find(wanted, CACHE)
    if found is None and wanted:
        hint = f"`protokube get kubernetes {wanted}` fetches it; --kubernetes none goes without"
        raise Refused(f"there is no Kubernetes {wanted} on this machine", hint=hint)
    return found


def find_etcd(spec: Spec, before: Made | None, kubernetes: str, progress: ProgressReporter) -> Etcd:
    """The programs that are here, or are to be had; all etcd clusters of one machine run the same ones."""
    from protokube.binaries.etcd import ETCD
    from protokube.binaries.obtain import download_or_build
    from protokube.local.bringup import CACHE
    from protokube.local.etcd_choice import Wish, choose

    clusters = spec.cluster.get("etcdClusters") or {}
    said = sorted({str(told["version"]) for told in clusters.values() if told.get("version")})
    if len(said) > 1:
        raise Refused(
            "the etcd clusters of a machine run one version", saw=f"{' and '.join(said)} in the spec", hint="name one"
        )
    wish = Wish(said="".join(said), made_with=before.etcd if before else "", kubernetes=kubernetes)
    complete_here(spec, wish.named, kubernetes)  # what is wrong with the spec is told before anything is fetched
    mirrors = os.environ.get("PROTOKUBE_ETCD_MIRROR", "").split()
    return choose(wish, CACHE, lambda version: download_or_build(ETCD, version, CACHE, mirrors, progress))


def find_coredns(config: Config, progress: ProgressReporter) -> Path | None:
    """The version that the image's name says, downloaded if need be; None, and a warning, if it is not to be had."""
    from protokube.binaries.coredns import COREDNS
    from protokube.binaries.obtain import download
    from protokube.cli.shared.options import show_warnings
    from protokube.local.bringup import CACHE
    from protokube.local.image.clusterdns import version_in

    dns = config.cluster["clusterDNS"]
    if dns["provider"] != "CoreDNS":
        return None
    if os.environ.get(COREDNS.chosen) and (own := COREDNS.find(None, CACHE)):
        return own.programs["coredns"]
    version = version_in(dns["image"]) or COREDNS.example
    try:
        mirrors = os.environ.get("PROTOKUBE_COREDNS_MIRROR", "").split()
        found = COREDNS.find(version, CACHE) or download(COREDNS, version, CACHE, mirrors, progress)
    except ProtokubeError as why:
        message = f"a stand-in for CoreDNS {version} knows the addresses of Services, and nothing else: {why.message}"
        hint = f"`protokube get coredns {version} --build` makes it here; then `up` anew"
        show_warnings([Problem(path="clusterDNS.image", message=message, hint=hint)])
        return None
    return found.programs["coredns"]


def complete_here(spec: Spec, etcd: str, kubernetes: str) -> Config:
    """What a spec leaves open is as this machine has it: it runs these versions, and must be told what they understand.

    No version of Kubernetes means that there is none here.
    """
    from protokube.config.complete import complete

    versions = {"kubernetesVersion": kubernetes} if kubernetes else {}
    clusters = spec.cluster.get("etcdClusters") or {"main": {}}
    here = {"etcdClusters": {name: {"version": etcd, **told} for name, told in clusters.items()}}
    config = complete(replace(spec, cluster={**versions, **spec.cluster, **here}), without_kubernetes=not kubernetes)
    if (cloud := config.cluster["cloud"]) != "local":
        raise Refused(f"the spec is for {cloud}", want="cloud: local", hint="clouds are not built yet: docs/limits.md")
    return config


def few_lines(name: str, masters: int, events: bool) -> str:
    """A spec that leaves the versions to what is here."""
    clusters = "".join(f"  - {{name: {key}}}\n" for key in ("main", "events")[: 1 + events])
    return (
        "apiVersion: protokube.io/v1alpha1\nkind: Cluster\n"
        f"metadata: {{name: {name}}}\nspec:\n  cloud: local\n  masters: {masters}\n  etcdClusters:\n{clusters}"
    )
