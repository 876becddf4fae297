"""The kernel's mount tables are read to the letter, in every namespace there is."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from clusters.disks import wait_until
from protokube.host.child import mountinfo
from protokube.host.child.mountinfo import shown_anywhere


def test_the_root_of_this_machine_is_shown_by_its_processes() -> None:
    device = Path("/").stat().st_dev

    assert shown_anywhere((os.major(device), os.minor(device)))
    assert shown_anywhere((250, 99999)) == []


def test_a_zombie_is_passed_over() -> None:
    """Reading the mount table of a process that was not collected yet fails in a way of its own."""
    zombie = subprocess.Popen(["true"])
    try:
        wait_until(lambda: "Z (zombie)" in Path(f"/proc/{zombie.pid}/status").read_text(), "it does not end")
        with pytest.raises(OSError, match=r".") as failed:
            Path(f"/proc/{zombie.pid}/mountinfo").read_text()

        assert failed.value.errno in mountinfo.GONE
        assert shown_anywhere((250, 99999)) == []
    finally:
        zombie.wait()
