"""Mend what Debian's Kubernetes carries with it and the compiler of today breaks.

Kubernetes 1.20 carries modern-go/reflect2 1.0.1, which walks maps by the inside of Go as it was before 1.18. With a
later Go it compiles, and the API server dies as soon as a custom resource is written. Debian has 1.0.2 as a package of
its own: its code takes the place of the old. Without it nothing is built: what dies later is worse than nothing.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from protokube.errors import Refused, TryLater

MODULE = Path("github.com/modern-go/reflect2")
PACKAGE = "golang-github-modern-go-reflect2-dev"
FITTING = "go_above_118.go"
"""Only code that knows maps as they are since Go 1.18 has this file."""
UNSAFE = "Kubernetes built without it would be unsafe: its API server dies when a custom resource is written"

Run = Callable[[Sequence[str], Path], None]


def mend(source: Path, work: Path, run: Run) -> None:
    """Give the source code that fits, if what it carries does not; refused if that cannot be had."""
    carried = source / "vendor" / MODULE
    if not carried.is_dir() or (carried / FITTING).exists():
        return  # Debian changed it, and so there is nothing to mend
    try:
        unpacked = _unpacked(work / "mend", run)
    except TryLater as why:
        raise TryLater(f"cannot get {PACKAGE}; {UNSAFE}", saw=why.saw, want=PACKAGE, hint=why.hint) from why
    replace_code(carried, unpacked / "usr" / "share" / "gocode" / "src" / MODULE)


def replace_code(carried: Path, fitting: Path) -> None:
    """The code of a folder by that of another, whole: a file that only the old one has would not compile.

    The licence stays. The version that the lists of modules name stays too: Go compares the lists with each other only.
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
    """The content of the package; nothing is installed, and the machine's own lists stay as they are."""
    lists, unpacked = folder / "lists", folder / "unpacked"
    (lists / "partial").mkdir(parents=True)
    apt = ["apt-get", "-q", "--option=APT::Sandbox::User=root"]
    try:
        run([*apt, "download", PACKAGE], folder)
    except TryLater:  # a fresh machine has no lists, an old one lists of what is gone
        options = (f"Dir::State::lists={lists}", "Dir::Cache::pkgcache=", "Dir::Cache::srcpkgcache=")
        apt += [f"--option={option}" for option in options]
        run([*apt, "update"], folder)
        run([*apt, "download", PACKAGE], folder)
    (package,) = folder.glob("*.deb")
    run(["dpkg-deb", "-x", str(package), str(unpacked)], folder)
    return unpacked
