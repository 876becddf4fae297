"""Which etcd a local cluster runs: the one that its configuration names, or what is on this machine and fits.

A cluster that is there stays with its minor version: an older one may not read its data, and a newer one leaves no way
back. One that is too old for its Kubernetes is taken only where the user names it; etcd 3.5.0 to 3.5.2, which lose data
when they are killed, never: being killed is what a local cloud is for.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from protokube.binaries.etcd import ETCD
from protokube.binaries.product import Release
from protokube.config.etcd_versions import etcd_for, too_old
from protokube.errors import ProtokubeError, Refused, TryLater
from protokube.local.base.executables import unpack, which
from protokube.spec.version import DEFAULT, Version, parse

PACKAGES = {"etcd": "etcd-server", "etcdctl": "etcd-client"}
Get = Callable[[str], Release]
"""Brings a version into the cache, from wherever it is to be had."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Etcd:
    """Programs of one version; both may lie in different folders."""

    version: str
    etcd: Path
    etcdctl: Path | None = None
    """None: it is still to be found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What a cluster needs of its etcd."""

    said: str = ""
    """The version in the spec."""
    made_with: str = ""
    """The version of a cluster that is there."""
    kubernetes: str = ""
    """The version of Kubernetes, if it runs one."""

    @property
    def named(self) -> str:
        """What the complete configuration names, if nothing on this machine is in its way."""
        return self.said or self.made_with or etcd_for(parse(self.kubernetes) or DEFAULT)


def why_not(version: str, wish: Wish) -> str:
    """Why a version that we came across is not the one, if so. Pure."""
    found = _parsed(version)
    if why := why_not_chosen(version, wish):
        return why
    if wish.said or not (wish.made_with or wish.kubernetes):
        return ""
    if wish.made_with:
        same = found.series == _parsed(wish.made_with).series
        return "" if same else f"and the cluster was made with {wish.made_with}"
    kubernetes, named = _parsed(wish.kubernetes), _parsed(wish.named)
    if found.series > named.series:
        return f"and Kubernetes {kubernetes.short} goes with {named.short}"
    return f"and {why}" if (why := too_old(found, kubernetes)) else ""


def why_not_chosen(version: str, wish: Wish) -> str:
    """Why this version is not used although the user names its folder, if so: data is at stake, or the spec differs."""
    if why := ETCD.why_not(version):
        return why
    found = _parsed(version)
    if wish.said and found != _parsed(wish.said):
        return f"and the spec says {wish.said}"
    if not wish.made_with:
        return ""
    before = _parsed(wish.made_with)
    if found < before:
        return f"and the cluster was made with {wish.made_with}, which is newer"
    if (found.major, found.minor) not in ((before.major, before.minor), (before.major, before.minor + 1)):
        return f"and the cluster was made with {wish.made_with}: etcd goes up one minor version at a time"
    return ""


def best(found: Iterable[Etcd], wish: Wish) -> tuple[Etcd | None, list[str]]:
    """The one to take, the named one if possible; and why each other one that was passed over is not it. Pure."""
    fitting, passed = [], []
    for each in found:
        if why := why_not(each.version, wish):
            passed.append(f"{each.etcd} is {each.version}, {why}")
        else:
            fitting.append(each)
    named = _parsed(wish.named)

    def nearness(each: Etcd) -> tuple[bool, bool, Version]:
        found = _parsed(each.version)
        return found == named, found.series == named.series, found

    return max(fitting, key=nearness, default=None), passed


def _parsed(text: str) -> Version:
    return parse(text) or Version(0, 0)


def choose(wish: Wish, cache: Path, get: Get) -> Etcd:
    """The etcd to run. Refused if there is none that may be used, and none is to be had."""
    if folder := os.environ.get(ETCD.chosen):
        return _chosen(Path(folder), wish, cache)
    if why := why_not_chosen(wish.named, wish):
        hint = "name another version in the spec, or none"
        raise Refused(f"etcd {wish.named} cannot be used here", saw=f"{wish.named} is asked for, {why}", hint=hint)
    kept = ETCD.in_cache(wish.named, cache)
    found, passed = best([_of(kept)] if kept else _here(cache), wish)  # no other is asked for its version then
    if found is None:
        found, more = _from_debian(cache, wish)
        passed += more
    if found is None:
        found = _gotten(wish, get, passed)
    return _with_client(found, cache)


def _chosen(folder: Path, wish: Wish, cache: Path) -> Etcd:
    program = folder / "etcd"
    if not program.is_file():
        raise Refused(f"there is no etcd in {folder}", hint=f"correct {ETCD.chosen}, or unset it")
    version = ETCD.version(program)
    if why := why_not_chosen(version, wish):
        raise Refused(f"{program} is {version}, {why}", hint=f"correct {ETCD.chosen}, or unset it")
    return _with_client(Etcd(version=version, etcd=program), cache)


def _here(cache: Path) -> Iterator[Etcd]:
    """What is on this machine already, and runs."""
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


def _from_debian(cache: Path, wish: Wish) -> tuple[Etcd | None, list[str]]:
    """Of Debian's package; nothing is installed, no service starts."""
    if _unpacked("etcd", cache).is_file():
        return None, []
    try:
        path = unpack(PACKAGES["etcd"], cache) / "usr" / "bin" / "etcd"
        return best([Etcd(version=ETCD.version(path), etcd=path)], wish)
    except ProtokubeError as why:
        return None, [f"Debian's package: {why.message} ({why.saw})" if why.saw else f"Debian's package: {why.message}"]


def _gotten(wish: Wish, get: Get, passed: list[str]) -> Etcd:
    try:
        return _of(get(wish.named))
    except ProtokubeError as why:
        kind = TryLater if isinstance(why, TryLater) else Refused
        reasons = [*passed, f"{why.message} ({why.saw})" if why.saw else why.message]
        raise kind(
            f"there is no etcd that can be used: {wish.named} goes with this cluster",
            saw="\n".join(reasons),
            hint=f"`protokube get etcd {wish.named}` gets it, see its --help; "
            f"or set {ETCD.chosen} to the folder of one that is to be taken all the same",
        ) from why


def _with_client(found: Etcd, cache: Path) -> Etcd:
    """With the etcdctl that lies beside it, or any: all speak the same language."""
    if found.etcdctl:
        return found
    places = (found.etcd.with_name("etcdctl"), _unpacked("etcdctl", cache), Path(which("etcdctl") or "/nowhere"))
    client = next((each for each in places if each.is_file()), None)
    client = client or unpack(PACKAGES["etcdctl"], cache) / "usr" / "bin" / "etcdctl"
    return Etcd(version=found.version, etcd=found.etcd, etcdctl=client)
