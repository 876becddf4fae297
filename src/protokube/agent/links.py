"""Manifests that live on a volume and are linked from where the kubelet looks.

The link exists if and only if the verified volume is mounted, so that etcd cannot start without its disk.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Collection, Iterator
from pathlib import Path

from protokube.agent.edges import Edges
from protokube.agent.round import MountedVolume, Round
from protokube.host.files import remove as remove_file

DIRECTORY = "/etc/kubernetes/manifests"


def all_links(edges: Edges) -> Iterator[tuple[Path, str]]:
    """Each link in the kubelet's directory that points below /mnt, where volumes are mounted, with its target."""
    try:
        names = sorted(entry.name for entry in os.scandir(edges.inside(DIRECTORY)) if entry.is_symlink())
    except (FileNotFoundError, NotADirectoryError):
        return
    for name in names:
        link = edges.inside(f"{DIRECTORY}/{name}")
        if is_below(target := _target(edges, link), str(edges.inside("/mnt"))):
            yield link, target


def leads_into(edges: Edges, link: Path, point: Path) -> bool:
    try:
        return is_below(_target(edges, link), str(point))
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.EINVAL):  # it does not exist, or is not a link
            raise
        return False


def link_of(round_: Round, disk: MountedVolume) -> Path:
    """The path where the kubelet finds the manifest of this member."""
    return round_.edges.inside(f"{DIRECTORY}/{disk.etcd.pod.file_name}")


def is_linked(round_: Round, disk: MountedVolume) -> bool:
    return leads_into(round_.edges, link_of(round_, disk), disk.point)


def pointing_into(edges: Edges, point: Path) -> list[Path]:
    return [link for link, target in all_links(edges) if is_below(target, str(point))]


def dangling(edges: Edges, points: Collection[Path]) -> list[Path]:
    """Links into volumes that are not mounted."""
    return [link for link, target in all_links(edges) if not any(is_below(target, str(each)) for each in points)]


def is_below(path: str, folder: str) -> bool:
    """Whether a path is in a folder, by its text alone: every round calls this often."""
    return path == folder or path.startswith(f"{folder}/")


def _target(edges: Edges, link: Path) -> str:
    return str(edges.inside(os.readlink(link)))  # noqa: PTH115


def remove(link: Path) -> None:
    remove_file(link)
