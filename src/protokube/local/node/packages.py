"""The Debian packages of a host with a real kubelet, in the cache: unpacked, never installed."""

from __future__ import annotations

from pathlib import Path

from protokube.binaries import executables
from protokube.binaries.progress import ProgressReporter
from protokube.errors import Refused
from protokube.images.packages import unpack_whole
from protokube.images.proxyimage import TABLES, TRACKING
from protokube.local.node.kubehost import PACKAGES


def obtain_packages(cache: Path, progress: ProgressReporter) -> None:
    """Each is downloaded once; raises what keeps one from being had."""
    try:
        for package in PACKAGES:
            progress.say(f"{package}, from its Debian package")
            executables.unpack(package, cache)
        for package in (TABLES, TRACKING):
            progress.say(f"{package} and its libraries, from their Debian packages")
            unpack_whole(package, cache)
    except OSError as why:
        raise Refused(
            f"cannot keep Debian packages in {cache}", saw=str(why), hint="make room, or name a folder: PROTOKUBE_CACHE"
        ) from why
