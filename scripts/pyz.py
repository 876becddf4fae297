"""Build dist/protokube.pyz: one file that runs wherever there is a Python, with nothing to install.

It is a zip that Python runs: scripts/pyz/ (what happens at a start), our wheel, and the wheels of the runtime
dependencies for every Python we support, on one kind of machine (processor and libc) or on all of them.
docs/decisions/0007-single-file-build.md says why, and 0030-install.md what changed since.

What is hard is that equal inputs give equal bytes, so nothing here depends on the clock, on the order
of a directory or on who builds. Downloads stay in .cache/wheels; the second build needs no network.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.metadata import distribution
from pathlib import Path
from zipfile import ZipFile, ZipInfo

from packaging.markers import Marker

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "requirements" / "runtime.lock"
CACHE = ROOT / ".cache" / "wheels"
PARTS = ROOT / "scripts" / "pyz"

PYTHONS = ("3.11", "3.12", "3.13", "3.14")
MACHINES = ("x86_64", "aarch64")
LIBCS = {
    "glibc": ("manylinux2014", "manylinux_2_17", "manylinux_2_28"),
    "musl": ("musllinux_1_1", "musllinux_1_2"),
}
KINDS = tuple(f"{machine}-{libc}" for machine in MACHINES for libc in LIBCS)
ALL = "all"

EPOCH = 315532800  # 1980-01-01, the first day a zip can hold


@dataclass(frozen=True, slots=True)
class Target:
    """One Python on one kind of machine that we carry wheels for."""

    python: str
    kind: str

    @property
    def platforms(self) -> list[str]:
        """What pip calls the machine, by processor and libc."""
        machine, _, libc = self.kind.partition("-")
        return [f"{each}_{machine}" for each in LIBCS[libc]]

    def __str__(self) -> str:
        return f"Python {self.python} on {self.kind}"


def this_kind() -> str:
    """The kind of machine that builds."""
    return f"{platform.machine()}-{'glibc' if platform.libc_ver()[0] == 'glibc' else 'musl'}"


def main() -> None:
    """Build the file named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--for", dest="kind", choices=[*KINDS, ALL], default=this_kind(), help="default: %(default)s")
    parser.add_argument("--output", type=Path, help="default: dist/protokube.pyz, or dist/protokube-KIND.pyz")
    asked = parser.parse_args()
    name = "protokube.pyz" if asked.kind == this_kind() else f"protokube-{asked.kind}.pyz"
    output: Path = asked.output or ROOT / "dist" / name
    kinds = KINDS if asked.kind == ALL else (asked.kind,)
    print(f"the wheels for {' and '.join(kinds)}", file=sys.stderr, flush=True)
    members = {
        **{path.name: path.read_bytes() for path in PARTS.glob("*.py")},
        **packaging_members(),
        **{f"wheels/{path.name}": path.read_bytes() for path in dependency_wheels(kinds)},
        **our_wheel(),
    }
    members["contents.py"] = f'DIGEST = "{digest(members)}"\n'.encode()
    write(output, members)
    print(f"{output}: {output.stat().st_size / 1e6:.1f} MB, {sum('wheels/' in name for name in members)} wheels")


def dependency_wheels(kinds: Sequence[str]) -> list[Path]:
    """The wheels of the runtime dependencies for every Python on these machines, each checked against the lock."""
    lock = LOCK.read_text()
    found: dict[str, Path] = {}
    for kind in kinds:
        targets = [Target(python, kind) for python in PYTHONS]
        kept = CACHE / f"{kind}-{hashlib.sha256(repr((lock, targets)).encode()).hexdigest()[:16]}"
        if not kept.exists() or not all(is_pinned(wheel, lock) for wheel in kept.iterdir()):
            shutil.rmtree(kept, ignore_errors=True)
            download(kept, targets)
        found |= {wheel.name: wheel for wheel in kept.iterdir()}  # a pure wheel fits all of them, and is there once
    return [found[name] for name in sorted(found)]


def is_pinned(wheel: Path, lock: str) -> bool:
    return f"sha256:{hashlib.sha256(wheel.read_bytes()).hexdigest()}" in lock


def download(kept: Path, targets: Sequence[Target]) -> None:
    """Fill `kept` all at once: a build that is stopped leaves nothing half full."""
    kept.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=kept.parent) as scratch, ThreadPoolExecutor() as pool:
        together = Path(scratch) / "together"
        together.mkdir()
        folders = [Path(scratch) / str(number) for number in range(len(targets))]
        for target, folder in zip(targets, pool.map(download_for, targets, folders), strict=True):
            for wheel in folder.glob("*.whl"):
                wheel.replace(together / wheel.name)
            print(f"the wheels for {target}", file=sys.stderr, flush=True)
        together.replace(kept)


def download_for(target: Target, folder: Path) -> Path:
    """Let pip choose the wheels for one target; a dependency without one is an error, not a gap."""
    folder.mkdir()
    wanted = folder / "requirements.txt"
    wanted.write_text(requirements(LOCK.read_text(), target))
    command = [sys.executable, "-m", "pip", "-qq", "--disable-pip-version-check", "download", "--no-deps"]
    command += ["--only-binary=:all:", "--require-hashes", f"--requirement={wanted}", f"--dest={folder}"]
    command += ["--implementation=cp", f"--python-version={target.python}"]
    command += [f"--platform={platform}" for platform in target.platforms]
    ran = subprocess.run(command, capture_output=True, text=True)
    if ran.returncode:
        raise SystemExit(f"error: pip found no wheels for {target}\n  saw:  {ran.stderr.strip()}")
    return folder


def requirements(lock: str, target: Target) -> str:
    """The lock without its markers, of which pip would take those of the Python that builds for true."""
    environment = {
        "python_version": target.python, "python_full_version": f"{target.python}.0", "os_name": "posix",
        "implementation_name": "cpython", "platform_python_implementation": "CPython",
        "platform_machine": target.kind.partition("-")[0], "platform_system": "Linux", "sys_platform": "linux",
    }  # fmt: skip
    kept = []
    for each in re.split(r"\n(?=\S)", lock.strip()):
        first, _, hashes = each.partition(" \\\n")
        pin, _, marker = first.partition(" ; ")
        if not marker or Marker(marker).evaluate(environment):
            kept.append(f"{pin} \\\n{hashes}\n")
    return "".join(kept)


def our_wheel() -> dict[str, bytes]:
    """Our own package, built the way a release is."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "hatchling", "build", "--target=wheel", f"--directory={folder}"]
        environ = {**os.environ, "SOURCE_DATE_EPOCH": str(EPOCH)}
        subprocess.run(command, cwd=ROOT, env=environ, check=True, capture_output=True)
        return {f"wheels/{path.name}": path.read_bytes() for path in Path(folder).glob("*.whl")}


def packaging_members() -> dict[str, bytes]:
    """The library that knows which wheel fits which machine: pip's own answer, so ours is never another."""
    wanted = re.compile(r"packaging/\w+\.py|packaging-[^/]+/licenses/.+")
    found = [path for path in distribution("packaging").files or () if wanted.fullmatch(path.as_posix())]
    return {path.as_posix(): path.read_binary() for path in found}


def digest(members: dict[str, bytes]) -> str:
    """A name for this content; where it is unpacked is called by it."""
    total = hashlib.sha256()
    for name, content in sorted(members.items()):
        total.update(f"{name} {len(content)}\n".encode() + content)
    return total.hexdigest()[:32]


def write(output: Path, members: dict[str, bytes]) -> None:
    """Write the zip behind its first line, and put it in place at once."""
    output.parent.mkdir(parents=True, exist_ok=True)
    part = output.with_name(f"{output.name}.{os.getpid()}")
    with part.open("wb") as file:
        file.write(b"#!/usr/bin/env python3\n")
        with ZipFile(file, "w") as box:  # stored: wheels are compressed already, and the rest starts faster
            for name, content in sorted(members.items()):
                entry = ZipInfo(name)
                entry.external_attr = 0o644 << 16
                box.writestr(entry, content)
    part.chmod(0o755)
    part.replace(output)


if __name__ == "__main__":
    main()
