"""`protokube get coredns`: a version of CoreDNS, into the cache of this machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from protokube.cli.get.programs import get_programs, version_argument, way_options

if TYPE_CHECKING:
    from protokube.binaries.product import Product


def product() -> Product:
    from protokube.binaries.coredns import COREDNS

    return COREDNS


@click.command()
@version_argument(product)
@way_options(
    official="CoreDNS's releases at GitHub",
    mirror_variable="PROTOKUBE_COREDNS_MIRROR",
    build="Build VERSION from Go modules.",
)
def coredns(version: str | None, cache: Path | None, output: str, **way: Any) -> None:
    """Get a version of CoreDNS, which answers pods.

    What PROTOKUBE_COREDNS_BIN names is used as it is. Then comes the cache; only what is not in it is downloaded,
    copied or built, checked, and put there whole. Without VERSION: what the folder has; else the newest that is here. A
    build takes some minutes, and needs Go, which is taken from PyPI where none is new enough. `protokube up --kubelet`
    runs the version that goes with its Kubernetes, and downloads it where it is missing; if that fails, a stand-in
    answers, which knows the addresses of Services and nothing else.

    \b
      protokube get coredns 1.14.2
      protokube get coredns 1.14.2 --build
      protokube get coredns 1.14.2 --mirror https://mirror.example.com/coredns
    """
    get_programs(product(), version, cache, output, **way)
