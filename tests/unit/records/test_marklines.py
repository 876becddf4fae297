"""The encoding of marks: compact, and every mark can be decoded again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protokube.records.marklines import LONGEST_LINE, can_be_written, lines_of, marks_in
from protokube.records.owners import Mark

WORDS = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=20)
TYPES = st.sampled_from(["A", "AAAA", "CNAME"])
ANY = st.builds(
    lambda *parts: Mark(owner=parts[0], type=parts[1], value=parts[2], by=parts[3]), WORDS, TYPES, WORDS, WORDS
)
TIGHT = st.text("a1./:-", min_size=1, max_size=6)
"""Words that have much in common."""
ALIKE = st.builds(
    lambda owner, value, by: Mark(owner=owner, type="A", value=value, by=f"service/d/s>node/{by}"),
    st.sampled_from("op"), TIGHT, TIGHT,
)  # fmt: skip
SEVERAL = st.sets(ALIKE | ANY, max_size=12)


def node_marks(count: int, owner: str = "o") -> set[Mark]:
    return {
        Mark(
            owner=owner, type="A", value=f"10.0.{number // 250}.{number % 250}",
            by=f"service/default/web>node/ip-10-0-{number // 250}-{number % 250}.eu-west-1.compute.internal",
        )
        for number in range(count)
    }  # fmt: skip


def read(lines: set[str]) -> set[Mark]:
    return {mark for line in lines for mark in marks_in(line)}


@given(ANY)
def test_a_mark_that_was_written_is_read_back(mark: Mark) -> None:
    assert marks_in(str(mark)) == (mark,)
    assert can_be_written(mark)


@given(SEVERAL)
def test_many_marks_that_were_written_are_read_back_each_once(marks: set[Mark]) -> None:
    lines = lines_of(marks)

    assert read(lines) == marks
    assert sum(len(marks_in(line)) for line in lines) == len(marks)
    assert lines_of(sorted(marks, reverse=True)) == lines
    assert all(len({mark.owner for mark in marks_in(line)}) == 1 for line in lines)


@given(SEVERAL)
def test_what_was_written_one_to_a_line_reads_the_same(marks: set[Mark]) -> None:
    assert read({str(mark) for mark in marks}) == read(lines_of(marks))


@given(st.one_of(st.text(max_size=40), st.builds("protokube/1 {} A {} {}".format, st.text(), st.text(), st.text())))
def test_any_text_is_a_mark_that_reads_the_same_or_none(text: str) -> None:
    marks = marks_in(text)

    assert marks == () or str(marks[0]) == text


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
        "protokube/1 o A 10.0.0.* 1,2=b pod/d/*",
        "protokube/1 o A 10.0.0.* 1=a=b,2=b pod/d/*",
        "protokube/1 o A 10.0.0.* 1=a,2=b pod/d/x",
        "protokube/1 o A 10.0.0.* 1=a,2=b pod/*/*",
        "protokube/1 o A 10.*.0.* 1,2 pod/d/x",
        "protokube/1 o A 10.0.0.1 1,2 pod/d/x",
        "protokube epoch=3 holder=i-1",
        "",
    ],
)
def test_what_is_not_exactly_a_mark_is_nobodys(text: str) -> None:
    assert marks_in(text) == ()


def test_a_value_alone_has_a_line_that_says_it_in_full() -> None:
    assert lines_of([Mark(owner="o", type="A", value="192.0.2.7", by="service/default/web>node/n1")]) == {
        "protokube/1 o A 192.0.2.7 service/default/web>node/n1"
    }


def test_what_marks_have_in_common_is_written_once() -> None:
    pods = {Mark(owner="o", type="A", value=f"10.0.0.{number}", by=f"pod/d/web-{number}x") for number in (1, 2, 11)}
    balancer = {Mark(owner="o", type="A", value=f"192.0.2.{number}", by="service/d/web") for number in (8, 9)}
    nodes = {mark for mark in node_marks(252) if mark.value.endswith((".1", ".2"))} & node_marks(3)

    assert lines_of(pods | balancer) == {
        "protokube/1 o A 10.0.0.* 11=11x,1=1x,2=2x pod/d/web-*",
        "protokube/1 o A 192.0.2.* 8,9 service/d/web",
    }
    assert lines_of(nodes) == {
        "protokube/1 o A 10.0.0.* 1=1,2=2 service/default/web>node/ip-10-0-0-*.eu-west-1.compute.internal"
    }


def test_no_line_of_many_is_longer_than_it_may_be_and_one_strange_name_costs_little() -> None:
    marks = node_marks(400)
    strange = Mark(owner="o", type="A", value="203.0.113.77", by="service/default/web>node/spare")
    lines, more = lines_of(marks), lines_of(marks | {strange})

    assert max(map(len, more)) <= LONGEST_LINE
    assert sum(map(len, lines)) < 400 * 20
    assert sum(map(len, more)) < sum(map(len, lines)) + LONGEST_LINE
    assert len({*lines} ^ {*more}) <= 4, "most lines stay as they are"
