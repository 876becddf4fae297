"""Find programs of this machine, and unpack Debian packages.

A missing tool is unpacked from its package into our cache: nothing is installed, no service starts.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from protokube.errors import Refused, TryLater

SECONDS_TO_DOWNLOAD = 180.0
SECONDS_OF_SILENCE = 15


def which(program: str) -> str | None:
    """The path of a program; also searches the sbin folders, which a user's PATH may lack."""
    return shutil.which(program, path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin")


def unpack(package: str, cache: Path) -> Path:
    """Unpack a Debian package into the cache, unless it is there; atomic, also with concurrent callers."""
    target = cache / package
    if target.is_dir():
        return target
    lacking = [program for program in ("apt-get", "dpkg-deb") if which(program) is None]
    if lacking or os.geteuid() != 0:
        raise Refused(
            f"{package} is not on this machine",
            saw=f"no {' and no '.join(lacking)}" if lacking else "not root, so its package cannot be fetched",
            hint="install it",
        )
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{package}-", dir=cache) as draft:
        _download(package, Path(draft))
        (archive,) = Path(draft).glob("*.deb")
        _run(["dpkg-deb", "-x", archive.name, "root"], Path(draft))
        if not target.exists():
            (Path(draft) / "root").rename(target)
    return target


def _download(package: str, folder: Path) -> None:
    silence = [f"--option=Acquire::{way}::Timeout={SECONDS_OF_SILENCE}" for way in ("http", "https")]
    fetch = ["apt-get", "-qq", *silence, "--option=APT::Sandbox::User=root", "download", package]
    try:
        _run(fetch, folder)
    except TryLater:
        _run(["apt-get", "-qq", *silence, "update"], folder)  # package lists may be missing or outdated
        _run(fetch, folder)


def ask(command: Sequence[str]) -> str:
    """Run a Debian tool; return its output."""
    return _run(command, Path("/"))


def _run(command: Sequence[str], folder: Path) -> str:
    try:
        ran = subprocess.run(  # noqa: S603
            command, cwd=folder, capture_output=True, text=True, timeout=SECONDS_TO_DOWNLOAD
        )
    except subprocess.TimeoutExpired as late:
        raise TryLater(f"`{' '.join(command)}` took longer than {SECONDS_TO_DOWNLOAD:g} seconds") from late
    if ran.returncode:
        raise TryLater(
            f"`{' '.join(command)}` failed",
            saw=ran.stderr.strip(),
            hint="can this machine download Debian packages?",
        )
    return ran.stdout
