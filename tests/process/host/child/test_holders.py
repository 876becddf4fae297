"""Who uses a device is found among all processes, and named."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from clusters.disks import wait_until
from protokube.host.child.holders import users

WAIT = "import sys; print(1, flush=True); sys.stdin.read()"


def number_of(path: Path) -> tuple[int, int]:
    device = path.stat().st_dev
    return os.major(device), os.minor(device)


def test_a_real_process_with_a_real_file_is_found(tmp_path: Path) -> None:
    marker = Path(f"/dev/shm/protokube-test-{os.getpid()}")
    marker.touch()
    try:
        with marker.open("rb") as file, subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", WAIT], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            pass_fds=[file.fileno()],
        ) as process:  # fmt: skip
            assert process.stdout is not None
            assert process.stdin is not None
            process.stdout.readline()

            wait_until(
                lambda: any(f"(pid {process.pid}) has open {marker}" in each for each in users(number_of(marker))),
                "it was not found",
                seconds=30,
            )
            process.stdin.close()
    finally:
        marker.unlink()
