"""The archives of images that a machine keeps, so that an image which the kubelet removed can be imported again.

The kubelet removes images that no container uses when the disk fills up, and a machine without a registry has no other
way to get one back. containerd 1.7.3 and later keeps an image with the label `pinned`; for others,
and for whoever removes images by hand, the archive stays. nodeup writes these records, the agent reads them.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from protokube.host.files import read_or_none, write_atomic
from protokube.images.ctr import Ctr

FOLDER = "/var/cache/protokube/nodeup/images"
"""Beside the archives; where both are lost, nodeup fetches and records them again."""
PINNED = "io.cri-containerd.pinned=pinned"
"""The label by which containerd's CRI plugin tells the kubelet to leave an image alone."""
FIRST_TO_PIN = (1, 7, 3)
SECONDS_TO_IMPORT = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """One image, and its archive."""

    name: str
    """As manifests have it: `registry.k8s.io/pause:3.9`."""
    imported_as: str
    """The name by which containerd calls it at import; the image gets the other one by a tag."""
    archive: str
    sha256: str
    """Of the archive."""
    image: str = ""
    """Digest of the image in containerd; empty if it was not imported yet."""
    pinned: bool = False
    runtime: str = ""
    """The version of containerd that imported it."""


def write(folder: Path, kept: Kept) -> bool:
    """Keep the record; whether that changed anything."""
    folder.mkdir(parents=True, exist_ok=True)
    return write_atomic(_place(folder, kept.name), json.dumps(asdict(kept), indent=1, sort_keys=True).encode() + b"\n")


def read(folder: Path, name: str) -> Kept | None:
    """The record of one image; None if there is none that can be read."""
    return _parse(read_or_none(_place(folder, name)))


def read_all(folder: Path) -> list[Kept]:
    """All records, by name."""
    found = [_parse(read_or_none(path)) for path in sorted(folder.glob("*.json"))]
    return sorted((each for each in found if each), key=lambda each: each.name)


def can_pin(version: str) -> bool:
    """Whether this version of containerd honours the label: `1.7.24`, also as Debian writes it, `1.7.24~ds1`."""
    found = re.search(r"\bv?(\d+)\.(\d+)\.(\d+)", version)
    return found is not None and tuple(int(each) for each in found.groups()) >= FIRST_TO_PIN


def import_missing(ctr: Ctr, folder: Path, there: Sequence[str] | None = None) -> list[str]:
    """Import the images that containerd has no more; return their names. Raises OSError or SubprocessError.

    `there` are the names of the images that it has. An archive that is gone is passed over.
    """
    present = set(there if there is not None else ctr("images", "list", "--quiet", seconds=60.0).split())
    missing = [each for each in read_all(folder) if each.name not in present and Path(each.archive).is_file()]
    for each in missing:
        ctr("images", "import", each.archive, seconds=SECONDS_TO_IMPORT)
        if each.imported_as != each.name:
            ctr("images", "tag", "--force", each.imported_as, each.name, seconds=60.0)
        if each.pinned:
            ctr("images", "label", each.name, PINNED, seconds=60.0)
    return [each.name for each in missing]


def _place(folder: Path, name: str) -> Path:
    return folder / f"{hashlib.sha256(name.encode()).hexdigest()[:32]}.json"


def _parse(data: bytes | None) -> Kept | None:
    try:
        return Kept(**json.loads(data)) if data else None
    except (ValueError, TypeError):
        return None
