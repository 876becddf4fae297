"""Which blank replacements a member does not need."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from protokube.members.unused import TaggedVolume, spares

A, B = ("main", "a"), ("main", "b")
HOME = TaggedVolume("vol-1", A, 3, "formed")
BLANK = TaggedVolume("vol-2", A, 0, "")


def test_a_blank_volume_beside_one_that_was_in_use_is_a_spare() -> None:
    assert spares([HOME, BLANK], ()) == {"vol-2": "vol-1"}


def test_a_blank_volume_is_needed_if_its_member_has_no_other_or_only_a_superseded_one() -> None:
    assert spares([BLANK], ()) == {}
    assert spares([BLANK, TaggedVolume("vol-3", B, 3, "formed")], ()) == {}
    assert spares([HOME, BLANK], {"vol-1"}) == {}


def test_a_volume_that_is_only_being_formatted_is_still_a_spare() -> None:
    assert spares([HOME, TaggedVolume("vol-2", A, 0, "formatting:1234")], ()) == {"vol-2": "vol-1"}


VOLUMES = st.lists(
    st.builds(
        TaggedVolume,
        st.sampled_from([f"vol-{number}" for number in range(6)]),
        st.sampled_from([A, B]),
        st.integers(0, 2),
        st.sampled_from(["", "forming", "formed", "formatting:1234"]),
    ),
    unique_by=lambda each: each.id,
)


@given(VOLUMES, st.sets(st.sampled_from([f"vol-{number}" for number in range(6)])))
def test_a_member_never_loses_its_last_volume_and_nothing_with_data_is_a_spare(
    volumes: list[TaggedVolume], superseded: set[str]
) -> None:
    found = spares(volumes, superseded)
    by_id = {each.id: each for each in volumes}
    assert all(by_id[spare].is_blank and not by_id[used].is_blank for spare, used in found.items())
    assert not found.keys() & superseded
    assert not set(found.values()) & (found.keys() | superseded)
    assert all(by_id[spare].member == by_id[used].member for spare, used in found.items())
