"""Manifests that live on a volume and are linked from where the kubelet looks.

The link exists if and only if the verified volume is mounted, so that etcd cannot start without its disk.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Collection, Iterator
from pathlib import Path

from protokube.agent.world import Home, Turn, World
from protokube.host.files import remove as remove_file

DIRECTORY = "/etc/kubernetes/manifests"


def all_links(world: World) -> Iterator[tuple[Path, str]]:
    """Each link below the kubelet's directory that leads to a mounted volume's place, with its target."""
    try:
        names = sorted(entry.name for entry in os.scandir(world.inside(DIRECTORY)) if entry.is_symlink())
    except (FileNotFoundError, NotADirectoryError):
        return
    for name in names:
        link = world.inside(f"{DIRECTORY}/{name}")
        if is_below(target := _target(world, link), str(world.inside("/mnt"))):
            yield link, target


def leads_into(world: World, link: Path, point: Path) -> bool:
    try:
        return is_below(_target(world, link), str(point))
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.EINVAL):  # there is none, or it is no link
            raise
        return False


def link_of(turn: Turn, home: Home) -> Path:
    """Where the kubelet finds the manifest of this member."""
    return turn.world.inside(f"{DIRECTORY}/{home.etcd.pod.file_name}")


def is_linked(turn: Turn, home: Home) -> bool:
    return leads_into(turn.world, link_of(turn, home), home.point)


def pointing_into(world: World, point: Path) -> list[Path]:
    return [link for link, target in all_links(world) if is_below(target, str(point))]


def dangling(world: World, points: Collection[Path]) -> list[Path]:
    """Links into volumes that are not mounted."""
    return [link for link, target in all_links(world) if not any(is_below(target, str(each)) for each in points)]


def is_below(path: str, folder: str) -> bool:
    """Whether a path is in a folder, by their names alone; as text, since every round asks it often."""
    return path == folder or path.startswith(f"{folder}/")


def _target(world: World, link: Path) -> str:
    return str(world.inside(os.readlink(link)))  # noqa: PTH115


def remove(link: Path) -> None:
    remove_file(link)
