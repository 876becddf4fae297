"""Which mounts count as checked: this machine's, of this very mount, and none that a note of before is about."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from builders.agent import a_turn, an_identity
from protokube.agent import links
from protokube.agent.volume import verified
from protokube.agent.world import World
from protokube.host import Mount
from protokube.members.identity import Identity, Unreadable

MINE = an_identity(holder="i-1")


@pytest.fixture
def world(tmp_path: Path) -> World:
    return a_turn(tmp_path).world


@pytest.fixture
def mount(world: World) -> Mount:
    point = world.inside("/mnt/master-vol-a")
    return Mount(number=(7, 3), point=point, type="ext4", options=frozenset(), id=36)


def test_a_mount_is_verified_once_it_was_noted(world: World, mount: Mount) -> None:
    assert not verified.is_verified(world, "vol-a", mount, MINE)
    verified.note(world, "vol-a", mount)
    assert verified.is_verified(world, "vol-a", mount, MINE)


def test_a_note_is_about_one_volume_on_one_device_mounted_once(world: World, mount: Mount) -> None:
    verified.note(world, "vol-a", mount)

    assert not verified.is_verified(world, "vol-b", mount, MINE)
    assert not verified.is_verified(world, "vol-a", replace(mount, number=(7, 4)), MINE)
    assert not verified.is_verified(world, "vol-a", replace(mount, id=37), MINE)


@pytest.mark.parametrize("identity", [None, Unreadable("torn"), an_identity(holder="i-2")])
def test_a_disk_that_does_not_name_this_machine_is_never_verified(
    world: World, mount: Mount, identity: Identity | Unreadable | None
) -> None:
    verified.note(world, "vol-a", mount)
    assert not verified.is_verified(world, "vol-a", mount, identity)


def test_a_manifest_link_into_the_mount_says_the_same_as_a_note(world: World, mount: Mount) -> None:
    """Agents of former versions left links and no notes."""
    folder = world.inside(links.DIRECTORY)
    folder.mkdir(parents=True)
    (folder / "etcd.manifest").symlink_to("/mnt/master-vol-a/k8s.io/manifests/etcd.manifest")

    assert verified.is_verified(world, "vol-a", mount, MINE)
    assert not verified.is_verified(world, "vol-a", mount, an_identity(holder="i-2"))


def test_what_is_forgotten_is_checked_again(world: World, mount: Mount) -> None:
    verified.forget(world, "vol-a")  # nothing to forget is nothing
    verified.note(world, "vol-a", mount)
    verified.forget(world, "vol-a")
    assert not verified.is_verified(world, "vol-a", mount, MINE)


def test_notes_of_volumes_that_are_not_mounted_are_pruned(world: World, mount: Mount) -> None:
    verified.prune(world, ())  # before the first note
    verified.note(world, "vol-a", mount)
    verified.note(world, "vol-b", replace(mount, number=(7, 4)))

    verified.prune(world, {"vol-a"})

    assert verified.is_verified(world, "vol-a", mount, MINE)
    assert [each.name for each in world.inside(verified.NOTES.folder).iterdir()] == ["vol-a"]
