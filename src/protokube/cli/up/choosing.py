"""The inputs of `protokube up`: the user's spec or a default spec, and the versions of etcd and CoreDNS."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from protokube.cli.shared.completing import complete_here
from protokube.errors import Problem, ProtokubeError, Refused

if TYPE_CHECKING:
    from protokube.binaries.product import Release
    from protokube.binaries.progress import ProgressReporter
    from protokube.cli.shared.inputs import Texts
    from protokube.cli.up.existing import ClusterShape
    from protokube.config.complete import Config
    from protokube.local.etcd_choice import Etcd
    from protokube.spec.parse import Spec


def read_spec(file: Path) -> tuple[Spec, Texts]:
    """Read the user's spec."""
    from protokube.cli.shared.inputs import read_specs
    from protokube.spec.parse import read

    texts = read_specs((str(file),))
    return read(texts), texts


def read_default_spec(lines: str) -> tuple[Spec, Texts]:
    """Read the default spec."""
    from protokube.spec.parse import read

    texts = [("(the spec of `protokube up`)", lines)]
    return read(texts), texts


def find_etcd(
    spec: Spec, before: ClusterShape | None, kubernetes: str, progress: ProgressReporter, *, later: str = ""
) -> Etcd:
    """The etcd binaries, downloaded or built if need be; all etcd clusters of one machine run the same version.

    `later`: the Kubernetes that is to be added to a new cluster; its etcd is preferred, since a cluster keeps its own.
    """
    from protokube.binaries.etcd import ETCD
    from protokube.binaries.obtain import download_or_build
    from protokube.local.bringup import CACHE
    from protokube.local.etcd_choice import Needs, choose

    clusters = spec.cluster.get("etcdClusters") or {}
    versions = sorted({str(each["version"]) for each in clusters.values() if each.get("version")})
    if len(versions) > 1:
        raise Refused(
            "the etcd clusters of a machine run one version",
            saw=f"{' and '.join(versions)} in the spec",
            hint="name one",
        )
    needs = Needs(
        spec_version="".join(versions), made_with=before.etcd if before else "", kubernetes=kubernetes,
        planned=before is not None and before.recorded,
    )  # fmt: skip
    complete_here(spec, needs.named, kubernetes)  # report problems of the spec before any download
    mirrors = os.environ.get("PROTOKUBE_ETCD_MIRROR", "").split()

    def get(version: str) -> Release:
        return download_or_build(ETCD, version, CACHE, mirrors, progress)

    if later and before is None:
        try:
            return choose(replace(needs, kubernetes=later), CACHE, get)
        except ProtokubeError as why:
            progress.note(f"etcd for Kubernetes {later} cannot be had: {why.in_one_line()}")
    return choose(needs, CACHE, get)


def find_coredns(config: Config, progress: ProgressReporter, *, build: bool = False) -> Path | None:
    """CoreDNS in the version of the image's tag, downloaded if need be; None, with a warning, if that fails.

    `build`: who has Kubernetes built does not mind that this takes a minute more.
    """
    from protokube.binaries.coredns import COREDNS
    from protokube.binaries.obtain import download, download_or_build
    from protokube.cli.shared.options import show_warnings
    from protokube.images.clusterdns import version_in
    from protokube.launch.cloud import images
    from protokube.local.bringup import CACHE

    image = images(config).core_dns
    if not image:
        return None
    if os.environ.get(COREDNS.chosen) and (own := COREDNS.find(None, CACHE)):
        return own.programs["coredns"]
    version = version_in(image) or COREDNS.example
    try:
        mirrors = os.environ.get("PROTOKUBE_COREDNS_MIRROR", "").split()
        get = download_or_build if build else download
        found = COREDNS.find(version, CACHE) or get(COREDNS, version, CACHE, mirrors, progress)
    except ProtokubeError as why:
        message = f"CoreDNS {version} is not available; {without_coredns(CACHE)}: {why.message}"
        hint = f"`protokube get coredns {version} --build` builds it here; then run `up` again"
        show_warnings([Problem(path="clusterDNS.image", message=message, hint=hint)])
        return None
    return found.programs["coredns"]


def without_coredns(cache: Path) -> str:
    """What pods have instead of CoreDNS."""
    from protokube.images.clusterdns import PACKAGE
    from protokube.images.packages import unpack_whole

    try:
        unpack_whole(PACKAGE, cache)
    except (ProtokubeError, OSError):
        return "its substitute is not either, so pods resolve no names"
    return "a substitute runs that resolves only Services"


def default_spec(name: str, masters: int, events: bool) -> str:
    """A default spec without versions: those on this machine are used."""
    clusters = "".join(f"  - {{name: {key}}}\n" for key in ("main", "events")[: 1 + events])
    return (
        "apiVersion: protokube.io/v1alpha1\nkind: Cluster\n"
        f"metadata: {{name: {name}}}\nspec:\n  cloud: local\n  masters: {masters}\n  etcdClusters:\n{clusters}"
    )
