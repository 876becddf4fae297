"""containerd's own client, `ctr`: in the host itself, or from outside in a host's mount namespace."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

SOCKET = "/run/containerd/containerd.sock"
NAMESPACE = "k8s.io"
"""Where the kubelet's images and containers are kept in containerd."""
MANAGED = "io.cri-containerd.image"
"""The label that containerd's CRI plugin puts on images that it manages."""
SECONDS_TO_NOTICE = 15.0


@dataclass(frozen=True, slots=True)
class Ctr:
    """How to run `ctr`; a call takes its arguments and returns its output."""

    command: tuple[str, ...] = ("ctr",)
    handles: tuple[int, ...] = ()
    """File descriptors to inherit."""
    address: str = SOCKET

    def __call__(self, *words: str, seconds: float, archive: Path | None = None) -> str:
        """`archive` becomes its standard input. Raises OSError or SubprocessError."""
        command = [*self.command, "--address", self.address, "--namespace", NAMESPACE, *words]
        with (archive or Path("/dev/null")).open("rb") as stdin:
            return subprocess.run(  # noqa: S603
                command, stdin=stdin, capture_output=True, text=True, check=True, timeout=seconds,
                pass_fds=self.handles,
            ).stdout  # fmt: skip

    def await_start(self, seconds: float, runs: Callable[[], bool] = lambda: True) -> set[str]:
        """Wait until containerd answers, as long as it runs; return the names of its images."""
        end = time.monotonic() + seconds
        while True:
            try:
                return set(self("images", "list", "--quiet", seconds=seconds).split())
            except (OSError, subprocess.SubprocessError):
                if time.monotonic() > end or not runs():
                    raise
                time.sleep(0.05)


def import_archive(ctr: Ctr, archive: Path, names: Mapping[str, str], seconds: float) -> None:
    """Import it under the names that the kubelet uses; `names` maps them to the names that containerd assigns.

    The CRI plugin takes over new content of a name only without its label. An import keeps the label: remove it.
    """
    ctr("images", "import", "-", archive=archive, seconds=seconds)
    for name, imported in names.items():
        if name != imported:
            ctr("images", "tag", "--force", imported, name, seconds=seconds)
        ctr("images", "label", name, f"{MANAGED}=", seconds=seconds)


def await_notice(ctr: Ctr, names: Sequence[str]) -> None:
    """Wait until the CRI plugin, which the kubelet uses, manages the images. Raises TimeoutError."""
    end = time.monotonic() + SECONDS_TO_NOTICE
    while missing := [name for name in names if not _is_managed(ctr, name)]:
        if time.monotonic() > end:
            raise TimeoutError(
                f"containerd has {', '.join(missing)}, but its CRI plugin does not show it to the kubelet"
            )
        time.sleep(0.05)


def digests(ctr: Ctr, names: Sequence[str], seconds: float = SECONDS_TO_NOTICE) -> dict[str, str]:
    """The digests of these images in containerd."""
    rows = {name: _row(ctr, name, seconds) for name in names}
    return {name: row[2] for name, row in rows.items() if row}


def _is_managed(ctr: Ctr, name: str) -> bool:
    return any(word.startswith(f"{MANAGED}=") for word in _row(ctr, name, SECONDS_TO_NOTICE))


def _row(ctr: Ctr, name: str, seconds: float) -> Sequence[str]:
    """REF TYPE DIGEST SIZE PLATFORMS LABELS; empty if there is no such image."""
    lines = ctr("images", "list", f"name=={name}", seconds=seconds).splitlines()[1:]
    return lines[0].split() if lines else ()
