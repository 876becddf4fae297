"""A component's own key folder: copies of the files it uses, so that its pod can mount these and no others."""

from __future__ import annotations

import stat
from collections.abc import Sequence
from pathlib import Path

from protokube.errors import TryLater
from protokube.pki.files import PRIVATE, PUBLIC, content_of, replace_files, restore_mode

CLOSED = 0o700


def give(directory: Path, component: str, names: Sequence[str]) -> list[str]:
    """Copy these files of a directory into the subfolder named after the component; say what changed.

    Other files in that folder stay.
    """
    folder, news = directory / component, list[str]()
    try:
        folder.mkdir(mode=CLOSED, parents=True, exist_ok=True)
        if restore_mode(folder, CLOSED):
            news.append(f"{component}: others could look into its folder, no longer")
        files = [(folder / name, (directory / name).read_bytes(), mode_of(name)) for name in sorted(names)]
        changed = [(path, data, mode) for path, data, mode in files if not _holds(path, data, mode)]
        if changed:
            replace_files(changed)
    except OSError as error:
        raise TryLater(
            f"cannot give {component} its keys in {folder}",
            saw=f"{error.strerror} ({error.filename})",
            hint="make room on that disk, or mend it; what is missing is written again by itself",
        ) from error
    return [*news, *(f"{component}/{path.name}: written" for path, _, _ in changed)]


def mode_of(name: str) -> int:
    return PRIVATE if name.endswith(".key") else PUBLIC


def _holds(path: Path, data: bytes, mode: int) -> bool:
    return content_of(path) == data and stat.S_IMODE(path.stat().st_mode) == mode
