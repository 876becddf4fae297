"""The machine that tasks look at and change: its root, its commands and its service manager.

What is hard is `--root`: in the root of an image no process runs and no kernel is ours, so files are written below the
folder, commands run in a chroot, and units are enabled but neither started nor asked. Tasks get paths by `path`, which
follows no symbolic link out of that root: absolute links of an image are meant for the machine that it will be.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from protokube.errors import Refused
from protokube.nodeup.facts import Facts
from protokube.nodeup.values import Asset

CACHE = "/var/cache/protokube/nodeup"
MOST_LINKS = 40
"""As the kernel counts them."""
Say = Callable[[str], None]
"""Reports progress of long work, in one short line."""


@dataclass(frozen=True, slots=True)
class Ran:
    """How a command ended."""

    code: int
    output: str
    """What it wrote, both streams in their order, its last part if long."""


class Commands(Protocol):
    """Runs programs of the machine."""

    def __call__(
        self,
        words: Sequence[str],
        *,
        seconds: float = 600.0,
        environment: dict[str, str] | None = None,
        say: Say | None = None,
    ) -> Ran:
        """Wait until it has ended; TryLater after `seconds`, Refused if there is no such program."""
        ...  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """One machine, or the root of an image of one."""

    facts: Facts
    run: Commands
    root: Path = Path("/")
    cache: str = CACHE
    """Where assets lie, as a path of the machine."""
    bus: str = "SYSTEM"
    """Address of the bus of its systemd."""
    assets: Mapping[str, Asset] = field(default_factory=dict, repr=False)
    """The assets among its tasks, by name: other tasks name them; `assets.cache.with_assets` sets them."""

    @property
    def boots(self) -> bool:
        """Whether a kernel and a systemd run here, which the root of an image has not."""
        return self.root == Path("/")

    def path(self, inside: str) -> Path:
        """Where a path of the machine lies for us. Links above it are followed as the machine itself would."""
        if self.boots:
            return Path(inside)
        above, _, name = inside.rstrip("/").rpartition("/")
        return within(self.root, above) / name

    def resolved(self, inside: str) -> Path:
        """The same with all links followed, also one at the path itself."""
        return Path(os.path.realpath(inside)) if self.boots else within(self.root, inside)


def within(root: Path, inside: str) -> Path:
    """Follow links as in a chroot: an absolute one begins at the root again, and `..` does not lead out of it."""
    left, found, links = deque(inside.split("/")), list[str](), 0
    while left:
        part = left.popleft()
        if part == "..":
            del found[-1:]
        elif part not in ("", "."):
            try:
                target = str(root.joinpath(*found, part).readlink())
            except OSError:  # no link, or nothing at all
                found.append(part)
                continue
            links += 1
            if links > MOST_LINKS:
                raise Refused(f"{inside} leads in a circle", saw=f"a link to {target}", hint="correct the links in it")
            if target.startswith("/"):
                found.clear()
            left.extendleft(reversed(target.split("/")))
    return root.joinpath(*found)
