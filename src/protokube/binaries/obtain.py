"""Get Kubernetes, etcd or CoreDNS: from the cache, else from a folder, from official releases, or by a build.

The user chooses one of these, and there is no fallback to another: a build takes a quarter of an hour, and a user who
names an offline folder does not want a download. A build uses Go modules, or Debian's source for the one version of
Kubernetes that Debian has.
"""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from protokube.binaries import cache_folder, debian
from protokube.binaries.archives import COREDNS_ARCHIVES, ETCD_ARCHIVES
from protokube.binaries.coredns import COREDNS
from protokube.binaries.etcd import ETCD, OLDEST_TO_GET
from protokube.binaries.gomodules import build_from_modules
from protokube.binaries.kubernetes import KUBERNETES
from protokube.binaries.product import CACHE, VERSION, Product, Release
from protokube.binaries.progress import ProgressReporter, Silent
from protokube.binaries.release import download_release
from protokube.binaries.sources import SOURCES
from protokube.errors import InvalidRequest, ProtokubeError, Refused

DOWNLOADS = {
    KUBERNETES.key: download_release,
    ETCD.key: ETCD_ARCHIVES.download,
    COREDNS.key: COREDNS_ARCHIVES.download,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where to get binaries from; by default the official releases."""

    folder: Path | None = None
    mirrors: Sequence[str] = ()
    build: bool = False
    unverified: bool = False

    def check(self) -> None:
        if self.unverified and not self.build:
            hint = "add --build, or leave it out"
            raise InvalidRequest("--unverified needs --build", hint=hint)
        if sum(map(bool, (self.folder, self.mirrors, self.build))) > 1:
            raise InvalidRequest("--from, --mirror and --build exclude each other")


def obtain(
    product: Product,
    version: str | None,
    cache: Path = CACHE,
    origin: Origin | None = None,
    progress: ProgressReporter | None = None,
) -> Release:
    """Have this version in the cache. Without a version: the folder's, Debian's, or the newest on this machine."""
    origin, progress = origin or Origin(), progress or Silent()
    origin.check()
    if (version or not (origin.folder or origin.build)) and (found := product.find(version, cache)):
        return found
    requested = None if version is None else product.plain_version(version)
    need_usable(product, requested)
    if origin.folder is not None:
        return copy_folder(product, origin.folder, cache, progress, requested)
    if origin.build and product is KUBERNETES and requested in (None, debian.VERSION):
        return debian.build_from_debian(cache, progress, requested)
    if requested is None:
        message = f"there is no {product.name} in {cache} yet"
        raise InvalidRequest(message, hint=f"name a version, such as {product.example}")
    if origin.build:
        return build_from_modules(SOURCES[product.key], requested, cache, progress, unverified=origin.unverified)
    return download(product, requested, cache, origin.mirrors, progress)


def need_usable(product: Product, version: str | None) -> None:
    """InvalidRequest for a version that is unsafe, or too old to be downloaded or built."""
    if version and (why := product.why_not(version)):
        raise InvalidRequest(f"that would be {product.name} {version}, {why}", hint=f"such as {product.example}")
    numbers = VERSION.match(version or "")
    if product is ETCD and numbers and (int(numbers[1]), int(numbers[2])) < OLDEST_TO_GET:
        raise InvalidRequest(
            f"etcd {version} is too old to be downloaded or built",
            want=f"{OLDEST_TO_GET[0]}.{OLDEST_TO_GET[1]} or later, such as {product.example}",
            hint="3.4 is in Debian 12, where `protokube up` finds it by itself",
        )


def download(
    product: Product, version: str, cache: Path, mirrors: Sequence[str], progress: ProgressReporter
) -> Release:
    """Have this version's official release in the cache."""
    with cache_folder.locked(product, cache, progress) as kept:
        if found := product.find(version, cache):
            return found
        draft = cache_folder.draft(kept, version)
        try:
            DOWNLOADS[product.key](version, draft, mirrors, progress)
        finally:
            if not any(draft.iterdir()):  # no mirror has this version, or none is reachable
                draft.rmdir()
        return cache_folder.finish(product, draft, kept, version)


def download_or_build(
    product: Product, version: str, cache: Path, mirrors: Sequence[str], progress: ProgressReporter
) -> Release:
    """Have this version in the cache: download the official release, or else build it from Go modules."""
    version = product.plain_version(version)
    need_usable(product, version)
    try:
        return download(product, version, cache, mirrors, progress)
    except ProtokubeError as why:
        progress.note(f"{why.in_one_line()}: it is built from Go modules")
        try:
            return build_from_modules(SOURCES[product.key], version, cache, progress)
        except ProtokubeError as second:
            both = "; ".join(f"{each.message}: {each.saw}" if each.saw else each.message for each in (why, second))
            raise type(second)(
                f"{product.name} {version} can be neither downloaded nor built", saw=both, hint=second.hint
            ) from second


def copy_folder(
    product: Product, folder: Path, cache: Path, progress: ProgressReporter, requested: str | None
) -> Release:
    """Copy the programs of a folder into the cache; checksum files next to them are verified."""
    there = product.in_folder(folder)
    if missing := [name for name in product.programs if name not in there]:
        kubernetes = "the folder kubernetes/server/bin of an unpacked kubernetes-server-linux archive has them all"
        raise InvalidRequest(
            f"there is no {', no '.join(missing)} in {folder}",
            want=f"{', '.join(product.programs)}, as programs that may be executed",
            hint=kubernetes if product is KUBERNETES else "the folder of an unpacked archive of a release has them all",
        )
    for path in there.values():
        _check(path)
    found = product.version(there[product.programs[0]])
    if requested not in (None, found):
        raise InvalidRequest(f"{folder} holds {product.name} {found}", want=f"{requested}, which was asked for")
    need_usable(product, found)
    with cache_folder.locked(product, cache, progress) as kept:
        if done := product.in_cache(found, cache):
            return done
        draft = cache_folder.draft(kept, found)
        for name, path in there.items():
            with progress.step(f"{name} {found}"):
                shutil.copyfile(path, draft / name)
        return cache_folder.finish(product, draft, kept, found)


def _check(path: Path) -> None:
    checksum_file = path.with_name(f"{path.name}.sha256")
    if not checksum_file.exists():
        return
    promised = re.match(r"[0-9a-f]*", checksum_file.read_text("ascii", "replace").strip().lower())
    with path.open("rb") as file:
        came = hashlib.file_digest(file, "sha256").hexdigest()
    if promised is None or promised[0] != came:
        raise Refused(
            f"{path} is not what its checksum promises",
            saw=f"sha256 {came}",
            want=f"{promised[0] if promised else 'a checksum'}, from {checksum_file.name}",
            hint="get a new copy of the folder",
        )
