"""Debian packages with the libraries they need, for images: unpacked, never installed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from protokube.binaries import executables
from protokube.images.build import FOLDERS

NEW = re.compile(r"^Inst (lib\S+|\S+-libs) ", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """A package, unpacked."""

    root: Path
    libraries: tuple[Path, ...]
    """Roots of unpacked library packages that this machine lacks."""

    @property
    def library_folders(self) -> tuple[Path, ...]:
        """Their folders, for LD_LIBRARY_PATH."""
        folders = (folder for root in self.libraries for inside in FOLDERS for folder in sorted(root.glob(inside)))
        return tuple(folder for folder in folders if any(folder.glob("*.so*")))


def unpack_whole(name: str, cache: Path) -> Package:
    root, note = executables.unpack(name, cache), cache / f".{name}.libraries"
    if not note.exists():
        draft = note.with_name(f"{note.name}.draft")
        draft.write_text("".join(f"{each}\n" for each in missing_libraries(name)))
        draft.replace(note)
    return Package(root=root, libraries=tuple(executables.unpack(each, cache) for each in note.read_text().split()))


def missing_libraries(name: str) -> Sequence[str]:
    """The libraries that apt-get would install with the package."""
    return libraries_of(executables.ask(["apt-get", "--simulate", "--no-install-recommends", "install", name]))


def libraries_of(simulated: str) -> Sequence[str]:
    """The library packages in the output of `apt-get --simulate install`."""
    return sorted(set(NEW.findall(simulated)))
