"""Lines of several logs, in the order of their times."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from protokube.local.logs.following import Line, merge
from protokube.local.logs.places import Place


@given(st.lists(st.lists(st.floats(0, 100))))
def test_merged_lines_are_in_the_order_of_time_and_those_of_one_log_in_their_own(times: list[list[float]]) -> None:
    streams = [
        [Line(at, Place(f"h{number}", "agent"), str(index)) for index, at in enumerate(sorted(each))]
        for number, each in enumerate(times)
    ]

    merged = list(merge(streams))

    assert [each.at for each in merged] == sorted(at for each in times for at in each)
    for number, stream in enumerate(streams):
        assert [each for each in merged if each.place.host == f"h{number}"] == stream


def test_lines_without_a_time_come_first() -> None:
    unknown, known = Line(None, Place("h1", "init"), "x"), Line(5.0, Place("h2", "agent"), "y")

    assert list(merge([[known], [unknown]])) == [unknown, known]
