"""The raft mark: read back as written, never lowered, and compared only with the disk it belongs to."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from protokube.members.raftmark import LogPosition, RaftMark, decode, encode, is_behind, raised

steady = settings(derandomize=True, deadline=None)
uint64 = st.integers(0, 2**64 - 1)
generations = st.from_regex(r"[A-Za-z0-9._-]{1,40}", fullmatch=True)
marks = st.builds(RaftMark, generation=generations, cluster_id=uint64, member_id=uint64, term=uint64, commit=uint64)
longer_marks = st.builds(replace, marks, acknowledged=uint64, copied_epoch=uint64)
small = st.integers(0, 2)
colliding_marks = st.builds(
    RaftMark, generation=st.sampled_from("gh"), cluster_id=small, member_id=small, term=small, commit=small
)
A_MARK = RaftMark(generation="5f1c", cluster_id=0xABC, member_id=0xDEF, term=7, commit=4200)
WRITTEN = "1:5f1c:abc:def:7:4200"


def at(mark: RaftMark, **changes: int) -> LogPosition:
    """A disk that stands exactly where the mark was made."""
    position = LogPosition(
        cluster_id=mark.cluster_id, member_id=mark.member_id, term=mark.term, commit=mark.commit, last_index=mark.commit
    )
    return replace(position, **changes)


def test_a_mark_is_one_short_line_that_a_person_can_read() -> None:
    assert encode(A_MARK) == WRITTEN
    assert decode(WRITTEN) == A_MARK


@given(marks | longer_marks)
@steady
def test_a_mark_is_read_back_as_written(mark: RaftMark) -> None:
    text = encode(mark)

    assert decode(text) == mark
    assert re.fullmatch(r"[A-Za-z0-9:._-]{1,164}", text)


def test_a_mark_with_an_acknowledged_index_is_one_line_too_and_the_former_form_is_still_read() -> None:
    assert encode(replace(A_MARK, acknowledged=4210, copied_epoch=6)) == f"2{WRITTEN[1:]}:4210:6"
    assert decode(f"2{WRITTEN[1:]}:4210:6") == replace(A_MARK, acknowledged=4210, copied_epoch=6)
    assert decode(WRITTEN) == A_MARK


@given(st.text(alphabet=":0123456789abcdefgG-_. \n+", max_size=40) | st.text(max_size=40))
@steady
def test_a_text_is_a_mark_only_if_the_mark_is_written_as_this_very_text(text: str) -> None:
    mark = decode(text)

    assert mark is None or encode(mark) == text


@given(marks, st.data())
@steady
def test_a_damaged_text_is_no_mark_or_another_mark_in_full(mark: RaftMark, data: st.DataObject) -> None:
    text = encode(mark)
    place = data.draw(st.integers(0, len(text) - 1))
    damaged = text[:place] + data.draw(st.text(max_size=2)) + text[place + 1 :]

    read = decode(damaged)

    assert read is None or encode(read) == damaged


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1",
        f"{WRITTEN}\n",
        f" {WRITTEN}",
        f"{WRITTEN}:",
        f"{WRITTEN}:4210:6",
        f"2{WRITTEN[1:]}:4210",
        f"2{WRITTEN[1:]}:0:0",
        f"2{WRITTEN[1:]}:18446744073709551616:6",
        WRITTEN.replace("1:", "2:", 1),
        "1:5f1c:abc:def:7",
        "1::abc:def:7:4200",
        "1:5f1c:ABC:def:7:4200",
        "1:5f1c:0abc:def:7:4200",
        "1:5f1c:0xabc:def:7:4200",
        "1:5f1c:abc:def:07:4200",
        "1:5f1c:abc:def:+7:4200",
        "1:5f1c:abc:def:-7:4200",
        "1:5f1c:abc:def:7:4_200",
        "1:5f1c:abc:def:7:٤",
        "1:5f1c:abc:def:7:18446744073709551616",
        "1:5f1c:10000000000000000:def:7:4200",
        "1:gén:abc:def:7:4200",
    ],
)
def test_a_text_that_is_not_exactly_a_mark_is_none(text: str) -> None:
    assert decode(text) is None


@pytest.mark.parametrize(
    "mark",
    [
        replace(A_MARK, generation=""),
        replace(A_MARK, generation="a:b"),
        replace(A_MARK, generation="a b"),
        replace(A_MARK, term=-1),
        replace(A_MARK, commit=2**64),
        replace(A_MARK, member_id=2**64),
    ],
)
def test_a_mark_that_could_not_be_read_back_is_not_written(mark: RaftMark) -> None:
    with pytest.raises(ValueError, match="not a raft mark"):
        encode(mark)


@given(st.lists(colliding_marks, min_size=1))
@steady
def test_under_one_key_a_mark_never_falls_and_another_key_replaces_it(history: list[RaftMark]) -> None:
    recorded: RaftMark | None = None
    for new in history:
        before, recorded = recorded, raised(recorded, new)
        assert recorded.key == new.key
        assert recorded.term >= new.term
        assert recorded.commit >= new.commit
        if before is None or before.key != new.key:
            assert recorded == new
        else:
            assert (recorded.term, recorded.commit) == (max(before.term, new.term), max(before.commit, new.commit))


@given(colliding_marks, colliding_marks)
@steady
def test_raising_twice_changes_nothing_more(old: RaftMark, new: RaftMark) -> None:
    once = raised(old, new)

    assert raised(once, new) == once


@given(marks, uint64, uint64, uint64)
@steady
def test_a_disk_is_behind_exactly_if_its_term_or_commit_is_below(
    mark: RaftMark, term: int, commit: int, last_index: int
) -> None:
    position = at(mark, term=term, commit=commit, last_index=last_index)

    assert is_behind(position, mark, mark.generation) == (term < mark.term or commit < mark.commit)


@given(marks, uint64, uint64)
@steady
def test_a_disk_is_never_behind_a_mark_that_was_made_of_it(mark: RaftMark, term: int, commit: int) -> None:
    later = at(mark, term=max(term, mark.term), commit=max(commit, mark.commit))

    assert not is_behind(later, mark, mark.generation)


@given(colliding_marks, small, small)
@steady
def test_a_disk_below_a_raised_mark_is_behind(old: RaftMark, term: int, commit: int) -> None:
    mark = raised(old, replace(old, term=term, commit=commit))

    assert is_behind(at(old), mark, old.generation) == (mark != old)


@given(marks, marks)
@steady
def test_a_missing_mark_or_one_of_another_key_says_nothing(mark: RaftMark, other: RaftMark) -> None:
    assume(mark.key != other.key)
    low = at(other, term=0, commit=0)

    assert not is_behind(low, mark, other.generation)
    assert not is_behind(low, None, other.generation)


def test_each_part_of_the_key_counts() -> None:
    low = at(A_MARK, term=0, commit=0)

    assert is_behind(low, A_MARK, "5f1c")
    assert not is_behind(low, A_MARK, "5f1d")
    assert not is_behind(replace(low, cluster_id=1), A_MARK, "5f1c")
    assert not is_behind(replace(low, member_id=1), A_MARK, "5f1c")


acknowledged_marks = st.builds(replace, colliding_marks, acknowledged=small, copied_epoch=small)


@given(acknowledged_marks, acknowledged_marks)
@steady
def test_an_acknowledged_index_never_falls_under_one_key(old: RaftMark, new: RaftMark) -> None:
    recorded = raised(old, new)

    if old.key == new.key:
        assert recorded.acknowledged == max(old.acknowledged, new.acknowledged)
        assert recorded.copied_epoch == max(old.copied_epoch, new.copied_epoch)
    else:
        assert recorded == new


@given(marks, uint64, uint64)
@steady
def test_a_disk_whose_log_ends_before_an_acknowledged_index_is_behind(
    mark: RaftMark, acknowledged: int, last_index: int
) -> None:
    marked = replace(mark, acknowledged=acknowledged)

    assert is_behind(at(mark, last_index=last_index), marked, mark.generation) == (last_index < acknowledged)


def test_the_original_is_not_behind_although_it_does_not_know_that_its_entry_is_committed() -> None:
    """Its hard state may be written before the leader tells it: entry 4210 is there, commit is still 4200."""
    mark = replace(A_MARK, acknowledged=4210)

    assert not is_behind(at(A_MARK, commit=4200, last_index=4210), mark, "5f1c")
    assert is_behind(at(A_MARK, commit=4200, last_index=4209), mark, "5f1c")


def test_an_acknowledged_index_of_another_member_says_nothing() -> None:
    mark = replace(A_MARK, acknowledged=9999)

    assert not is_behind(replace(at(A_MARK), member_id=1), mark, "5f1c")
    assert not is_behind(at(A_MARK), mark, "5f1d")
