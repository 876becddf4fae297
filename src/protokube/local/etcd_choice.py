"""Choose the etcd version of a local cluster: the one in its configuration, or a suitable one on this machine.

An existing cluster keeps its minor version: an older one may not read its data, and a newer one prevents a downgrade.
Which older version a user may choose is decided with the plan (`launch.versions`), which knows what the members run.
A version that is too old for its Kubernetes is used only if the user names it. etcd 3.5.0 to 3.5.2 are never used: they
lose data when they are killed, and a local cloud kills them on purpose.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from protokube.binaries.etcd import ETCD
from protokube.binaries.executables import unpack, which
from protokube.binaries.product import Release
from protokube.config.etcd_versions import etcd_for, too_old
from protokube.errors import ProtokubeError, Refused, TryLater
from protokube.spec.version import DEFAULT, Version, parse

PACKAGES = {"etcd": "etcd-server", "etcdctl": "etcd-client"}
Get = Callable[[str], Release]
"""Downloads or builds a version into the cache."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Etcd:
    """The binaries of one version; they may be in different folders."""

    version: str
    etcd: Path
    etcdctl: Path | None = None
    """None until it is found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """What decides the etcd version of a cluster."""

    spec_version: str = ""
    """The version in the spec; empty if the spec has none."""
    made_with: str = ""
    """The version that an existing cluster was created with; empty for a new cluster."""
    kubernetes: str = ""
    """The version of Kubernetes; empty for a cluster without Kubernetes."""
    planned: bool = False
    """Whether the step from `made_with` to an older version that the user names is planned later, and refused there."""

    @property
    def named(self) -> str:
        """The preferred version, which goes into the complete configuration."""
        return self.spec_version or self.made_with or etcd_for(parse(self.kubernetes) or DEFAULT)


def why_not(version: str, needs: Needs) -> str:
    """Why a version found on this machine does not fit; empty if it fits. Pure."""
    found = _parsed(version)
    if why := why_not_chosen(version, needs):
        return why
    if needs.spec_version or not (needs.made_with or needs.kubernetes):
        return ""
    if needs.made_with:
        before = _parsed(needs.made_with)
        if found < before:  # only a person chooses an older one
            return f"and the cluster was made with {needs.made_with}, which is newer"
        same = found.series == before.series
        return "" if same else f"and the cluster was made with {needs.made_with}"
    kubernetes, named = _parsed(needs.kubernetes), _parsed(needs.named)
    if found.series > named.series:
        return f"and Kubernetes {kubernetes.short} goes with {named.short}"
    return f"and {why}" if (why := too_old(found, kubernetes)) else ""


def why_not_chosen(version: str, needs: Needs) -> str:
    """Why a version is refused even if the user chose it: data at risk, or not the spec's version. Empty if allowed."""
    if why := ETCD.why_not(version):
        return why
    found = _parsed(version)
    if needs.spec_version and found != _parsed(needs.spec_version):
        return f"and the spec says {needs.spec_version}"
    if not needs.made_with:
        return ""
    before = _parsed(needs.made_with)
    if found < before:
        return "" if needs.planned else f"and the cluster was made with {needs.made_with}, which is newer"
    if (found.major, found.minor) not in ((before.major, before.minor), (before.major, before.minor + 1)):
        return f"and the cluster was made with {needs.made_with}: etcd goes up one minor version at a time"
    return ""


def best(found: Iterable[Etcd], needs: Needs) -> tuple[Etcd | None, list[str]]:
    """The best fit, the preferred version if possible; and why the others were rejected. Pure."""
    fitting, passed = [], []
    for each in found:
        if why := why_not(each.version, needs):
            passed.append(f"{each.etcd} is {each.version}, {why}")
        else:
            fitting.append(each)
    named = _parsed(needs.named)

    def nearness(each: Etcd) -> tuple[bool, bool, Version]:
        found = _parsed(each.version)
        return found == named, found.series == named.series, found

    return max(fitting, key=nearness, default=None), passed


def _parsed(text: str) -> Version:
    return parse(text) or Version(0, 0)


def choose(needs: Needs, cache: Path, get: Get) -> Etcd:
    """The etcd to run, downloaded or built if need be. Refused if that is not possible."""
    if not os.environ.get(ETCD.chosen) and (why := why_not_chosen(needs.named, needs)):
        hint = "name another version in the spec, or none"
        raise Refused(f"etcd {needs.named} cannot be used here", saw=f"{needs.named} is asked for, {why}", hint=hint)
    found, passed = at_hand(needs, cache)
    if found is None:
        found, more = _from_debian(cache, needs)
        passed += more
    if found is None:
        found = _obtained(needs, get, passed)
    return _with_client(found, cache)


def at_hand(needs: Needs, cache: Path) -> tuple[Etcd | None, list[str]]:
    """The etcd on this machine that `choose` would take, and why others were rejected; nothing is downloaded."""
    if folder := os.environ.get(ETCD.chosen):
        return _chosen(Path(folder), needs), []
    kept = ETCD.in_cache(needs.named, cache)
    return best([_of(kept)] if kept else _here(cache), needs)  # no need to run the others


def _chosen(folder: Path, needs: Needs) -> Etcd:
    program = folder / "etcd"
    if not program.is_file():
        raise Refused(f"there is no etcd in {folder}", hint=f"correct {ETCD.chosen}, or unset it")
    version = ETCD.version(program)
    if why := why_not_chosen(version, needs):
        raise Refused(f"{program} is {version}, {why}", hint=f"correct {ETCD.chosen}, or unset it")
    return Etcd(version=version, etcd=program)


def _here(cache: Path) -> Iterator[Etcd]:
    """The etcd binaries on this machine that run."""
    for version in ETCD.complete_versions(cache):
        if release := ETCD.in_cache(version, cache):
            yield _of(release)
    for path in (_unpacked("etcd", cache), Path(which("etcd") or "/nowhere/etcd")):
        if path.is_file() and (version := _version(path)):
            yield Etcd(version=version, etcd=path)


def _of(release: Release) -> Etcd:
    return Etcd(version=release.version, etcd=release.programs["etcd"], etcdctl=release.programs["etcdctl"])


def _version(path: Path) -> str:
    try:
        return ETCD.version(path)
    except Refused:
        return ""


def _unpacked(program: str, cache: Path) -> Path:
    return cache / PACKAGES[program] / "usr" / "bin" / program


def _from_debian(cache: Path, needs: Needs) -> tuple[Etcd | None, list[str]]:
    """Unpack Debian's package into the cache; nothing is installed, no service starts."""
    if _unpacked("etcd", cache).is_file():
        return None, []
    try:
        path = unpack(PACKAGES["etcd"], cache) / "usr" / "bin" / "etcd"
        return best([Etcd(version=ETCD.version(path), etcd=path)], needs)
    except ProtokubeError as why:
        return None, [f"Debian's package: {why.message} ({why.saw})" if why.saw else f"Debian's package: {why.message}"]


def _obtained(needs: Needs, get: Get, passed: list[str]) -> Etcd:
    try:
        return _of(get(needs.named))
    except ProtokubeError as why:
        kind = TryLater if isinstance(why, TryLater) else Refused
        reasons = [*passed, f"{why.message} ({why.saw})" if why.saw else why.message]
        raise kind(
            f"there is no etcd that can be used: {needs.named} goes with this cluster",
            saw="\n".join(reasons),
            hint=f"`protokube get etcd {needs.named}` gets it, see its --help; "
            f"or set {ETCD.chosen} to the folder of another etcd to use it anyway",
        ) from why


def _with_client(found: Etcd, cache: Path) -> Etcd:
    """Add the etcdctl next to it, or any other: all versions speak the same API."""
    if found.etcdctl:
        return found
    places = (found.etcd.with_name("etcdctl"), _unpacked("etcdctl", cache), Path(which("etcdctl") or "/nowhere"))
    client = next((each for each in places if each.is_file()), None)
    client = client or unpack(PACKAGES["etcdctl"], cache) / "usr" / "bin" / "etcdctl"
    return Etcd(version=found.version, etcd=found.etcd, etcdctl=client)
