"""Untrusted text: valid entries count, the rest is reported briefly."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protokube.controllers.dns.read.annotations import (
    LONGEST_SHOWN,
    MOST_NAMES,
    MOST_WRONGS,
    Wrongs,
    addresses_of,
    names_by_view,
    names_of,
)
from protokube.controllers.dns.read.objects import Annotations
from protokube.records.names import normalise, normalise_address, problem
from protokube.records.owners import mark_name, marked_name

DOCS = Path(__file__).parents[5] / "docs"


def test_the_good_names_of_a_list_count_also_beside_bad_ones() -> None:
    wrongs = Wrongs()

    assert names_of(["a.example.com", "-b.example.com", "c.example.com"], wrongs) == (
        "a.example.com",
        "c.example.com",
    )
    assert wrongs.all() == ("'-b.example.com' is not a name we can publish: the label '-b'",)


@pytest.mark.parametrize("name", ["_protokube.example.com", "a._protokube-star.example.com", "_PROTOKUBE2.example.com"])
def test_names_of_our_own_marks_are_not_given_to_anybody(name: str) -> None:
    wrongs = Wrongs()

    assert names_of([name], wrongs) == ()
    assert "kept for our own marks" in wrongs.all()[0]


@pytest.mark.parametrize(("star", "most"), [("", 242), ("*.", 239)])
def test_a_name_is_as_long_as_its_mark_allows_and_our_pages_say(star: str, most: int) -> None:
    tail = ".".join(["x" * 49] * 4)
    longest, wrongs = f"{star}{'a' * (most - len(star) - len(tail) - 1)}.{tail}", Wrongs()

    assert len(longest) == most
    assert names_of([longest], wrongs) == (longest,)
    assert wrongs.all() == ()
    assert names_of([f"{star}a{longest.removeprefix(star)}"], wrongs) == ()
    assert "its mark would not fit" in wrongs.all()[0]
    for page in ("dns-controller.md", "decisions/0015-dns-controller.md"):
        text = " ".join((DOCS / page).read_text().split())
        assert (f"a wildcard name {most}" if star else f"{most} characters") in text


def test_an_annotation_with_thousands_of_names_gives_only_so_many() -> None:
    wrongs = Wrongs()

    assert len(names_of((f"n{number}.example.com" for number in range(5000)), wrongs)) == MOST_NAMES
    assert wrongs.all() == (f"5000 names, only the first {MOST_NAMES} count",)


def test_thousands_of_bad_names_are_told_in_a_few_lines() -> None:
    wrongs = Wrongs()
    names_of((f"-{number}" + "x" * 5000 for number in range(5000)), wrongs)

    lines = wrongs.all()
    assert len(lines) == MOST_WRONGS + 1
    assert lines[-1] == f"and {5000 - MOST_WRONGS} more like these"
    assert all(len(line) < 4 * LONGEST_SHOWN for line in lines)


def test_texts_of_any_length_are_turned_away() -> None:
    wrongs = Wrongs()

    assert names_of(["a." * 100_000 + "com", "é" * 100_000], wrongs) == ()
    assert addresses_of(["1" * 100_000, "fe80::1%" + "x" * 100_000], wrongs) == ()
    assert len(wrongs.all()) == 4


@given(st.text(), st.text())
def test_whatever_is_written_names_come_out_in_their_one_form_or_are_told(internal: str, external: str) -> None:
    wrongs = Wrongs()
    found = names_by_view(Annotations(internal=internal, external=external), wrongs)

    for names in found.values():
        assert names
        for name in names:
            assert normalise(name) == name
            assert not problem(mark_name(name))
            assert marked_name(name) is None
    assert all(line.isascii() and line.isprintable() for line in wrongs.all())


@given(
    st.lists(
        st.one_of(
            st.none(),
            st.text(max_size=20),
            st.ip_addresses().map(str),
            st.sampled_from(["::ffff:10.0.0.1", "255.255.255.255", "fe80::1%eth0", "2001:db8::1%1", "127.9.9.9"]),
        )
    )
)
def test_whatever_is_reported_addresses_come_out_in_their_one_form_or_are_told(texts: list[str | None]) -> None:
    wrongs = Wrongs()
    found = addresses_of(texts, wrongs)

    assert list(found) == sorted(set(found))
    assert all(normalise_address(address) == address for address in found)
    assert not {"::ffff:10.0.0.1", "::ffff:a00:1", "255.255.255.255", "127.9.9.9"} & set(found)
    assert bool(wrongs.all()) == bool({text for text in texts if text and not addresses_of([text], Wrongs())})
