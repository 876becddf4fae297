"""Whether a master must stop serving what it has mounted."""

from __future__ import annotations

from dataclasses import replace

import pytest

from builders.agent import a_volume, an_identity
from protokube.agent.volume.fence import reason
from protokube.members.identity import Identity, Unreadable
from protokube.providers.volumes import Volume

HELD = a_volume(attached_to="i-1", epoch=3)


@pytest.mark.parametrize(
    ("listed", "identity", "says"),
    [
        (HELD, an_identity(epoch=3), ""),
        (HELD, an_identity(epoch=4), ""),  # the provider is behind: it is written again
        (HELD, None, ""),
        (HELD, Unreadable("not JSON"), ""),  # refused where it is decided what to start, not here
        (None, an_identity(), "the provider says that it does not exist"),
        (a_volume(attached_to="i-2", epoch=3), an_identity(), "it is attached to i-2"),
        (a_volume(attached_to=None, epoch=3), an_identity(), "it is attached to nobody"),
        (a_volume(attached_to="i-2", epoch=9), Unreadable("no answer"), "it is attached to i-2"),
        (a_volume(attached_to="i-1", epoch=4), an_identity(epoch=3), "epoch 4 was seen, ours is 3"),
    ],
)
def test_a_holder_stops_if_the_volume_is_elsewhere_or_a_greater_epoch_was_seen(
    listed: Volume | None, identity: Identity | Unreadable | None, says: str
) -> None:
    assert reason(listed, identity, "i-1") == says


AHEAD = a_volume(attached_to="i-1", epoch=9, epoch_of="vol-a/g1")


def test_a_mount_that_was_not_verified_stays_mounted_though_a_greater_epoch_was_seen() -> None:
    """It does not serve: its disk is an older copy, and is shown to a person as it is."""
    assert reason(AHEAD, an_identity(epoch=3), "i-1", verified=False) == ""
    assert reason(AHEAD, an_identity(epoch=3), "i-1", verified=True) == "epoch 9 was seen, ours is 3"


def test_a_mount_that_was_not_verified_is_left_all_the_same_if_the_volume_is_elsewhere() -> None:
    assert reason(replace(AHEAD, attached_to="i-2"), an_identity(), "i-1", verified=False) == "it is attached to i-2"
    assert reason(None, an_identity(), "i-1", verified=False) == "the provider says that it does not exist"


@pytest.mark.parametrize("written_for", ["vol-b/g1", "vol-a/g2", "vol-b/g2"])
def test_an_epoch_that_was_written_for_another_volume_or_generation_is_ignored(written_for: str) -> None:
    """Tags get copied from one volume to another."""
    for verified in (True, False):
        assert reason(replace(AHEAD, epoch_of=written_for), an_identity(epoch=3), "i-1", verified=verified) == ""


def test_an_epoch_of_a_former_version_names_nothing_and_counts() -> None:
    assert reason(replace(AHEAD, epoch_of=""), an_identity(epoch=3), "i-1") == "epoch 9 was seen, ours is 3"
