"""Write a manifest, and keep the time of one that only looks different.

A process counts as current if it started after its manifest was written. The kubelet does not restart a pod whose
manifest merely has its keys in another order, so such a write must not make the file newer.
"""

from __future__ import annotations

import os
from pathlib import Path

from protokube.host.files import read_or_none, write_atomic


def write(place: Path, text: str, *, staging: Path | None = None) -> bool:
    """Whether the pod has changed."""
    before, times = read_or_none(place), _times(place)
    if not write_atomic(place, text.encode(), 0o644, staging=staging):
        return False
    if before is None or times is None or not is_same(before.decode(errors="replace"), text):
        return True
    os.utime(place, ns=times)
    return False


def is_same(before: str, after: str) -> bool:
    import yaml  # seldom needed: the text of a manifest rarely changes

    from protokube import fast_yaml

    try:
        return bool(fast_yaml.load(before) == fast_yaml.load(after))
    except (yaml.YAMLError, ValueError):
        return False


def _times(place: Path) -> tuple[int, int] | None:
    try:
        status = place.stat()
    except OSError:
        return None
    return status.st_atime_ns, status.st_mtime_ns
