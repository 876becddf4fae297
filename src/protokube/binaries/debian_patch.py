"""Patch a vendored dependency of Debian's Kubernetes that current Go compilers break.

Kubernetes 1.20 vendors modern-go/reflect2 1.0.1, which iterates maps through Go internals as they were before Go 1.18.
With a later Go it compiles, but the API server crashes as soon as a custom resource is written. Debian packages 1.0.2
separately: its code replaces the vendored code. If it is not available, the build is refused, because a binary that
crashes later is worse than no binary.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from protokube.errors import Refused, TryLater

MODULE = Path("github.com/modern-go/reflect2")
PACKAGE = "golang-github-modern-go-reflect2-dev"
FITTING = "go_above_118.go"
"""Only versions that support maps as they are since Go 1.18 have this file."""
UNSAFE = "Kubernetes built without it would be unsafe: its API server dies when a custom resource is written"

Run = Callable[[Sequence[str], Path], None]


def patch(source: Path, work: Path, run: Run) -> None:
    """Replace the vendored code if it is too old; refused if the replacement cannot be downloaded or is too old."""
    carried = source / "vendor" / MODULE
    if not carried.is_dir() or (carried / FITTING).exists():
        return  # Debian fixed it already
    try:
        unpacked = _unpacked(work / "mend", run)
    except TryLater as why:
        raise TryLater(f"cannot get {PACKAGE}; {UNSAFE}", saw=why.saw, want=PACKAGE, hint=why.hint) from why
    replace_code(carried, unpacked / "usr" / "share" / "gocode" / "src" / MODULE)


def replace_code(carried: Path, fitting: Path) -> None:
    """Replace all code in a folder by that of another: a leftover old file would not compile.

    The licence stays. The version in go.mod and vendor/modules.txt stays too: Go only compares these with each other.
    """
    if not (fitting / FITTING).exists():
        raise Refused(
            f"{PACKAGE} is too old for this build; {UNSAFE}", saw=f"no {FITTING} in it", want="1.0.2 or later"
        )
    for old in carried.iterdir():
        if old.is_dir():
            shutil.rmtree(old)
        elif not old.name.startswith("LICENSE"):
            old.unlink()
    for new in fitting.iterdir():
        if new.suffix in (".go", ".s"):
            shutil.copyfile(new, carried / new.name)


def _unpacked(folder: Path, run: Run) -> Path:
    """Download and unpack the package; nothing is installed, and the machine's apt lists stay unchanged."""
    lists, unpacked = folder / "lists", folder / "unpacked"
    (lists / "partial").mkdir(parents=True)
    apt = ["apt-get", "-q", "--option=APT::Sandbox::User=root"]
    try:
        run([*apt, "download", PACKAGE], folder)
    except TryLater:  # the lists are missing on a fresh machine, or outdated
        options = (f"Dir::State::lists={lists}", "Dir::Cache::pkgcache=", "Dir::Cache::srcpkgcache=")
        apt += [f"--option={option}" for option in options]
        run([*apt, "update"], folder)
        run([*apt, "download", PACKAGE], folder)
    (package,) = folder.glob("*.deb")
    run(["dpkg-deb", "-x", str(package), str(unpacked)], folder)
    return unpacked
