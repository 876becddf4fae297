"""Programs out of Debian's packages, unpacked under .cache: nothing is installed, no service starts."""

from __future__ import annotations

import re
import subprocess
import tempfile
from pathlib import Path

import pytest

CACHE = Path(__file__).resolve().parents[2] / ".cache" / "debian"


def unpacked(package: str, suite: str = "") -> Path:
    """The root of one package's files; downloaded once, by apt, as this machine's lists know it, or from a suite."""
    root = CACHE / f"{package}{suite and '-'}{suite}"
    if root.exists():
        return root
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{package}-", dir=CACHE) as draft:
        half_made = Path(draft)
        if suite:
            download_from(suite, package, half_made)
        else:
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


def download_from(suite: str, package: str, folder: Path) -> None:
    """From another suite of this machine's own mirror, with lists of its own: those of the machine stay as they are."""
    found = "\n".join(file.read_text() for file in Path("/etc/apt").rglob("*.sources"))
    lines = "\n".join(file.read_text() for file in Path("/etc/apt").rglob("*.list"))
    addresses = re.findall(
        r"(?m)^URIs:\s*(\S+/debian)/?\s*$|^deb\s+(?:\[.*\]\s+)?(\S+/debian)/?\s", f"{found}\n{lines}"
    )
    if not addresses:
        pytest.fail(f"no mirror of Debian in /etc/apt, to take {package} of {suite} from")
    for name in ("state/lists/partial", "cache/archives/partial"):
        (folder / name).mkdir(parents=True)
    keyring = "/usr/share/keyrings/debian-archive-keyring.gpg"
    (folder / "apt.list").write_text(f"deb [signed-by={keyring}] {''.join(addresses[0])} {suite} main\n")
    options = [
        f"--option=Dir::Etc::SourceList={folder}/apt.list", "--option=Dir::Etc::SourceParts=/dev/null",
        f"--option=Dir::State={folder}/state", f"--option=Dir::Cache={folder}/cache",
        "--option=APT::Sandbox::User=root",
    ]  # fmt: skip
    for words in (["update"], ["download", package]):
        ran = subprocess.run(
            ["apt-get", "-qq", *options, *words], cwd=folder, capture_output=True, text=True, check=False
        )
        if ran.returncode:
            pytest.fail(f"apt-get {words[0]} for {package} of {suite}: {ran.stderr.strip()}")
