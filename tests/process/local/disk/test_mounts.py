"""Reading the kernel's mount table."""

from __future__ import annotations

import os
from pathlib import Path

from protokube.local.disk.mounts import who_has


def test_our_own_root_is_found_by_its_device() -> None:
    device = Path("/").stat().st_dev
    number = (os.major(device), os.minor(device))

    assert Path("/") in [mount.point for mount in who_has({number})]
    assert who_has(set()) == []
