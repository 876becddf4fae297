"""From bytes to lines: whole ones, however the bytes arrive, and without the framing of containerd."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from protokube.local.logs.lines import LONGEST, Decoder, Entry, Whole, is_whole

NOW = 2e9


def clock() -> float:
    return NOW


def framed(tag: str, text: str, stream: str = "stdout", second: int = 1) -> bytes:
    return f"2026-11-19T06:03:{second:02}.5Z {stream} {tag} {text}".encode()


def texts(*lines: bytes) -> list[str]:
    return [each.text for each in Decoder(clock).entries(lines)]


@given(st.binary(), st.lists(st.integers(1, 9)))
def test_lines_are_the_same_however_the_bytes_arrive(data: bytes, sizes: list[int]) -> None:
    whole, found, position = Whole(), [], 0
    for size in [*sizes, len(data)]:
        found += whole.feed(data[position : position + size])
        position += size

    assert [*found, *whole.end()] == [
        line for number, line in enumerate(data.split(b"\n")) if line or number < data.count(b"\n")
    ]


def test_a_line_is_given_out_once_its_end_was_written() -> None:
    whole = Whole()

    assert whole.feed(b"one\ntw") == [b"one"]
    assert whole.feed(b"o\n") == [b"two"]
    assert whole.end() == []


def test_a_file_without_line_ends_does_not_stay_in_memory() -> None:
    whole = Whole()

    assert whole.feed(b"x" * (LONGEST + 1)) == [b"x" * (LONGEST + 1)]
    assert whole.rest == b""


def test_parts_of_a_long_line_are_put_together_for_each_stream_alone() -> None:
    lines = [framed("P", "one "), framed("P", "two ", "stderr"), framed("F", "line"), framed("F", "lines", "stderr")]

    assert texts(*lines) == ["one line", "two lines"]


def test_bytes_that_are_no_utf8_are_shown_as_such_and_nothing_ends() -> None:
    assert texts(b"caf\xe9 \xff", b"good") == ["caf\ufffd \ufffd", "good"]


def test_a_line_without_a_time_has_that_of_the_line_before() -> None:
    lines = [b"before all", b"2026-11-19T06:03:02.5Z failed", b"  Traceback", b"2026-11-19T06:03:01Z a clock went back"]
    found = [each.at for each in Decoder(clock).entries(lines)]

    assert found[0] is None
    assert found[1] == found[2] == found[3] is not None


def test_the_time_of_a_framed_line_is_when_containerd_got_it() -> None:
    (found,) = Decoder(clock).entries([framed("F", "I0101 00:00:00.000000       1 x.go:1] other clock")])

    assert found == Entry(1795068181.5, "I0101 00:00:00.000000       1 x.go:1] other clock")


def test_an_empty_line_stays_a_line() -> None:
    assert texts(b"", framed("F", ""), b"x\r") == ["", "", "x"]
    assert [is_whole(each) for each in (b"", framed("F", ""), framed("P", "x"))] == [True, True, False]


def test_a_line_of_january_that_is_followed_since_december_is_of_the_new_year() -> None:
    seen = [datetime(2026, 12, 31, 12, tzinfo=UTC), datetime(2027, 1, 1, 12, tzinfo=UTC)]
    decoder = Decoder(lambda: seen[0].timestamp())
    (december,) = decoder.entries([b"I1231 11:59:59.000000       1 x.go:1] old"])
    del seen[0]

    (january,) = decoder.entries([b"I0101 11:59:59.000000       1 x.go:1] new"])

    assert january.at is not None
    assert december.at is not None
    assert january.at - december.at == 86400
