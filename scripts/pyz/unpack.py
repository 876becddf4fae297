"""Unpack the wheels that fit this machine, once.

Two starts may come here at once, and either may be killed half-way. A lock lets one of them work, beside
the final place; the rename at the end is what the others see. The stamp is written last.
"""

import atexit
import compileall
import fcntl
import io
import os
import platform
import py_compile
import shutil
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import NoReturn
from zipfile import BadZipFile, ZipFile

from packaging.tags import Tag, sys_tags
from packaging.utils import parse_wheel_filename
from start import STAMP, check_trust, is_whole

WHEELS = "wheels/"
MARK = ".protokube-folder"  # as in protokube/local/base/ourselves.py: by it, protokube starts itself from here
UNFINISHED = ".new-"


class NoWheelError(Exception):
    """Some of what protokube needs is not in the file for this machine."""


def into_cache(pyz: str, place: str) -> str:
    """Make `place` hold everything, whole and compiled; OSError if this cache cannot be used."""
    cache = Path(place).parent
    for missing in reversed([path for path in (cache, *cache.parents) if not path.exists()]):
        missing.mkdir(mode=0o700, exist_ok=True)
    check_trust(place, os.geteuid())  # again: below /tmp somebody else may have been quicker to make it
    with (cache / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if is_whole(place):  # another start was quicker
            return place
        for left in cache.glob(f"{UNFINISHED}*"):  # by a start that was killed: we hold the lock
            shutil.rmtree(left)
        staged = tempfile.mkdtemp(prefix=UNFINISHED, dir=cache)
        try:
            announce()
            extract(pyz, staged)
            Path(staged, MARK).write_text("kept\n")
            # TIMESTAMP is said because SOURCE_DATE_EPOCH in the environment would choose the slow checked hash.
            compileall.compile_dir(
                staged,
                ddir=place,
                quiet=2,
                invalidation_mode=py_compile.PycInvalidationMode.TIMESTAMP,
            )
            write_stamp(Path(staged))
            shutil.rmtree(place, ignore_errors=True)  # damaged, so nobody runs from it; the rename tells if it stayed
            Path(staged).rename(place)
        finally:
            shutil.rmtree(staged, ignore_errors=True)
    return place


def for_this_run(pyz: str, refused: Iterable[str]) -> str:
    """Unpack into a private directory that goes away with this process, and say so."""
    reasons = list(refused) or ["HOME is not set"]
    try:
        place = tempfile.mkdtemp(prefix="protokube-")
        atexit.register(shutil.rmtree, place, ignore_errors=True)
        extract(pyz, place)
        Path(place, MARK).write_text("this run\n")
    except OSError as why:
        stop("there is no room to unpack protokube", saw=[*reasons, str(why)], hint=CACHE_HINT)
    warning = "warning: protokube has no cache directory, so it is unpacked anew at every start"
    tell(warning, saw=reasons, hint=CACHE_HINT)
    return place


CACHE_HINT = "set PROTOKUBE_CACHE to a directory that only you can write to"


def announce() -> None:
    """Tell a person why nothing else happens for a few seconds; a program that reads our errors is left alone."""
    if sys.stderr.isatty():
        print("protokube: unpacking, once", file=sys.stderr)


def extract(pyz: str, target: str) -> None:
    """Put the wheels that fit this Python into `target`."""
    try:
        with ZipFile(pyz) as box:
            inside = [name.removeprefix(WHEELS) for name in box.namelist() if name.startswith(WHEELS)]
            for wheel in fitting(inside, sys_tags()):
                with ZipFile(io.BytesIO(box.read(WHEELS + wheel))) as files:
                    files.extractall(target)
    except BadZipFile as why:
        stop(f"{pyz} is damaged", saw=[str(why)], hint="copy or download it again")
    except NoWheelError as why:
        best = next(sys_tags())
        machine = f"{platform.python_implementation()} {platform.python_version()} on {platform.machine()} ({best})"
        hint = "build it for this machine with `make pyz`, use one of those Pythons, or install protokube with pip"
        stop(f"{pyz} does not fit this machine: {why}", saw=[machine], want=inside_in_words(inside), hint=hint)


def fitting(wheels: Iterable[str], tags: Iterable[Tag]) -> list[str]:
    """The best wheel of every project for a Python that takes `tags`, best tag first."""
    rank = {tag: number for number, tag in enumerate(tags)}
    found: dict[str, tuple[int, str]] = {}
    projects = set()
    for wheel in wheels:
        project, _, _, fits = parse_wheel_filename(wheel)
        projects.add(project)
        if usable := [rank[tag] for tag in fits if tag in rank]:
            found[project] = min(found.get(project, (min(usable), wheel)), (min(usable), wheel))
    if missing := sorted(projects - found.keys()):
        raise NoWheelError(f"it has no {', '.join(missing)} for it")
    return sorted(wheel for _, wheel in found.values())


def inside_in_words(wheels: Iterable[str]) -> str:
    """For which Pythons and platforms there are wheels, in one line."""
    parts = [wheel.removesuffix(".whl").split("-")[-3:] for wheel in wheels]
    compiled = [(python, platforms.split(".")[0]) for python, _, platforms in parts if platforms != "any"]
    pythons, platforms = (", ".join(sorted(set(names))) for names in zip(*compiled, strict=True))
    return f"{pythons} on {platforms}"


def write_stamp(staged: Path) -> None:
    """List every file with its size, so that a later start can tell whether all of them are still there."""
    files = sorted(path for path in staged.rglob("*") if path.is_file())
    lines = [f"{path.stat().st_size} {path.relative_to(staged)}" for path in files]
    (staged / STAMP).write_text("\n".join([str(len(lines)), *lines]) + "\n")


def tell(message: str, *, saw: Iterable[str], want: str = "", hint: str) -> None:
    """What happened, what we saw, what to do: as the rest of protokube says it."""
    lines = [message, *(f"  saw:  {text}" for text in saw)]
    lines += [f"  want: {want}"] if want else []
    print("\n".join([*lines, f"  hint: {hint}"]), file=sys.stderr)


def stop(message: str, *, saw: Iterable[str], want: str = "", hint: str) -> NoReturn:
    """Say why we cannot go on, and end."""
    tell(f"error: {message}", saw=saw, want=want, hint=hint)
    raise SystemExit(4)  # ExitCode.REFUSED: a person has to decide
