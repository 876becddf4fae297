"""Programs that say a version, whatever they are asked, and programs that stand for Debian's."""

from __future__ import annotations

import shutil
from pathlib import Path

from protokube.binaries.etcd import ETCD
from protokube.binaries.product import COMPLETE, Release

APT = """#!/bin/sh
echo "$*" >> "$0.log"
case "$*" in
  *update*) touch "$0.updated" ;;
  *download*) test -e "$0.updated" || { echo "no lists" >&2; exit 100; }; : > etcd-server_1.deb ;;
esac
"""
DPKG = """#!/bin/sh
mkdir -p "$3/usr/bin"
for name in etcd etcdctl; do
  printf '#!/bin/sh\\necho etcd Version: %s\\n' "$(cat "$0.version")" > "$3/usr/bin/$name"
  chmod 755 "$3/usr/bin/$name"
done
"""


def a_program(folder: Path, name: str, says: str) -> Path:
    """A program that prints this, whatever it is asked."""
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / name
    program.write_text(f"#!/bin/sh\ncat <<END\n{says}\nEND\n")
    program.chmod(0o755)
    return program


def an_etcd(folder: Path, version: str) -> Path:
    return a_program(folder, "etcd", f"etcd Version: {version}\nGit SHA: Not provided\nGo Version: go1.19.8")


def all_of_etcd(folder: Path, version: str) -> Path:
    """A folder as an unpacked release has it."""
    an_etcd(folder, version)
    for name in ("etcdctl", "etcdutl"):
        a_program(folder, name, f"{name} version: {version}\nAPI version: 3.5")
    return folder


def kept_etcd(cache: Path, version: str) -> Release:
    """A version that was got into the cache, all of it."""
    folder = all_of_etcd(ETCD.versions_folder(cache) / version, version)
    (folder / COMPLETE).touch()
    found = ETCD.in_cache(version, cache)
    assert found
    return found


def a_debian(path: Path, version: str) -> Path:
    """Programs that do what apt-get and dpkg-deb would, without a network; a log of what apt-get is asked."""
    for name, text in (("apt-get", APT), ("dpkg-deb", DPKG)):
        (path / name).write_text(text)
        (path / name).chmod(0o755)
    for needed in ("touch", "mkdir", "chmod"):
        (path / needed).symlink_to(shutil.which(needed, path="/usr/bin:/bin") or "")
    (path / "dpkg-deb.version").write_text(version)
    return path / "apt-get.log"
