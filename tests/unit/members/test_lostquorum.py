"""Volumes that are gone for good: when a quorum can no longer come back by itself."""

from __future__ import annotations

import pytest

from protokube.members.lostquorum import quorum_lost, quorum_of


@pytest.mark.parametrize(
    ("members", "gone", "lost"), [(1, 1, True), (3, 0, False), (3, 1, False), (3, 2, True), (5, 2, False), (5, 3, True)]
)
def test_a_quorum_is_lost_once_fewer_volumes_than_a_quorum_are_left(members: int, gone: int, lost: bool) -> None:
    volumes = {short: f"vol-{short}" for short in "abcde"[:gone]}

    assert (quorum_lost("main", volumes, members) is not None) == lost
    assert (members - gone < quorum_of(members)) == lost


def test_it_names_the_volumes_and_what_to_do() -> None:
    why = quorum_lost("main", {"b": "vol-2", "a": ""}, 3)

    assert why is not None
    assert why.message == (
        "gone for good: the volumes of main/a, main/b (vol-2); main keeps 1 of 3 volumes and needs 2 for a quorum"
    )
    assert why.hint.startswith("keep every volume that is left")
