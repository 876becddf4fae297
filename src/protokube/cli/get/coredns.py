"""`protokube get coredns`: a version of CoreDNS, into the cache of this machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from protokube.cli.get.programs import get_programs, origin_options, version_argument

if TYPE_CHECKING:
    from protokube.binaries.product import Product


def product() -> Product:
    from protokube.binaries.coredns import COREDNS

    return COREDNS


@click.command()
@version_argument(product)
@origin_options(
    official="CoreDNS's releases at GitHub",
    mirror_variable="PROTOKUBE_COREDNS_MIRROR",
    build="Build VERSION from Go modules.",
)
def coredns(version: str | None, cache: Path | None, output: str, **origin: Any) -> None:
    """Get a version of CoreDNS, which answers pods.

    A folder in PROTOKUBE_COREDNS_BIN is used as it is. Otherwise the cache is used; a version that is not in it is
    downloaded, copied or built, verified, and added atomically. Without VERSION: the version in the --from folder, else
    the newest on this machine. A build takes some minutes and needs Go, which is downloaded from PyPI if none is new
    enough. `protokube up --kubelet` runs the version for its Kubernetes, and downloads it if it is missing; if that
    fails, a substitute runs that resolves only Services.

    \b
      protokube get coredns 1.14.2
      protokube get coredns 1.14.2 --build
      protokube get coredns 1.14.2 --mirror https://mirror.example.com/coredns
    """
    get_programs(product(), version, cache, output, **origin)
