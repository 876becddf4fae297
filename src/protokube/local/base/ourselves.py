"""The command by which a process of ours starts another one, however protokube was installed.

An installed package is found by the interpreter. The single file and the Debian package have a folder of their own
with protokube and all it imports, which no interpreter searches by itself: the command names it. A folder that goes
away with this process cannot be named, since hosts outlive it.
"""

from __future__ import annotations

import sys
from pathlib import Path

import protokube
from protokube.errors import Refused

HOME = Path(protokube.__file__).parents[1]
MARK = ".protokube-folder"
"""A file that a folder of our own has; it says how long the folder stays."""
FOR_THIS_RUN = "this run"


def command(module: str = "protokube", home: Path = HOME) -> list[str]:
    """The command that runs a module of ours as a program. `-P`: root imports nothing from the current directory."""
    if stays(home) is None:
        return [sys.executable, "-P", "-m", module]
    code = f"import sys; sys.path.insert(0, {str(home)!r}); import runpy; "
    return [sys.executable, "-P", "-c", f"{code}runpy.run_module({module!r}, run_name='__main__', alter_sys=True)"]


def prove_kept(home: Path = HOME) -> None:
    """Refused if what we start would lose its program when we end."""
    if stays(home) is False:
        raise Refused(
            "a cluster outlives this command, and would lose its program",
            saw=f"protokube was unpacked into {home} for this run only",
            hint="set PROTOKUBE_CACHE to a directory that only you can write to",
        )


def stays(home: Path) -> bool | None:
    """Whether a folder of our own outlives this process; None if `home` is none, but a place of the interpreter."""
    try:
        return (home / MARK).read_text().strip() != FOR_THIS_RUN
    except OSError:
        return None
