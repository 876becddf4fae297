"""Programs out of Debian's packages, unpacked under .cache: nothing is installed, no service starts."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

import pytest

CACHE = Path(__file__).resolve().parents[2] / ".cache" / "debian"


def unpacked(package: str) -> Path:
    """The root of one package's files; downloaded once, by apt, as this machine's lists know it."""
    root = CACHE / package
    if root.exists():
        return root
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{package}-", dir=CACHE) as draft:
        half_made = Path(draft)
        download(package, half_made)
        (archive,) = half_made.glob("*.deb")
        subprocess.run(["dpkg-deb", "-x", archive, half_made / "root"], check=True)
        try:
            (half_made / "root").rename(root)
        except OSError:
            if not root.exists():  # else another worker was first
                raise
    return root


def download(package: str, folder: Path) -> None:
    command = ["apt-get", "-qq", "--option=APT::Sandbox::User=root", "download", package]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if ran.returncode:  # a fresh machine has no package lists
        subprocess.run(["apt-get", "-qq", "update"], capture_output=True, check=False)
        ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if ran.returncode:
        pytest.fail(f"apt-get could not download {package}: {ran.stderr.strip()}")
