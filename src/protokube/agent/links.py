"""Manifests that live on a volume and are linked from where the kubelet looks.

The link exists if and only if the verified volume is mounted, so that etcd cannot start without its disk.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from pathlib import Path

from protokube.agent.world import World
from protokube.host.files import remove as remove_file

DIRECTORY = "/etc/kubernetes/manifests"


def all_links(world: World) -> Iterator[tuple[Path, Path]]:
    """Each link below the kubelet's directory that leads to a mounted volume's place, with its target."""
    volumes = world.inside("/mnt")
    try:
        names = sorted(entry.name for entry in os.scandir(world.inside(DIRECTORY)) if entry.is_symlink())
    except (FileNotFoundError, NotADirectoryError):
        return
    for name in names:
        link = world.inside(DIRECTORY) / name
        target = world.inside(link.readlink())
        if target.is_relative_to(volumes):
            yield link, target


def leads_into(world: World, link: Path, point: Path) -> bool:
    return link.is_symlink() and world.inside(link.readlink()).is_relative_to(point)


def pointing_into(world: World, point: Path) -> list[Path]:
    return [link for link, target in all_links(world) if target.is_relative_to(point)]


def dangling(world: World, points: Collection[Path]) -> list[Path]:
    """Links into volumes that are not mounted."""
    return [link for link, target in all_links(world) if not any(target.is_relative_to(point) for point in points)]


def remove(link: Path) -> None:
    remove_file(link)
