"""The raft position of a log on disk: frames written in full count, a torn tail does not, contradictions are errors."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders.examples import examples
from protokube.etcd.wal import LogReader, UnreadableLog, read_position
from protokube.etcd.walsegment import CHUNK
from protokube.members.raftmark import LogPosition
from unit.etcd.walfiles import (
    CLUSTER,
    CRC,
    ENTRY,
    MEMBER,
    STATE,
    entry,
    frame,
    framed,
    head,
    metadata,
    number,
    segment,
    snapshot,
    state,
    text,
)

steady = settings(derandomize=True, deadline=None)


def position(term: int, commit: int, last_index: int) -> LogPosition:
    return LogPosition(cluster_id=CLUSTER, member_id=MEMBER, term=term, commit=commit, last_index=last_index)


def test_the_last_hard_state_counts_and_ids_are_unsigned(tmp_path: Path) -> None:
    segment(tmp_path, 0, 0, head(), snapshot(0, 0), entry(1), state(2, 1), entry(2, 2), entry(3, 2), state(2, 3))

    assert read_position(tmp_path) == position(2, 3, 3)


@pytest.mark.parametrize("size", range(17))
def test_frames_are_padded_to_eight_bytes_or_not_at_all(tmp_path: Path, size: int) -> None:
    segment(tmp_path, 0, 0, head(), entry(1, data=b"y" * size), state(7, 1))

    assert read_position(tmp_path) == position(7, 1, 1)


def test_a_segment_that_is_full_to_its_last_byte_is_read_to_the_end(tmp_path: Path) -> None:
    segment(tmp_path, 0, 0, head(), entry(1), state(3, 1), preallocated=0)

    assert read_position(tmp_path) == position(3, 1, 1)


def test_term_and_commit_are_never_those_of_entries(tmp_path: Path) -> None:
    segment(tmp_path, 0, 0, head(), state(2, 1), entry(2, term=9), entry(3, term=9))

    assert read_position(tmp_path) == position(2, 1, 3)


def test_the_last_index_follows_a_tail_that_raft_has_replaced(tmp_path: Path) -> None:
    segment(tmp_path, 0, 0, head(), entry(1), entry(2), entry(3), entry(2, term=2), state(2, 1))

    assert read_position(tmp_path) == position(2, 1, 2)


def test_behind_a_torn_entry_the_last_index_is_that_of_the_entry_before(tmp_path: Path) -> None:
    """Its length was written and its content not: it was never acknowledged, and those before it were."""
    torn = frame(ENTRY, bytes(700))

    segment(tmp_path, 0, 0, head(), entry(1), entry(2), state(2, 1), torn)

    assert read_position(tmp_path) == position(2, 1, 2)


def test_every_entry_before_a_torn_one_counts_however_often_the_log_is_read(tmp_path: Path) -> None:
    reader, frames = LogReader(tmp_path), head() + state(2, 1)
    for index in range(1, 12):
        frames += entry(index)
        segment(tmp_path, 0, 0, frames, frame(ENTRY, bytes(700)))

        assert reader.read().last_index == read_position(tmp_path).last_index == index


def test_a_snapshot_ahead_of_the_entries_moves_the_last_index(tmp_path: Path) -> None:
    segment(tmp_path, 0, 0, head(), entry(1), state(2, 900), snapshot(900), state(2, 901), preallocated=0)

    assert read_position(tmp_path) == position(2, 901, 900)


def test_a_snapshot_behind_the_entries_does_not(tmp_path: Path) -> None:
    segment(tmp_path, 0, 0, head(), entry(1), entry(2), state(2, 2), snapshot(1))

    assert read_position(tmp_path) == position(2, 2, 2)


def test_the_newest_segment_counts_and_other_files_do_not(tmp_path: Path) -> None:
    segment(tmp_path, 0x9, 1, head(), state(2, 5))
    segment(tmp_path, 0xA, 11, head(), state(3, 10), entry(11, 3))
    (tmp_path / "1.tmp").write_bytes(head() + state(9, 99))
    (tmp_path / "000000000000000a-000000000000000b.wal.broken").write_bytes(head() + state(9, 99))

    assert read_position(tmp_path) == position(3, 10, 11)


def test_without_a_hard_state_in_the_newest_segments_the_one_before_counts(tmp_path: Path) -> None:
    segment(tmp_path, 4, 1, head(), state(1, 5))
    segment(tmp_path, 5, 11, head(), state(2, 9), entry(11, 2), state(2, 10))
    segment(tmp_path, 6, 12, head(), entry(12, 2))
    segment(tmp_path, 7, 13, head())

    assert read_position(tmp_path) == position(2, 10, 12)


def test_a_hard_state_is_not_sought_behind_a_missing_segment(tmp_path: Path) -> None:
    segment(tmp_path, 4, 1, head(), state(1, 5))
    segment(tmp_path, 6, 12, head(), entry(12, 2))

    with pytest.raises(UnreadableLog, match=r"the segment before .*6-.* is missing"):
        read_position(tmp_path)


def test_a_log_that_was_only_just_created_stands_at_zero(tmp_path: Path) -> None:
    segment(tmp_path, 0, 0, head(), snapshot(0, 0))

    assert read_position(tmp_path) == position(0, 0, 0)


def test_an_old_log_without_any_hard_state_is_unreadable(tmp_path: Path) -> None:
    segment(tmp_path, 3, 30, head(), entry(30))

    with pytest.raises(UnreadableLog, match="no hard state"):
        read_position(tmp_path)


TAIL = [state(2**40, 2**50), state(2, 100), entry(3, 2, b"\xff" * 700), frame(ENTRY, None), metadata(), snapshot(3)]


@pytest.mark.parametrize("zeros", [True, False], ids=["in preallocated space", "at the end of the file"])
@pytest.mark.parametrize("torn", TAIL, ids=["state", "small state", "entry", "empty", "metadata", "snapshot"])
def test_a_torn_frame_never_changes_term_or_commit(tmp_path: Path, torn: bytes, zeros: bool) -> None:
    written = [head(), entry(1), entry(2), state(2, 2)]
    for length in range(len(torn.rstrip(b"\0"))):  # padding is zeros anyway
        segment(tmp_path, 0, 0, *written, torn[:length], preallocated=64 * 1024 if zeros else 0)

        read = read_position(tmp_path)

        assert (read.term, read.commit) == (2, 2), f"{length} bytes of the frame were written"


@given(st.integers(1, 2**64 - 1), st.integers(1, 2**64 - 1), st.data())
@steady
def test_a_torn_hard_state_is_never_a_lower_one(term: int, commit: int, data: st.DataObject) -> None:
    whole = state(term, commit)
    kept = data.draw(st.integers(0, len(whole.rstrip(b"\0")) - 1))
    before = max(term - 1, 1), max(commit - 1, 1)
    with tempfile.TemporaryDirectory() as folder:
        segment(Path(folder), 0, 0, head(), state(*before), whole[:kept])

        read = read_position(Path(folder))

    assert (read.term, read.commit) in (before, (term, before[1]))


@pytest.mark.parametrize(
    "noise",
    [
        framed(number(1, 9) + number(2, 1)),
        framed(number(1, STATE) + number(2, 1) + b"\x1a\x7f"),
        frame(STATE, b"\x08\x05\x12\x00"),
        frame(STATE, number(1, 9) * 40),
        framed(number(1, STATE) + number(2, 1) + text(3, number(1, 9)) + number(4, 1)),
        frame(STATE, b"\x08" + b"\xff" * 10 + b"\x01"),
        framed(b"\xff" * 24),
        b"\xff" * 64,
        b"\x01" + bytes(7) + b"\x08",
    ],
    ids=["type", "size", "field", "long", "rest", "number", "record", "length", "short"],
)
def test_the_walk_ends_at_what_is_no_record(tmp_path: Path, noise: bytes) -> None:
    segment(tmp_path, 0, 0, head(), state(2, 2), noise, state(8, 8))

    assert read_position(tmp_path) == position(2, 2, 0)


@given(st.binary(max_size=300))
@steady
def test_any_bytes_behind_the_metadata_are_read_without_a_failure(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        segment(Path(folder), 0, 0, head(), content)

        assert read_position(Path(folder)).member_id == MEMBER


@given(st.binary(max_size=300))
@steady
def test_any_bytes_without_metadata_are_unreadable(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        segment(Path(folder), 0, 0, content)

        with pytest.raises(UnreadableLog, match="no metadata"):
            read_position(Path(folder))


def test_a_directory_without_segments_is_unreadable(tmp_path: Path) -> None:
    (tmp_path / "0.tmp").write_bytes(head() + state(1, 1))

    with pytest.raises(UnreadableLog, match="no segment"):
        read_position(tmp_path)


def test_a_directory_that_is_not_there_is_unreadable(tmp_path: Path) -> None:
    with pytest.raises(UnreadableLog, match="is not there"):
        read_position(tmp_path / "wal")


def test_a_segment_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "0000000000000000-0000000000000000.wal").mkdir()

    with pytest.raises(UnreadableLog, match=r"0000-0000000000000000\.wal"):
        read_position(tmp_path)


@pytest.mark.parametrize("content", [b"", bytes(4096), frame(CRC, None), frame(CRC, None) + state(2, 2)])
@pytest.mark.parametrize("sequence", [1, 3])
def test_each_segment_needs_metadata(tmp_path: Path, content: bytes, sequence: int) -> None:
    segment(tmp_path, 2, 1, head(), state(1, 1))
    bad = segment(tmp_path, sequence, 1, content, preallocated=0)

    with pytest.raises(UnreadableLog, match=f"{bad.name} has no metadata"):
        read_position(tmp_path)


@pytest.mark.parametrize("other", [head(cluster=7), head(member=7)], ids=["cluster", "member"])
def test_segments_of_different_members_are_unreadable(tmp_path: Path, other: bytes) -> None:
    segment(tmp_path, 0, 0, other, state(1, 1))
    segment(tmp_path, 1, 1, head(), state(2, 2))
    segment(tmp_path, 2, 1, head(), state(2, 2))

    with pytest.raises(UnreadableLog, match="different clusters or members"):
        read_position(tmp_path)


def test_a_segment_that_contradicts_itself_is_unreadable_at_each_read(tmp_path: Path) -> None:
    segment(tmp_path, 0, 0, head(), state(1, 1), metadata(member=7))
    reader = LogReader(tmp_path)

    for _ in range(2):
        with pytest.raises(UnreadableLog, match="different clusters or members"):
            reader.read()


def test_frames_larger_than_what_is_read_at_once_are_stepped_over(tmp_path: Path) -> None:
    frames = [head()]
    for index in range(1, 40):
        frames += [entry(index, data=bytes(index * 20_000)), state(3, index)]
    segment(tmp_path, 0, 0, *frames, preallocated=0)

    assert read_position(tmp_path) == position(3, 39, 39)


@pytest.mark.parametrize("before", range(0, 8 * 40, 8))
def test_frames_are_found_wherever_a_read_happens_to_end(tmp_path: Path, before: int) -> None:
    filling = entry(1, data=bytes(CHUNK - len(head()) - before))
    states = [each for index in range(2, 20) for each in (state(3, index), entry(index))]
    segment(tmp_path, 0, 0, head(), filling, *states, preallocated=0)

    assert read_position(tmp_path) == position(3, 19, 19)


@given(st.lists(st.integers(0, 3000), min_size=200, max_size=400))
@examples(10, derandomize=True)
def test_frames_of_any_size_are_found(sizes: list[int]) -> None:
    frames = [each for index, size in enumerate(sizes) for each in (entry(index, data=bytes(size)), state(1, index))]
    with tempfile.TemporaryDirectory() as folder:
        segment(Path(folder), 0, 0, head(), *frames, preallocated=0)

        assert read_position(Path(folder)) == position(1, len(sizes) - 1, len(sizes) - 1)
