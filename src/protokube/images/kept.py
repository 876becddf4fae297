"""Records of the archives of images that a machine keeps, so that one which the kubelet removed can be imported again.

The kubelet removes images that no container uses when the disk fills up, and a machine without a registry has no other
way to get one back. containerd 1.7.3 and later keeps an image with the label `pinned`. Others get none, and wherever an
image is gone, the next run of nodeup imports it again from the archive that stayed.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import asdict, dataclass
from pathlib import Path

from protokube.host.files import read_or_none, write_atomic

PINNED = "io.cri-containerd.pinned=pinned"
"""The label by which containerd's CRI plugin tells the kubelet to leave an image alone."""
FIRST_TO_PIN = (1, 7, 3)


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


def can_pin(version: str) -> bool:
    """Whether this version of containerd honours the label: `1.7.24`, also as Debian writes it, `1.7.24~ds1`."""
    found = re.search(r"\bv?(\d+)\.(\d+)\.(\d+)", version)
    return found is not None and tuple(int(each) for each in found.groups()) >= FIRST_TO_PIN


def _place(folder: Path, name: str) -> Path:
    return folder / f"{hashlib.sha256(name.encode()).hexdigest()[:32]}.json"


def _parse(data: bytes | None) -> Kept | None:
    try:
        return Kept(**json.loads(data)) if data else None
    except (ValueError, TypeError):
        return None
