"""Reading the kernel's mount table."""

from __future__ import annotations

import os
from pathlib import Path

from protokube.local.disk.mounts import one_table_of_each_namespace, who_has


def test_our_own_root_is_found_by_its_device() -> None:
    device = Path("/").stat().st_dev
    number = (os.major(device), os.minor(device))

    assert Path("/") in [mount.point for mount in who_has({number})]
    assert who_has(set()) == []


def test_each_namespace_is_looked_at_once() -> None:
    seen = [Path(f"/proc/{pid}/ns/mnt").readlink() for pid, _ in one_table_of_each_namespace()]

    assert len(seen) == len(set(seen))
    assert Path("/proc/self/ns/mnt").readlink() in seen
