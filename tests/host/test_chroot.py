"""In a chroot into a plain folder hosts cannot have mounts of their own: `up` says so before it begins."""

from __future__ import annotations

import subprocess
from pathlib import Path

from builders.command import COMMAND, environment

ENTER = """
for each in /*; do
    if [ -L "$each" ]; then cp -P "$each" "$1"; elif [ -d "$each" ]; then mkdir "$1$each"; fi
    if [ -d "$each" ] && [ ! -L "$each" ] && [ "$each" != /tmp ]; then mount --bind "$each" "$1$each"; fi
done
mount -t proc proc "$1/proc"
folder=$1
shift
exec chroot "$folder" "$@"
"""
"""In a mount namespace of its own: nothing is left of it."""


def test_up_in_a_chroot_that_is_no_mount_is_refused_with_what_to_do_and_makes_nothing(tmp_path: Path) -> None:
    state = Path("/tmp/state")
    command = ["unshare", "--mount", "sh", "-ec", ENTER, "sh", str(tmp_path), *COMMAND, "up", "--kubernetes", "none"]
    ran = subprocess.run(
        command, env=environment(PROTOKUBE_STATE=str(state)), capture_output=True, text=True, timeout=120
    )
    assert ran.returncode == 4, ran.stderr
    assert "error: hosts cannot have mounts of their own here" in ran.stderr
    assert "hint: before you enter it: mount --bind FOLDER FOLDER" in ran.stderr
    assert not (tmp_path / "tmp" / "state").exists()
