"""Resolve what a machine needs into assets: once, on the operator's machine, when it plans.

The digests travel in the launch data, and machines believe nothing else. So they come from where the project publishes
its releases, or from files of this machine, and never from a mirror: a mirror is only a place that may have the bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

from protokube.binaries.download import Absent, Unreachable, size_at
from protokube.binaries.kubernetes import KUBERNETES
from protokube.binaries.mirrors import ARCHITECTURES, checked, digest, digest_at
from protokube.binaries.progress import ProgressReporter
from protokube.errors import InvalidRequest, ProtokubeError, Refused, TryLater
from protokube.launch.published import PROJECTS, Wanted
from protokube.nodeup.values import Asset


@dataclass(frozen=True, slots=True, kw_only=True)
class Origins:
    """Where releases are."""

    releases: Mapping[str, str] = field(default_factory=dict)
    """By project: where it publishes, if not where we know it does. Its checksums are believed."""
    mirrors: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By project: where else its files are; asked before the release itself."""
    cache: Path | None = None
    """Our cache of programs; what `protokube get` put there is used as it is, for machines of this processor."""

    def check(self) -> None:
        """InvalidRequest for an unknown project, or what is not a URL."""
        for project, urls in [*((each, (url,)) for each, url in self.releases.items()), *self.mirrors.items()]:
            if project not in PROJECTS:
                raise InvalidRequest(f"there is no project {project!r} to download from", want=", ".join(PROJECTS))
            for url in urls:
                checked(url, "https://mirror.example.com/releases")
                if "@" in urlsplit(url).netloc:
                    message = f"the URL of a place with {project} has a user or a password in it"
                    raise InvalidRequest(message, hint="URLs become launch data, which every process can read")


def architecture(processor: str) -> str:
    """`amd64` for `x86_64`."""
    if processor not in ARCHITECTURES:
        raise InvalidRequest(f"there are no releases for {processor!r}", want=", ".join(ARCHITECTURES))
    return ARCHITECTURES[processor]


def resolve(
    wanted: Sequence[Wanted], processor: str, here: str, origins: Origins, progress: ProgressReporter
) -> tuple[Asset, ...]:
    """Each with its digest, size and sources. `here` is the processor of this machine."""
    origins.check()
    machine = architecture(processor)
    found = []
    for each in wanted:
        local = _in_cache(each, origins.cache) if processor == here else None
        name = each.published.asset
        if local:
            found.append(of_file(name, local))
            continue
        progress.say(f"the checksum of {name} {each.version}")
        found.append(_released(each, machine, origins))
    return tuple(found)


def of_file(name: str, path: Path) -> Asset:
    """A file of this machine as an asset."""
    try:
        sha256, size = digest(path), path.stat().st_size
    except OSError as why:
        raise Refused(f"cannot read {path}", saw=why.strerror or str(why)) from why
    return Asset(name=name, sha256=sha256, urls=(f"file://{quote(str(path.absolute()))}",), size=size)


def file_of(asset: Asset) -> Path | None:
    """The file of an asset of `of_file`; None for one that is downloaded."""
    parts = urlsplit(asset.urls[0])
    return Path(unquote(parts.path)) if parts.scheme == "file" else None


def _in_cache(wanted: Wanted, cache: Path | None) -> Path | None:
    if cache is None or wanted.published.project != KUBERNETES.key:
        return None
    release = KUBERNETES.in_cache(wanted.version, cache)
    return release.programs.get(wanted.published.asset) if release else None


def _released(wanted: Wanted, machine: str, origins: Origins) -> Asset:
    published = wanted.published
    base = origins.releases.get(published.project, published.official).rstrip("/")
    place, sums = (of(wanted.version, machine) for of in (published.place, published.sums))
    url = f"{base}/{place}"
    try:
        sha256 = _digest(f"{base}/{sums}", place.rpartition("/")[2])
        size = size_at(url)
    except (Absent, Unreachable) as why:
        raise _unresolved(wanted, url, why) from why
    mirrors = (f"{mirror.rstrip('/')}/{place}" for mirror in origins.mirrors.get(published.project, ()))
    return Asset(name=published.asset, sha256=sha256, urls=(*mirrors, url), size=size)


def _digest(url: str, name: str) -> str:
    """The one listed for the file, else the only one."""
    try:
        return digest_at(url, name)
    except Unreachable:
        return digest_at(url)


def _unresolved(wanted: Wanted, url: str, why: Exception) -> ProtokubeError:
    what = f"{wanted.published.asset} {wanted.version}"
    if isinstance(why, Absent):
        return InvalidRequest(f"there is no {what}", saw=f"{url}: {why}", hint="check the version")
    hint = f"name another place with --release {wanted.published.project}=URL, or get it into the cache"
    return TryLater(f"cannot learn the checksum of {what}", saw=f"{url}: {why}", hint=hint)
