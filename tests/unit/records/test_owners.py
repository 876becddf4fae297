"""Whose a value is, written beside it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protokube.records.names import normalise
from protokube.records.owners import Mark, mark_name, marked_name, parse_mark

WORDS = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=20)


@given(WORDS, st.sampled_from(["A", "AAAA", "CNAME"]), WORDS, WORDS)
def test_a_mark_that_was_written_is_read_back(owner: str, kind: str, value: str, by: str) -> None:
    mark = Mark(owner=owner, type=kind, value=value, by=by)

    assert parse_mark(str(mark)) == mark


@given(st.one_of(st.text(max_size=40), st.builds("protokube/1 {} A {} {}".format, st.text(), st.text(), st.text())))
def test_any_text_is_a_mark_that_reads_the_same_or_none(text: str) -> None:
    mark = parse_mark(text)

    assert mark is None or str(mark) == text


@pytest.mark.parametrize(
    "text",
    [
        "protokube/2 o A 10.0.0.1 pod/x",
        "protokube/1 o MX 10.0.0.1 pod/x",
        "protokube/1 o A 10.0.0.1",
        "protokube/1 o A 10.0.0.1 pod/x more",
        "protokube/1  o A 10.0.0.1 pod/x",
        " protokube/1 o A 10.0.0.1 pod/x",
        "protokube/1 o A 10.0.0.1 pod/x\n",
        "protokube epoch=3 holder=i-1",
        "",
    ],
)
def test_what_is_not_exactly_a_mark_is_nobodys(text: str) -> None:
    assert parse_mark(text) is None


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
