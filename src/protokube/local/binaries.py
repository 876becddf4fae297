"""Find the programs of others that a local cloud runs: the real etcd, and tools of the machine.

On Debian a missing etcd is unpacked from its package into our cache: nothing is installed, no service starts. etcd
3.5.0 to 3.5.2 lose data when they are killed, and being killed is what a local cloud is for: such a one is taken only
where the user names it.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from protokube.errors import Refused, TryLater

log = logging.getLogger(__name__)

CHOSEN = "PROTOKUBE_ETCD_BIN"
PACKAGES = {"etcd": "etcd-server", "etcdctl": "etcd-client"}
LOSES_DATA = re.compile(r"v?3\.5\.[012]\b(?!\.)")
TOOLS = (
    ("ip", "iproute2"),
    ("nsenter", "util-linux"),
    ("mount", "mount"),
    ("losetup", "mount"),
    ("mkfs.ext4", "e2fsprogs"),
    ("e2fsck", "e2fsprogs"),
)
SECONDS_TO_SAY_VERSION = 10.0
SECONDS_TO_DOWNLOAD = 180.0


def find(name: str, cache: Path) -> Path:
    """The `etcd` or `etcdctl` to run: the user's choice, then the cache, then PATH, then Debian's package."""
    if folder := os.environ.get(CHOSEN):
        return _chosen(Path(folder) / name)
    unpacked = cache / PACKAGES[name] / "usr" / "bin" / name
    ways: tuple[Callable[[], Path | None], ...] = (
        lambda: unpacked if unpacked.is_file() else None,
        lambda: Path(found) if (found := which(name)) else None,
        lambda: unpack(PACKAGES[name], cache) / "usr" / "bin" / name,
    )
    skipped: list[str] = []
    for way in ways:
        if (path := way()) is None:
            continue
        if not (why := _why_not(path)):
            return path
        skipped.append(why)
        log.info("%s: looking further", why)
    raise Refused(
        f"there is no {name} that can be used",
        saw="; ".join(skipped),
        want=f"a {name} that runs, and is not 3.5.0 to 3.5.2",
        hint=f"set {CHOSEN} to the folder of a better one",
    )


def _why_not(path: Path) -> str:
    """Why a program that we came across is not to be used, if so."""
    try:
        found = version(path)
    except Refused as why:
        return f"{why.message} ({why.saw})"
    return f"{path} is {found}, which loses data when it is killed" if LOSES_DATA.match(found) else ""


def version(path: Path) -> str:
    """What a program says it is: `3.4.23`."""
    command = [str(path), "version" if path.name == "etcdctl" else "--version"]
    try:
        ran = subprocess.run(  # noqa: S603
            command,
            capture_output=True,
            text=True,
            timeout=SECONDS_TO_SAY_VERSION,
            env={"ETCDCTL_API": "3", "PATH": os.environ.get("PATH", os.defpath)},
        )
    except (OSError, subprocess.TimeoutExpired) as why:
        raise Refused(f"{path} does not run", saw=str(why)) from why
    found = re.search(r"version: v?(\S+)", ran.stdout, re.IGNORECASE)
    if ran.returncode or not found:
        raise Refused(f"{path} does not say its version", saw=(ran.stderr or ran.stdout).strip()[:200])
    return found[1]


def missing_tools() -> list[tuple[str, str]]:
    """Programs the local cloud needs and this machine lacks, each with Debian's package of it."""
    return [(program, package) for program, package in TOOLS if which(program) is None]


def which(program: str) -> str | None:
    """Where a program is; the folders for root's programs count although a user's PATH may lack them."""
    return shutil.which(program, path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin")


def _chosen(path: Path) -> Path:
    if not path.is_file():
        raise Refused(f"there is no {path.name} in {path.parent}", hint=f"correct {CHOSEN}, or unset it")
    if LOSES_DATA.match(found := version(path)):
        log.warning("%s is %s, which loses data when it is killed; it runs since %s names it", path, found, CHOSEN)
    return path


def unpack(package: str, cache: Path) -> Path:
    """The files of a package of Debian's; downloaded once, and whole or not at all, whoever else does the same."""
    target = cache / package
    if target.is_dir():
        return target
    lacking = [program for program in ("apt-get", "dpkg-deb") if which(program) is None]
    if lacking or os.geteuid() != 0:
        raise Refused(
            f"{package.replace('-server', '').replace('etcd-client', 'etcdctl')} is not on this machine",
            saw=f"no {' and no '.join(lacking)}" if lacking else "not root, so its package cannot be fetched",
            hint=f"install it, or set {CHOSEN} to the folder that holds it",
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
    fetch = ["apt-get", "-qq", "--option=APT::Sandbox::User=root", "download", package]
    try:
        _run(fetch, folder)
    except TryLater:
        _run(["apt-get", "-qq", "update"], folder)  # a fresh machine has no lists, an old one lists of what is gone
        _run(fetch, folder)


def ask(command: Sequence[str]) -> str:
    """What Debian's own tools know."""
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
            hint=f"install etcd, or set {CHOSEN} to the folder that holds it",
        )
    return ran.stdout
