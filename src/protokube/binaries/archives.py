"""Official releases that come as one archive per architecture, with a checksum file: etcd, CoreDNS."""

from __future__ import annotations

import shutil
import tarfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from protokube.binaries.coredns import COREDNS
from protokube.binaries.etcd import ETCD
from protokube.binaries.mirrors import Failed, architecture, checked, digest_at, from_any
from protokube.binaries.product import Product
from protokube.binaries.progress import ProgressReporter
from protokube.errors import InvalidRequest, Refused

Named = Callable[[str, str], str]
"""A name or path for a version and an architecture."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Archives:
    """The layout of a product's releases below the URL of a mirror."""

    product: Product
    official: tuple[str, ...]
    archive: Named
    sums: Named
    """The file with the archive's checksum; it may list other checksums too."""
    inside: Named
    """The path prefix of programs inside the archive."""

    def download(self, version: str, folder: Path, mirrors: Sequence[str], progress: ProgressReporter) -> None:
        """Download the archive, verify its checksum, and unpack all programs of the version into the folder."""
        what, machine = f"{self.product.name} {version}", architecture(self.product.name)
        order = [checked(each, self.official[0]) for each in mirrors or self.official]
        place, sums = self.archive(version, machine), self.sums(version, machine)
        target = folder / place.rpartition("/")[2]
        with progress.step(f"{what}, as released"):
            try:
                from_any(order, place, target, lambda mirror: digest_at(f"{mirror}/{sums}", target.name), progress)
            except Failed as why:
                if why.absent:
                    raise InvalidRequest(f"there is no {what}", saw=str(why), hint="check the version") from why
                raise why.explained(what, self._other_ways()) from why
            self._unpack(target, self.inside(version, machine), folder)

    def _other_ways(self) -> str:
        return (
            "name a folder that holds the programs with --from, or a mirror with --mirror, "
            f"or set {self.product.chosen}; --build makes it from Go modules"
        )

    def _unpack(self, archive: Path, inside: str, folder: Path) -> None:
        try:
            with tarfile.open(archive) as tar:
                for name in self.product.programs:
                    content = tar.extractfile(f"{inside}{name}")
                    if content is None:
                        raise KeyError(f"{inside}{name} is no file")
                    with content, (folder / name).open("wb") as file:
                        shutil.copyfileobj(content, file)
        except (tarfile.TarError, KeyError, EOFError) as why:
            programs = ", ".join(self.product.programs)
            raise Refused(f"{archive.name} does not hold {programs}", saw=str(why.args[0])) from why


ETCD_ARCHIVES = Archives(
    product=ETCD,
    official=("https://github.com/etcd-io/etcd/releases/download", "https://storage.googleapis.com/etcd"),
    archive=lambda version, machine: f"v{version}/etcd-v{version}-linux-{machine}.tar.gz",
    sums=lambda version, _: f"v{version}/SHA256SUMS",
    inside=lambda version, machine: f"etcd-v{version}-linux-{machine}/",
)
COREDNS_ARCHIVES = Archives(
    product=COREDNS,
    official=("https://github.com/coredns/coredns/releases/download",),
    archive=lambda version, machine: f"v{version}/coredns_{version}_linux_{machine}.tgz",
    sums=lambda version, machine: f"v{version}/coredns_{version}_linux_{machine}.tgz.sha256",
    inside=lambda _, __: "",
)
