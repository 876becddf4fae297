"""Our block in a hosts file; not a byte outside of it changes."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.examples import examples
from protokube.records import Record
from protokube.records.hostsfile import BEGIN, END, parse_hosts, render_hosts
from protokube.records.names import make_record

LOCAL = "127.0.0.1\tlocalhost\n::1 localhost ip6-localhost\n"
KOPS_BEGIN = "# Begin host entries managed by kops - do not edit"
KOPS_END = "# End host entries managed by kops"

A = make_record("etcd-a.internal.dev", "A", ["10.0.0.1"], 5)
TEXT = make_record("etcd-a.internal.dev", "TXT", ["protokube epoch=1 holder=i-1"], 5)
API = make_record("api.dev", "A", ["10.0.0.2", "10.0.0.1"], 10)
SIX = make_record("api.dev", "AAAA", ["2001:db8::1"], 10)


def test_a_block_is_appended_sorted_between_its_guards() -> None:
    assert render_hosts(LOCAL, [TEXT, A, API, SIX]) == (
        f"{LOCAL}{BEGIN}\n"
        '# TXT etcd-a.internal.dev ttl 5 "protokube epoch=1 holder=i-1"\n'
        "10.0.0.1\tapi.dev\t# ttl 10\n"
        "10.0.0.1\tetcd-a.internal.dev\t# ttl 5\n"
        "10.0.0.2\tapi.dev\t# ttl 10\n"
        "2001:db8::1\tapi.dev\t# ttl 10\n"
        f"{END}\n"
    )


def test_what_was_written_is_read_back() -> None:
    assert parse_hosts(render_hosts(LOCAL, [TEXT, A, API, SIX])) == (API, SIX, A, TEXT)


def test_the_same_records_leave_the_text_as_it_is() -> None:
    text = render_hosts(LOCAL, [A, TEXT])

    assert render_hosts(text, [TEXT, A]) == text


def test_only_the_block_is_read() -> None:
    assert parse_hosts("10.0.0.9 etcd-a.internal.dev\n") == ()


def test_without_records_there_is_no_block_and_nothing_else_has_changed() -> None:
    assert render_hosts(LOCAL, []) == LOCAL
    assert render_hosts(render_hosts(LOCAL, [A]), []) == LOCAL


def test_a_block_stays_where_it_is() -> None:
    text = f"first\n{BEGIN}\nold\n{END}\nlast\n"

    assert render_hosts(text, [A]) == f"first\n{BEGIN}\n10.0.0.1\tetcd-a.internal.dev\t# ttl 5\n{END}\nlast\n"


def test_a_last_line_without_an_end_gets_one() -> None:
    assert render_hosts("127.0.0.1 localhost", [A]).startswith(f"127.0.0.1 localhost\n{BEGIN}\n")
    assert render_hosts("127.0.0.1 localhost", []) == "127.0.0.1 localhost"


def test_a_block_at_the_start_of_an_empty_file() -> None:
    assert render_hosts("", [A]).startswith(BEGIN)
    assert parse_hosts(render_hosts("", [A])) == (A,)


def test_the_block_of_the_original_is_read_and_replaced() -> None:
    text = f"{LOCAL}\n{KOPS_BEGIN}\n10.0.0.1\tapi.dev api.internal.dev\n10.0.0.2\tapi.dev\n{KOPS_END}\n"

    assert parse_hosts(text) == (
        make_record("api.dev", "A", ["10.0.0.1", "10.0.0.2"], 60),
        make_record("api.internal.dev", "A", ["10.0.0.1"], 60),
    )
    assert render_hosts(text, [A]) == (f"{LOCAL}\n{BEGIN}\n10.0.0.1\tetcd-a.internal.dev\t# ttl 5\n{END}\n")


def test_several_blocks_become_one() -> None:
    text = f"{BEGIN}\n10.0.0.1\ta.dev\t# ttl 5\n{END}\nbetween\n{KOPS_BEGIN}\n10.0.0.2\tb.dev\n{KOPS_END}\nlast\n"

    assert [record.name for record in parse_hosts(text)] == ["a.dev", "b.dev"]
    assert render_hosts(text, [A]) == f"{BEGIN}\n10.0.0.1\tetcd-a.internal.dev\t# ttl 5\n{END}\nbetween\nlast\n"


def test_a_block_whose_end_is_missing_costs_nobody_a_line() -> None:
    text = f'{LOCAL}{BEGIN}\n10.0.0.1\ta.dev\t# ttl 5\n# TXT a.dev ttl 5 "x"\n10.9.9.9 printer\n# a note\n'

    assert [record.key for record in parse_hosts(text)] == [("a.dev", "A"), ("a.dev", "TXT")]
    assert render_hosts(text, []) == f"{LOCAL}10.9.9.9 printer\n# a note\n"


def test_a_block_that_begins_twice_costs_nobody_a_line() -> None:
    text = f"{BEGIN}\n10.9.9.9 printer\n{BEGIN}\n10.0.0.1\ta.dev\t# ttl 5\n{END}\n"

    assert render_hosts(text, []) == "10.9.9.9 printer\n"
    assert [record.name for record in parse_hosts(text)] == ["a.dev"]


def test_an_end_that_nothing_began_goes_away() -> None:
    assert render_hosts(f"{LOCAL}{END}\nlast\n", []) == f"{LOCAL}last\n"
    assert render_hosts(f"{LOCAL}{END}\nlast\n", [A]).endswith(f"{END}\nlast\n")


@pytest.mark.parametrize(
    "line",
    [
        "10.0.0.1",
        "garbage",
        "10.0.0.999\ta.dev\t# ttl 5",
        "10.0.0.1\ta..dev\t# ttl 5",
        '# TXT a.dev ttl 5 "\\x"',
        '# TXT a..dev ttl 5 "x"',
        "# TXT a.dev ttl 5 x",
        "# a comment",
        "",
    ],
)
def test_what_cannot_be_read_inside_the_block_is_nothing(line: str) -> None:
    assert parse_hosts(f"{BEGIN}\n{line}\n{END}\n") == ()


def test_lines_that_do_not_agree_on_the_ttl_count_as_the_shortest() -> None:
    text = f"{BEGIN}\n10.0.0.1\ta.dev\t# ttl 60\n10.0.0.2\ta.dev\t# ttl 5\n{END}\n"

    assert parse_hosts(text) == (make_record("a.dev", "A", ["10.0.0.1", "10.0.0.2"], 5),)


def test_a_text_with_anything_in_it_stays_one_line() -> None:
    strange = make_record("a.dev", "TXT", ['say "x"\n# End', "tab\t\\", "\udcff", "\x00ü"], 5)

    text = render_hosts(LOCAL, [strange])

    assert parse_hosts(text) == (strange,)
    assert text.count("\n") == LOCAL.count("\n") + 2 + 4


LINES = st.lists(
    st.one_of(
        st.sampled_from(
            [
                BEGIN,
                END,
                KOPS_BEGIN,
                KOPS_END,
                f"  {BEGIN}\r",
                "10.0.0.1\ta.dev\t# ttl 5",
                "10.0.0.1 a.dev b.dev",
                "# note",
                "",
                "\x0b\x0c\x85",
            ]
        ),
        st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]), max_size=12),
    ),
    max_size=12,
)
TEXTS = st.builds(lambda lines, end: "\n".join(lines) + end, LINES, st.sampled_from(["", "\n"]))
VALUES = st.sets(st.sampled_from(["10.0.0.1", "10.0.0.2", "10.0.0.3"]), min_size=1)
RECORDS = st.lists(
    st.one_of(
        st.builds(
            lambda n, v, t: make_record(f"{n}.dev", "A", v, t), st.sampled_from("abc"), VALUES, st.integers(0, 99)
        ),
        st.builds(lambda n, v: make_record(f"{n}.dev", "TXT", [v], 5), st.sampled_from("abc"), st.text(max_size=9)),
    ),
    max_size=5,
    unique_by=lambda record: record.key,
)


def foreign(text: str) -> list[str]:
    """The lines outside of closed blocks that cannot be taken for ours."""
    ours = re.compile(
        r"\S+\t\S+\t# ttl [0-9]+|# TXT .*|# (Begin|End) host entries managed by (protokube|kops)( - do.*)?"
    )
    return [line for line in text.split("\n") if not ours.fullmatch(line.strip())]


@examples(100)
@given(TEXTS, RECORDS)
def test_any_file_holds_exactly_the_records_afterwards_and_again(text: str, records: list[Record]) -> None:
    after = render_hosts(text, records)

    assert parse_hosts(after) == tuple(sorted(records))
    assert render_hosts(after, records) == after


@examples(100)
@given(TEXTS, RECORDS)
def test_a_block_that_comes_and_goes_leaves_nothing_behind(text: str, records: list[Record]) -> None:
    without = render_hosts(text, [])

    assert render_hosts(render_hosts(text, records), []) in (without, without + "\n")


GUARD = r"[^\S\n]*# {} host entries managed by (?:protokube|kops){}[^\S\n]*"
CLOSED_BLOCK = re.compile(
    "^" + GUARD.format("Begin", " - do not edit") + r"\n"
    r"(?:(?![^\S\n]*# Begin host entries)[^\n]*\n)*?" + GUARD.format("End", "") + r"(?:\n|\Z)",
    re.MULTILINE,
)


@examples(100)
@given(TEXTS, RECORDS)
def test_no_line_outside_of_a_block_is_lost_or_changed(text: str, records: list[Record]) -> None:
    before, after = foreign(CLOSED_BLOCK.sub("", text)), foreign(render_hosts(text, records))

    assert [line for line in after if line] == [line for line in before if line]
