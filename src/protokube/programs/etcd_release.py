"""etcd's own releases: one archive for each kind of machine, and a list of checksums beside them."""

from __future__ import annotations

import shutil
import tarfile
from collections.abc import Sequence
from pathlib import Path

from protokube.errors import InvalidRequest, Refused
from protokube.programs.etcd import ETCD
from protokube.programs.mirrors import Failed, architecture, checked, digest_at, from_any
from protokube.programs.telling import Teller

OFFICIAL = ("https://github.com/etcd-io/etcd/releases/download", "https://storage.googleapis.com/etcd")
OTHER_WAYS = (
    "name a folder that holds the programs with --from, or a mirror with --mirror, "
    f"or set {ETCD.chosen}; --build makes it from Go modules"
)


def download_etcd(version: str, folder: Path, mirrors: Sequence[str], teller: Teller) -> None:
    """Put all programs of a version into the folder, out of an archive with the right checksum."""
    order = [checked(each, OFFICIAL[0]) for each in mirrors or OFFICIAL]
    unpacked = f"etcd-v{version}-linux-{architecture(ETCD.name)}"
    archive = folder / f"{unpacked}.tar.gz"
    with teller.step(f"etcd {version}, as released"):
        try:
            from_any(
                order,
                f"v{version}/{archive.name}",
                archive,
                lambda mirror: digest_at(f"{mirror}/v{version}/SHA256SUMS", archive.name),
                teller,
            )
        except Failed as why:
            if why.absent:
                message = f"there is no etcd {version}"
                raise InvalidRequest(message, saw=str(why), hint="check the version") from why
            raise why.explained(f"etcd {version}", OTHER_WAYS) from why
        _unpack(archive, unpacked, folder)


def _unpack(archive: Path, unpacked: str, folder: Path) -> None:
    try:
        with tarfile.open(archive) as tar:
            for name in ETCD.programs:
                content = tar.extractfile(f"{unpacked}/{name}")
                if content is None:
                    raise KeyError(f"{unpacked}/{name} is no file")
                with content, (folder / name).open("wb") as file:
                    shutil.copyfileobj(content, file)
    except (tarfile.TarError, KeyError, EOFError) as why:
        raise Refused(f"{archive.name} does not hold {', '.join(ETCD.programs)}", saw=str(why.args[0])) from why
