"""Namespaces of their own for one machine of a test, which go away with the test, also if it is killed.

The first process of the namespaces waits for the end of its input, whose other end the test holds. When the test ends,
in whatever way, the kernel ends every process in there, and mounts, loop devices and network links go with them. What
the kernel does not remove, cgroups and the folder, a shell outside removes then: there is no other way to clean up.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Self

OUTSIDE = """
unshare --mount --net --pid --fork --kill-child --mount-proc --propagation private sh -ec "$INSIDE" inside
for each in $CGROUPS; do
    tries=100
    while [ -d "$each" ] && ! find "$each" -depth -type d -exec rmdir {} + 2>/dev/null && [ $tries -gt 0 ]; do
        tries=$((tries - 1)); sleep 0.05
    done
done
if [ -n "$FOLDER" ]; then rm -rf --one-file-system "$FOLDER"; fi
"""
INSIDE = "ip link set lo up\n{setup}\necho ready\nexec cat >/dev/null"


class Keeper:
    """One set of namespaces: mounts, network and processes."""

    def __init__(self, setup: str = "", *, folder: Path | None = None, cgroups: Sequence[Path] = ()) -> None:
        """`setup` is a script that is run inside first. The folder and the cgroups are removed at the end."""
        variables = {
            "INSIDE": INSIDE.format(setup=setup),
            "FOLDER": str(folder or ""),
            "CGROUPS": " ".join(map(str, cgroups)),
        }
        self._outside = subprocess.Popen(
            ["sh", "-c", OUTSIDE],
            env=os.environ | variables,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C must not reach what cleans up
            text=True,
        )
        assert self._outside.stdout
        if self._outside.stdout.readline() != "ready\n":
            _, errors = self._outside.communicate()
            raise AssertionError(f"namespaces cannot be set up: {errors}")
        (between,) = children(self._outside.pid)
        (self.pid,) = children(between)
        """Its first process, as this process sees it."""

    def files(self, path: Path) -> Path:
        """A path inside, seen from here."""
        return Path(f"/proc/{self.pid}/root{path}")

    def enter(self, *command: str) -> list[str]:
        """The command line that runs a command inside."""
        return ["nsenter", f"--target={self.pid}", "--mount", "--net", "--pid", "--", *command]

    def run(self, *command: str) -> str:
        """What a command inside writes; it has to succeed."""
        ran = subprocess.run(self.enter(*command), stdin=subprocess.DEVNULL, capture_output=True, text=True)
        assert ran.returncode == 0, f"{' '.join(command)}: {ran.stderr}{ran.stdout}"
        return ran.stdout

    def run_here(self, *command: str) -> str:
        """The same with processes numbered as this process sees them."""
        enter = ["nsenter", f"--target={self.pid}", "--net", "--", *command]
        ran = subprocess.run(enter, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        assert ran.returncode == 0, f"{' '.join(command)}: {ran.stderr}"
        return ran.stdout

    def close(self) -> None:
        """End everything inside, and wait until it is gone."""
        self._outside.communicate(timeout=60)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def children(pid: int) -> list[int]:
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
