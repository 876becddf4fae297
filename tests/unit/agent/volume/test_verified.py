"""Which mounts count as checked: this machine's, of this very mount, and none that a note of before is about."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from builders.agent import a_round, an_identity
from protokube.agent import links
from protokube.agent.edges import Edges
from protokube.agent.volume import verified
from protokube.host import Mount
from protokube.members.identity import Identity, Unreadable

MINE = an_identity(holder="i-1")


@pytest.fixture
def edges(tmp_path: Path) -> Edges:
    return a_round(tmp_path).edges


@pytest.fixture
def mount(edges: Edges) -> Mount:
    point = edges.inside("/mnt/master-vol-a")
    return Mount(number=(7, 3), point=point, type="ext4", options=frozenset(), id=36)


def test_a_mount_is_verified_once_it_was_noted(edges: Edges, mount: Mount) -> None:
    assert not verified.is_verified(edges, "vol-a", mount, MINE)
    verified.note(edges, "vol-a", mount)
    assert verified.is_verified(edges, "vol-a", mount, MINE)


def test_a_note_is_about_one_volume_on_one_device_mounted_once(edges: Edges, mount: Mount) -> None:
    verified.note(edges, "vol-a", mount)

    assert not verified.is_verified(edges, "vol-b", mount, MINE)
    assert not verified.is_verified(edges, "vol-a", replace(mount, number=(7, 4)), MINE)
    assert not verified.is_verified(edges, "vol-a", replace(mount, id=37), MINE)


@pytest.mark.parametrize("identity", [None, Unreadable("torn"), an_identity(holder="i-2")])
def test_a_disk_that_does_not_name_this_machine_is_never_verified(
    edges: Edges, mount: Mount, identity: Identity | Unreadable | None
) -> None:
    verified.note(edges, "vol-a", mount)
    assert not verified.is_verified(edges, "vol-a", mount, identity)


def test_a_manifest_link_into_the_mount_says_the_same_as_a_note(edges: Edges, mount: Mount) -> None:
    """Agents of former versions left links and no notes."""
    folder = edges.inside(links.DIRECTORY)
    folder.mkdir(parents=True)
    (folder / "etcd.manifest").symlink_to("/mnt/master-vol-a/k8s.io/manifests/etcd.manifest")

    assert verified.is_verified(edges, "vol-a", mount, MINE)
    assert not verified.is_verified(edges, "vol-a", mount, an_identity(holder="i-2"))


def test_what_is_forgotten_is_checked_again(edges: Edges, mount: Mount) -> None:
    verified.forget(edges, "vol-a")  # nothing to forget is nothing
    verified.note(edges, "vol-a", mount)
    verified.forget(edges, "vol-a")
    assert not verified.is_verified(edges, "vol-a", mount, MINE)


def test_notes_of_volumes_that_are_not_mounted_are_pruned(edges: Edges, mount: Mount) -> None:
    verified.prune(edges, ())  # before the first note
    verified.note(edges, "vol-a", mount)
    verified.note(edges, "vol-b", replace(mount, number=(7, 4)))

    verified.prune(edges, {"vol-a"})

    assert verified.is_verified(edges, "vol-a", mount, MINE)
    assert [each.name for each in edges.inside(verified.NOTES.folder).iterdir()] == ["vol-a"]
