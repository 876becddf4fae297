"""The steps of `up` that need no cloud: each may be repeated, and what is there is never made anew."""

from __future__ import annotations

import stat
import subprocess
from pathlib import Path

from protokube import __version__
from protokube.local import bringup
from protokube.local.base.paths import Paths


def test_hosts_have_this_very_protokube_in_their_path(tmp_path: Path) -> None:
    folder = bringup.write_launcher(Paths.at(tmp_path))
    launcher = folder / "protokube"
    before = launcher.stat()

    ran = subprocess.run([launcher, "--version"], capture_output=True, text=True, check=True)
    assert __version__ in ran.stdout
    assert stat.S_IMODE(before.st_mode) == 0o755
    assert bringup.write_launcher(Paths.at(tmp_path)) == folder
    assert launcher.stat().st_ino == before.st_ino  # hosts have it bound
    assert str(folder) in bringup.template("{}", [folder], Paths.at(tmp_path))["path"].split(":")
