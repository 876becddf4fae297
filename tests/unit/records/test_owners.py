"""Marks: the owner of each value, in a TXT record."""

from __future__ import annotations

import pytest

from protokube.records.names import normalise
from protokube.records.owners import mark_name, marked_name


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("web.dev", "_protokube.web.dev"),
        ("*.web.dev", "_protokube-star.web.dev"),
        ("dev", "_protokube.dev"),
        ("*.dev", "_protokube-star.dev"),
    ],
)
def test_the_marks_of_a_name_lie_at_a_name_of_their_own(name: str, place: str) -> None:
    assert mark_name(name) == place
    assert normalise(place) == place
    assert marked_name(place) == name


@pytest.mark.parametrize("name", ["web.dev", "*.dev", "_protokube", "_protokube-star", "x_protokube.dev", "_proto.dev"])
def test_at_other_names_lie_no_marks(name: str) -> None:
    assert marked_name(name) is None


def test_no_two_names_have_their_marks_at_one_place() -> None:
    names = [star + name for star in ("", "*.") for name in ("dev", "a.dev", "star.dev", "a.star.dev", "x.a.dev")]

    assert len({mark_name(name) for name in names}) == len(names)
