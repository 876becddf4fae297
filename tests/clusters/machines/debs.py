"""Tiny packages of Debian's kind, and a repository of them in a folder: nothing of it comes from outside.

`tiny-conf` has a configuration file, `tiny-service` a service that its script starts, `tiny-needs` depends on both,
`tiny-rival` conflicts with `tiny-conf`. The scripts wait while `/wait-in-postinst` exists, and fail if
`/fail-in-postinst` does.
"""

from __future__ import annotations

import hashlib
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

POSTINST = """#!/bin/sh
set -e
touch /postinst-of-$DPKG_MAINTSCRIPT_PACKAGE
while [ -e /wait-in-postinst ]; do sleep 0.02; done
if [ -e /fail-in-postinst ]; then echo "the script says no" >&2; exit 3; fi
"""
START = """if [ "$1" = configure ]; then
    if [ -d /run/systemd/system ]; then deb-systemd-invoke start tiny.service; else invoke-rc.d tiny start; fi
fi
"""
INIT = """#!/bin/sh
### BEGIN INIT INFO
# Provides: tiny
# Required-Start:
# Required-Stop:
# Default-Start: 2 3 4 5
# Default-Stop:
# Short-Description: tiny
### END INIT INFO
touch "/service-was-$1"
"""
UNIT = "[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/bin/touch /service-was-start\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Deb:
    """One package, in one version."""

    name: str
    version: str = "1.0"
    control: str = ""
    files: Mapping[str, str] = field(default_factory=dict)
    conffiles: Sequence[str] = ()
    postinst: str = POSTINST


def conf(version: str = "1.0") -> Deb:
    files = {"etc/tiny.conf": f"made for {version}\n", "usr/share/tiny/version": version}
    return Deb(name="tiny-conf", version=version, files=files, conffiles=("/etc/tiny.conf",))


def service(version: str = "1.0") -> Deb:
    files = {"etc/init.d/tiny": INIT, "lib/systemd/system/tiny.service": UNIT}
    return Deb(name="tiny-service", version=version, files=files, postinst=POSTINST + START)


NEEDS = Deb(name="tiny-needs", control="Depends: tiny-conf, tiny-service\n", files={"usr/share/tiny/needs": ""})
RIVAL = Deb(name="tiny-rival", control="Conflicts: tiny-conf\n", files={"usr/share/tiny/rival": ""})
ALL = (conf(), service(), NEEDS, RIVAL)


def publish(repository: Path, debs: Sequence[Deb] = ALL) -> None:
    """Make the packages, and an index with exactly these."""
    repository.mkdir(parents=True, exist_ok=True)
    index = []
    for deb in debs:
        archive = repository / f"{deb.name}_{deb.version}_all.deb"
        if not archive.exists():
            build(deb, archive)
        content = archive.read_bytes()
        sums = f"Filename: ./{archive.name}\nSize: {len(content)}\nSHA256: {hashlib.sha256(content).hexdigest()}\n"
        index.append(control(deb) + sums)
    (repository / "Packages").write_text("\n".join(index))


def control(deb: Deb) -> str:
    fixed = "Architecture: all\nMaintainer: Nobody <nobody@example.com>\nDescription: tiny\n"
    return f"Package: {deb.name}\nVersion: {deb.version}\n{deb.control}{fixed}"


def build(deb: Deb, archive: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        root.chmod(0o755)
        meta = root / "DEBIAN"
        meta.mkdir()
        (meta / "control").write_text(control(deb))
        (meta / "conffiles").write_text("".join(f"{each}\n" for each in deb.conffiles))
        (meta / "postinst").write_text(deb.postinst)
        (meta / "postinst").chmod(0o755)
        for name, content in deb.files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
            path.chmod(0o755 if "init.d" in name else 0o644)
        command = ["dpkg-deb", "--root-owner-group", "--build", "-Znone", folder, str(archive)]
        subprocess.run(command, check=True, capture_output=True)


def configure(root: Path, repository: str = "/repository") -> None:
    """Have apt on that root know this repository alone, with lists and packages copied from it; its lists are empty."""
    for each in (root / "var/lib/apt/lists").glob("*_*"):
        each.unlink()
    (root / "etc/apt/sources.list").write_text(f"deb [trusted=yes] copy:{repository} ./\n")
