"""Manifests that live on a volume and are linked from where the kubelet looks.

The link exists if and only if the verified volume is mounted, so that etcd cannot start without its disk.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

from protokube.agent.world import World
from protokube.host.files import remove as remove_file

DIRECTORY = "/etc/kubernetes/manifests"


def all_links(world: World) -> Iterator[tuple[Path, Path]]:
    """Each link below the kubelet's directory that leads to a mounted volume's place, with its target."""
    folder = world.inside(DIRECTORY)
    if not folder.is_dir():
        return
    for each in sorted(folder.iterdir()):
        if each.is_symlink():
            target = world.inside(each.readlink())
            if target.parts[: len(world.inside("/mnt").parts)] == world.inside("/mnt").parts:
                yield each, target


def pointing_into(world: World, point: Path) -> list[Path]:
    return [link for link, target in all_links(world) if target.is_relative_to(point)]


def dangling(world: World, points: Collection[Path]) -> list[Path]:
    """Links into volumes that are not mounted."""
    return [link for link, target in all_links(world) if not any(target.is_relative_to(point) for point in points)]


def remove(link: Path) -> None:
    remove_file(link)
