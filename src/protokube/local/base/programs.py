"""Programs by image: what a host without a container runtime runs for an image, and the kubelets of each version.

One folder for each cluster, mounted read-only into every host from its creation on, so a version that is added later
appears in the hosts that run. It keeps former versions: a master may have to return to one.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

VARIABLE = "PROTOKUBE_PROGRAMS"
"""The environment variable of a host's units that names the folder."""
KUBELET = "kubelet"


def add(folder: Path, image: str, program: Path) -> Path:
    """Keep a program under the name of an image; the same one again changes nothing.

    A hard link where that is possible: programs of Kubernetes have a hundred megabytes each.
    """
    place = _place(folder, image) / program.name
    if place.exists() and _stamp(place) == _stamp(program):
        return place
    place.parent.mkdir(parents=True, exist_ok=True)
    draft = place.with_name(f".{place.name}.{os.getpid()}")
    draft.unlink(missing_ok=True)
    try:
        os.link(program.resolve(), draft)
    except OSError:  # another file system
        shutil.copy2(program, draft)
    draft.replace(place)
    return place


def find(folder: Path, image: str, name: str) -> Path | None:
    """The program of an image; None if the folder does not have it."""
    place = _place(folder, image) / name
    return place if place.exists() else None


def find_only(folder: Path, image: str, name: str) -> Path | None:
    """The same for what is to be run. FileNotFoundError if the folder has the program of other tags of this image only:
    another version must not run in its place."""
    found = find(folder, image, name)
    if found is None and any(_place(folder, image).parent.glob(f"*/{name}")):
        raise FileNotFoundError(0, f"there is no image {image} on this host", str(folder))
    return found


def _place(folder: Path, image: str) -> Path:
    """A tag follows the last colon, unless that belongs to the port of a registry."""
    repository, _, tag = image.rpartition(":")
    if not repository or "/" in tag:
        repository, tag = image, "latest"
    return folder / _plain(repository) / _plain(tag)


def _plain(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9.@+-]", "_", name).lstrip(".") or "_"


def _stamp(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_size, found.st_mtime_ns
