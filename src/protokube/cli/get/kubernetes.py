"""`protokube get kubernetes`: the programs of a version of Kubernetes, into the cache of this machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from protokube.cli.get.programs import get_programs, origin_options, version_argument

if TYPE_CHECKING:
    from protokube.binaries.product import Product


def product() -> Product:
    from protokube.binaries.kubernetes import KUBERNETES

    return KUBERNETES


@click.command()
@version_argument(product)
@origin_options(
    official="https://dl.k8s.io/release",
    mirror_variable="PROTOKUBE_KUBERNETES_MIRROR",
    build="Build VERSION from Go modules, or what Debian has from its source.",
)
def kubernetes(version: str | None, cache: Path | None, output: str, **origin: Any) -> None:
    """Get the programs of a version of Kubernetes.

    A folder in PROTOKUBE_KUBERNETES_BIN is used as it is. Otherwise the cache is used; a version that is not in it is
    downloaded, copied or built, verified, and added atomically. An interrupted download is resumed. Without VERSION:
    the version in the --from folder or, with --build, in Debian; else the newest on this machine. A build takes a
    quarter of an hour on two processors; from modules it needs Go, which is downloaded from PyPI if none is new enough.

    \b
      protokube get kubernetes 1.34.1
      protokube get kubernetes 1.34.1 --mirror https://mirror.example.com/kubernetes
      protokube get kubernetes 1.34.1 --from /media/usb/kubernetes/server/bin
      protokube get kubernetes 1.36.4 --build
      protokube get kubernetes --build
    """
    get_programs(product(), version, cache, output, **origin)
