"""Build dist/protokube.pyz: one file that runs wherever there is a Python, with nothing to install.

It is a zip that Python runs: scripts/pyz/ (what happens at a start), our wheel, and the wheels of the runtime
dependencies for every Python and machine we support. docs/decisions/0007-single-file-build.md says why.

What is hard is that equal inputs give equal bytes, so nothing here depends on the clock, on the order
of a directory or on who builds. Downloads stay in .cache/wheels; the second build needs no network.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.metadata import distribution
from pathlib import Path
from zipfile import ZipFile, ZipInfo

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "requirements" / "runtime.lock"
PARTS = ROOT / "scripts" / "pyz"

PYTHONS = ("3.11", "3.12", "3.13", "3.14")
MACHINES = ("x86_64", "aarch64")
LIBCS = (("manylinux2014", "manylinux_2_17", "manylinux_2_28"), ("musllinux_1_1", "musllinux_1_2"))

EPOCH = 315532800  # 1980-01-01, the first day a zip can hold


@dataclass(frozen=True, slots=True)
class Target:
    """One kind of Python we carry wheels for."""

    python: str
    platforms: tuple[str, ...]

    def __str__(self) -> str:
        return f"Python {self.python} on {self.platforms[-1]}"


TARGETS = tuple(
    Target(python, tuple(f"{libc}_{machine}" for libc in libcs))
    for python, machine, libcs in itertools.product(PYTHONS, MACHINES, LIBCS)
)


def main() -> None:
    """Build the file named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--output", type=Path, default=ROOT / "dist" / "protokube.pyz")
    output: Path = parser.parse_args().output
    members = {
        **{path.name: path.read_bytes() for path in PARTS.glob("*.py")},
        **packaging_members(),
        **{f"wheels/{path.name}": path.read_bytes() for path in dependency_wheels(ROOT / ".cache" / "wheels")},
        **our_wheel(),
    }
    members["contents.py"] = f'DIGEST = "{digest(members)}"\n'.encode()
    write(output, members)
    print(f"{output}: {output.stat().st_size / 1e6:.1f} MB, {sum('wheels/' in name for name in members)} wheels")


def dependency_wheels(cache: Path) -> list[Path]:
    """The wheels of the runtime dependencies for every target, each checked against the lock."""
    lock = LOCK.read_text()
    kept = cache / hashlib.sha256(repr((lock, TARGETS)).encode()).hexdigest()[:16]
    if not kept.exists() or not all(is_pinned(wheel, lock) for wheel in kept.iterdir()):
        shutil.rmtree(kept, ignore_errors=True)
        download(kept)
    return sorted(kept.iterdir())


def is_pinned(wheel: Path, lock: str) -> bool:
    return f"sha256:{hashlib.sha256(wheel.read_bytes()).hexdigest()}" in lock


def download(kept: Path) -> None:
    """Fill `kept` all at once: a build that is stopped leaves nothing half full."""
    kept.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=kept.parent) as scratch, ThreadPoolExecutor() as pool:
        together = Path(scratch) / "together"
        together.mkdir()
        folders = [Path(scratch) / str(number) for number in range(len(TARGETS))]
        for folder in pool.map(download_for, TARGETS, folders):
            for wheel in folder.iterdir():
                wheel.replace(together / wheel.name)  # a pure wheel comes with every target, and is kept once
        together.replace(kept)


def download_for(target: Target, folder: Path) -> Path:
    """Let pip choose the wheels for one target; a dependency without one is an error, not a gap."""
    command = [sys.executable, "-m", "pip", "-qq", "--disable-pip-version-check", "download", "--no-deps"]
    command += ["--only-binary=:all:", "--require-hashes", f"--requirement={LOCK}", f"--dest={folder}"]
    command += ["--implementation=cp", f"--python-version={target.python}"]
    command += [f"--platform={platform}" for platform in target.platforms]
    ran = subprocess.run(command, capture_output=True, text=True)
    if ran.returncode:
        raise SystemExit(f"error: pip found no wheels for {target}\n  saw:  {ran.stderr.strip()}")
    return folder


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
