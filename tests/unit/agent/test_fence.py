"""Whether a master must stop serving what it has mounted."""

from __future__ import annotations

import pytest

from helpers_agent import a_volume, an_identity
from protokube.agent.fence import reason
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
        (None, an_identity(), "the provider does not list it any more"),
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
