"""Extra programs of a host with a real kubelet: iptables, which the CNI portmap plugin calls for host ports.

This machine may lack iptables, or have one that uses the legacy tables of the kernel. So hosts get the one of
kube-proxy's image, through wrapper scripts that set the paths of its libraries and plugins.
"""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass
from pathlib import Path

from protokube.host.files import write_atomic
from protokube.images.packages import Package, unpack_whole
from protokube.images.proxyimage import MULTI, NAMES, TABLES

FOLDER = "host-tools"


@dataclass(frozen=True, slots=True, kw_only=True)
class HostTools:
    """The folder for the PATH of a host, and the folders to mount inside."""

    folder: Path
    shown: tuple[Path, ...]


def obtain(cache: Path) -> HostTools:
    package = unpack_whole(TABLES, cache)
    folder = cache / FOLDER
    folder.mkdir(exist_ok=True)
    for name in NAMES:
        write_atomic(folder / name, script(name, package).encode(), 0o755)
    return HostTools(folder=folder, shown=(package.root, *package.libraries))


def script(name: str, package: Package) -> str:
    """A wrapper script; the multi-call program takes the tool's name as its first argument."""
    libraries = os.pathsep.join(map(str, package.library_folders))
    (plugins,) = package.root.glob("usr/lib/*/xtables")
    settings = {"XTABLES_LIBDIR": str(plugins), **({"LD_LIBRARY_PATH": libraries} if libraries else {})}
    words = [*(f"{key}={value}" for key, value in settings.items()), str(package.root / MULTI), name]
    return f'#!/bin/sh\nexec env {shlex.join(words)} "$@"\n'
