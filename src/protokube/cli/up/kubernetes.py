"""Which Kubernetes `up` brings up: what is on this machine, else the official release, else none, or a build.

A version that somebody named is needed: without it, `up` ends before anything is written. One that nobody named is not:
where it cannot be had, `up` says so and goes on with etcd alone. An existing cluster keeps what it has.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from protokube.cli.shared.completing import complete_here
from protokube.errors import InvalidRequest, Refused, TryLater

if TYPE_CHECKING:
    from protokube.binaries.product import Release
    from protokube.binaries.progress import ProgressReporter
    from protokube.cli.up.existing import ClusterShape
    from protokube.spec.parse import Spec

NONE, BUILD = "none", "build"
MIRRORS = "PROTOKUBE_KUBERNETES_MIRROR"
PROCESSOR_MINUTES = 20
"""Of a build from Go modules, with nothing in Go's caches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kubernetes:
    """A version, and where its programs come from."""

    version: str = ""
    """Empty: none."""
    here: Release | None = None
    """Its programs, if they are on this machine."""
    build: bool = False
    mirrors: tuple[str, ...] = ()
    """Where to download it; empty for the official place."""
    missing: str = ""
    """Why there is none, if nobody said that there should be none; in one line."""

    @property
    def later(self) -> str:
        """The version that would be added later, because it cannot be had now; "" if none was wanted."""
        from protokube.spec.version import DEFAULT

        return str(DEFAULT) if self.missing else ""

    def __str__(self) -> str:
        if self.here:
            return f"Kubernetes {self.version}"
        if self.build:
            return f"Kubernetes {self.version}, to be built with Go in about {minutes_to_build()} minutes"
        if self.version:
            return f"Kubernetes {self.version}, to be downloaded"
        return f"no Kubernetes: {self.missing or 'etcd and names alone'}"


def choose_kubernetes(
    spec: Spec, before: ClusterShape | None, option: str, cache: Path, progress: ProgressReporter,
    *, needed: bool, dry_run: bool,
) -> Kubernetes:  # fmt: skip
    """`needed`: even without a version, `up` must not go on without Kubernetes."""
    from protokube.binaries.kubernetes import find

    if option == NONE:
        if needed:
            hint = "leave out --kubelet, or name a version with --kubernetes"
            raise Refused("there is no kubelet in a cluster without Kubernetes", hint=hint, code="needs-kubernetes")
        return Kubernetes()
    version = named_version(spec, before, option)
    if found := find(version or None, cache):
        return Kubernetes(version=found.version, here=found)
    if dry_run and (version or needed):
        return Kubernetes(version=version, build=option == BUILD)
    if version:
        check_spec(spec, version)  # report problems of the spec before any download
    if option == BUILD:
        return Kubernetes(version=version, build=True)
    progress.say("Kubernetes: can its releases be downloaded?")
    if version or needed:
        has = before is not None and before.kubernetes not in ("", NONE)
        return _reached(version, without="" if has else "; `up --kubernetes none` goes without")
    if (chosen := newest_release()).missing:
        return chosen
    check_spec(spec, chosen.version)
    if dry_run:
        return chosen
    try:
        return Kubernetes(version=chosen.version, here=bring(chosen, cache, progress))
    except (TryLater, InvalidRequest) as why:  # InvalidRequest: the place answers, and has no such version
        return Kubernetes(missing=why.in_one_line())


def newest_release() -> Kubernetes:
    """The release that can be downloaded now; the reason in `missing` if none can be."""
    try:
        return _reached("")
    except (TryLater, Refused) as why:  # Refused: there is none for the processor of this machine
        return Kubernetes(missing=why.in_one_line())


def named_version(spec: Spec, before: ClusterShape | None, option: str) -> str:
    """The version that somebody named; for a build, the one that we test if nobody did. Pure."""
    from protokube.binaries.product import VERSION
    from protokube.nearest import near
    from protokube.spec.version import DEFAULT, normal, parse

    text = str(spec.cluster.get("kubernetesVersion") or "")
    in_spec = normal(text) if text else ""
    if option == BUILD:
        kept = before.kubernetes if before and before.kubernetes != NONE else ""
        return in_spec or kept or str(DEFAULT)
    asked = normal(option) if option else ""
    if asked and not VERSION.match(asked):
        raise InvalidRequest(
            f"{option!r} is not a version of Kubernetes",
            want=f"a version such as {DEFAULT}, `build` or `none`",
            hint=near(option, (NONE, BUILD)),
        )
    if in_spec and asked and parse(in_spec) != parse(asked):
        raise Refused(f"the spec is for Kubernetes {text}", saw=f"--kubernetes {option}", hint="leave out one of them")
    return asked or in_spec


def check_spec(spec: Spec, version: str) -> None:
    """Raises what is wrong with the spec for this version."""
    from protokube.config.etcd_versions import etcd_for
    from protokube.spec.version import DEFAULT, parse

    complete_here(spec, etcd_for(parse(version) or DEFAULT), version)


def _reached(version: str, without: str = "") -> Kubernetes:
    """TryLater if no place answers within five seconds. `without`: what its hint adds about going without."""
    from protokube.binaries.kubernetes import KUBERNETES
    from protokube.binaries.mirrors import architecture
    from protokube.binaries.release import look
    from protokube.spec.version import DEFAULT

    architecture(KUBERNETES.name)  # its refusal comes before any download
    try:
        seen = look(DEFAULT.short, os.environ.get(MIRRORS, "").split())
    except TryLater as why:
        if not version:
            raise
        raise TryLater(
            f"there is no Kubernetes {version} on this machine, and it cannot be downloaded", saw=why.saw,
            hint=f"`protokube get kubernetes {version}` takes it from a folder (--from), from a mirror (--mirror), or "
            f"builds it (--build), in about {minutes_to_build()} minutes{without}",
        ) from why  # fmt: skip
    return Kubernetes(version=version or seen.newest or str(DEFAULT), mirrors=seen.mirrors)


def bring(chosen: Kubernetes, cache: Path, progress: ProgressReporter) -> Release | None:
    """Have the programs in the cache."""
    from protokube.binaries.kubernetes import KUBERNETES
    from protokube.binaries.obtain import Origin, obtain
    from protokube.signals import ending_like_ctrl_c

    if chosen.here or not chosen.version:
        return chosen.here
    with ending_like_ctrl_c():
        if chosen.build:
            from protokube.binaries.gomodules import build_from_modules
            from protokube.binaries.sources import KUBERNETES_SOURCE

            return build_from_modules(KUBERNETES_SOURCE, chosen.version, cache, progress)
        return obtain(KUBERNETES, chosen.version, cache, Origin(mirrors=chosen.mirrors), progress)


def minutes_to_build(processors: int | None = None) -> int:
    """On so many processors; by default those that we may use."""
    return max(3, round(PROCESSOR_MINUTES / (processors or len(os.sched_getaffinity(0)))))


def offered_versions(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    """Shell completion: versions on this machine, and the words."""
    from protokube.binaries.kubernetes import KUBERNETES
    from protokube.binaries.product import CACHE

    return [each for each in (*KUBERNETES.complete_versions(CACHE), BUILD, NONE) if each.startswith(incomplete)]
