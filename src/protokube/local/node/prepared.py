"""Root directories of containerd with unpacked images, which all hosts of a cluster share.

The cluster has hard links to a root of the cache, so its hosts keep their images whatever is removed from the cache.
They see that folder read-only. Each gets a root of its own: real folders, copied databases, and a symbolic link for
each blob and each snapshot, which nobody writes once they are complete. What containers write is in real folders of the
host: overlayfs takes no upper folder that is on an overlay, so the root of a host cannot be one.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

ROOT = Path("/var/lib/containerd")
SHARED = (
    "io.containerd.content.v1.content/blobs/sha256",
    "io.containerd.snapshotter.v1.overlayfs/snapshots",
)
"""Folders whose entries are shared: named for their content or by the databases, and never changed."""
ABOUT = ".prepared.json"
"""Beside containerd's folders: the names of the images, and how much there is."""


def describe(root: Path, names: Collection[str]) -> None:
    """Mark a root as complete."""
    (root / ABOUT).write_text(json.dumps({"images": sorted(names), "content": _content(root)}))


def images(root: Path) -> frozenset[str]:
    """The images of a prepared root; none if it is not there."""
    return frozenset(_about(root).get("images", ()))


def is_whole(root: Path) -> bool:
    """Whether nothing of it is missing: somebody may have removed a part of the cache, or may be doing so."""
    return bool(about := _about(root)) and about.get("content") == _content(root)


def _about(root: Path) -> dict[str, Any]:
    try:
        found = json.loads((root / ABOUT).read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _content(root: Path) -> list[int]:
    """How many files there are, and how many bytes."""
    sizes = [path.lstat().st_size for path in _files(root) if path.name != ABOUT]
    return [len(sizes), sum(sizes)]


def _files(root: Path) -> Iterator[Path]:
    for at, _, names in os.walk(root):
        yield from (Path(at, name) for name in names)


def link(source: Path, folder: Path) -> Path:
    """Keep a root of the cache in the cluster's folder, where hosts find it; idempotent. Raises OSError."""
    target, draft = folder / source.name, folder / f".{source.name}.{os.getpid()}"
    if target.is_dir():
        return target
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        clone(source, draft)
        draft.rename(target)
    except OSError:
        shutil.rmtree(draft, ignore_errors=True)
        if not target.is_dir():  # else another `up` was first
            raise
    return target


def clone(source: Path, target: Path) -> None:
    """The same content by hard links; from another file system by copies. Raises OSError, also if a part is gone."""
    reason = ""
    for how in ("--link", "--reflink=auto"):
        shutil.rmtree(target, ignore_errors=True)
        command = ["cp", "--archive", how, str(source), str(target)]
        ran = subprocess.run(command, capture_output=True, text=True)  # noqa: S603
        reason = ran.stderr.strip().rpartition("\n")[2] or "a part of it is gone"
        if not ran.returncode and is_whole(target):
            if how != "--link":
                os.sync()  # a power failure must not leave a copy that looks complete
            return
    raise OSError(0, reason, str(source))


def detach(root: Path) -> None:
    """Give a clone databases of its own, so that a containerd may run on it."""
    for path in _files_not_shared(root):
        draft = path.with_name(f"{path.name}.own")
        shutil.copy2(path, draft)
        draft.replace(path)
    (root / ABOUT).unlink(missing_ok=True)


def _files_not_shared(root: Path) -> list[Path]:
    shared = [root / each for each in SHARED]
    return [path for path in _files(root) if not any(each in path.parents for each in shared)]


def give(source: Path, root: Path = ROOT) -> bool:
    """Make the root of a new host from a prepared one; False if it has a root already, or there is no prepared one."""
    if root.exists() or not images(source):
        return False
    draft = root.with_name(f"{root.name}.new")
    shutil.rmtree(draft, ignore_errors=True)
    try:
        _lay_out(source, draft)
        draft.rename(root)
    except OSError as why:
        sys.stderr.write(f"images are imported, not shared: {why.strerror or why}: {why.filename}\n")
        shutil.rmtree(draft, ignore_errors=True)
        return False
    return True


def _lay_out(source: Path, target: Path) -> None:
    shared = {source / each for each in SHARED}
    for at, folders, files in os.walk(source, onerror=_fail):
        place = Path(at)
        own = target / place.relative_to(source)
        own.mkdir(mode=place.stat().st_mode & 0o777)
        if place in shared:
            for name in (*folders, *files):
                (own / name).symlink_to(place / name)
            folders.clear()
            continue
        for name in files:
            if name != ABOUT:
                shutil.copy2(place / name, own / name)


def _fail(why: OSError) -> None:
    raise why
