"""A log that is read again and again while etcd writes: only what is new is read, and nothing is taken on trust."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from protokube.etcd.wal import LogReader, UnreadableLog, read_position
from unit.etcd.walfiles import append, entry, head, segment, state

START = head() + entry(1) + state(1, 1)


def reached(reader: LogReader) -> tuple[int, int, int]:
    read = reader.read()
    return read.term, read.commit, read.last_index


def damage_beginning(path: Path) -> None:
    """A reader does not notice until it starts over: what it has walked it does not read again."""
    append(path, 8, b"\xff" * 8)


def test_only_what_was_appended_is_read(tmp_path: Path) -> None:
    path = segment(tmp_path, 0, 0, START)
    reader = LogReader(tmp_path)
    assert reached(reader) == (1, 1, 1)
    damage_beginning(path)

    at = append(path, len(START), entry(2) + state(1, 2))
    assert reached(reader) == (1, 2, 2)
    append(path, at, state(3, 2))
    assert reached(reader) == (3, 2, 2)
    assert reached(reader) == (3, 2, 2)

    with pytest.raises(UnreadableLog, match="no metadata"):
        read_position(tmp_path)


def test_a_frame_that_is_being_written_counts_once_it_is_complete(tmp_path: Path) -> None:
    path = segment(tmp_path, 0, 0, START)
    reader = LogReader(tmp_path)
    added = entry(2, data=b"z" * 5000) + state(4, 300)

    seen = set()
    for length in range(0, len(added), 8):
        append(path, len(START), added[:length])
        seen.add(reached(reader)[:2])
    append(path, len(START), added)

    assert seen == {(1, 1)}
    assert reached(reader) == (4, 300, 2)


def test_a_frame_beyond_the_end_of_the_file_counts_once_the_file_has_grown(tmp_path: Path) -> None:
    path = segment(tmp_path, 0, 0, START, preallocated=0)
    reader = LogReader(tmp_path)
    added = entry(2) + state(2, 2)
    append(path, len(START), added[:-8])
    assert reached(reader) == (1, 1, 2)

    append(path, len(START), added)
    assert reached(reader) == (2, 2, 2)


def test_a_new_segment_is_read_from_its_beginning(tmp_path: Path) -> None:
    segment(tmp_path, 0, 0, START)
    reader = LogReader(tmp_path)
    assert reached(reader) == (1, 1, 1)

    segment(tmp_path, 1, 2, head(), state(1, 1), entry(2), state(1, 2))
    assert reached(reader) == (1, 2, 2)


def test_a_new_segment_that_has_no_hard_state_yet_keeps_the_one_before_it(tmp_path: Path) -> None:
    segment(tmp_path, 0, 0, START)
    reader = LogReader(tmp_path)
    newest = segment(tmp_path, 1, 2, head())
    assert reached(reader) == (1, 1, 1)

    append(newest, len(head()), entry(2) + state(2, 2))
    assert reached(reader) == (2, 2, 2)


def test_a_segment_that_was_replaced_is_read_from_its_beginning(tmp_path: Path) -> None:
    path = segment(tmp_path, 0, 0, head(member=8), entry(1), state(1, 1))
    reader = LogReader(tmp_path)
    assert reader.read().member_id == 8

    path.rename(tmp_path / "kept")
    segment(tmp_path, 0, 0, head(member=9), entry(1), state(1, 1))
    assert reader.read().member_id == 9


def test_a_segment_that_shrank_is_read_from_its_beginning(tmp_path: Path) -> None:
    path = segment(tmp_path, 0, 0, START, entry(2), state(5, 2))
    reader = LogReader(tmp_path)
    assert reached(reader) == (5, 2, 2)

    os.truncate(path, len(START))
    assert reached(reader) == (1, 1, 1)

    damage_beginning(path)
    assert reached(reader) == (1, 1, 1)
    os.truncate(path, len(START) - 8)
    with pytest.raises(UnreadableLog, match="no metadata"):
        reader.read()


def test_a_segment_without_its_preallocated_space_is_read_from_its_beginning(tmp_path: Path) -> None:
    path = segment(tmp_path, 0, 0, START)
    reader = LogReader(tmp_path)
    assert reached(reader) == (1, 1, 1)

    damage_beginning(path)
    os.truncate(path, len(START))
    with pytest.raises(UnreadableLog, match="no metadata"):
        reader.read()


def test_a_tail_that_etcd_cut_and_wrote_again_is_read_from_the_beginning(tmp_path: Path) -> None:
    torn = entry(2, data=b"z" * 100, crc=1)
    path = segment(tmp_path, 0, 0, START, torn[:-64])
    reader = LogReader(tmp_path)
    assert reached(reader) == (1, 1, 2)

    written_again = entry(2, data=b"a" * 10, crc=2) + state(2, 2) + entry(3) + state(2, 3)
    append(path, len(START), written_again)
    assert reached(reader) == (2, 3, 3)


def test_a_log_that_comes_back_after_an_error_is_read(tmp_path: Path) -> None:
    path = segment(tmp_path, 0, 0, START)
    reader = LogReader(tmp_path)
    assert reached(reader) == (1, 1, 1)

    path.rename(tmp_path / "away")
    with pytest.raises(UnreadableLog, match="no segment"):
        reader.read()
    with pytest.raises(UnreadableLog, match="no segment"):
        reader.sync_and_read()
    (tmp_path / "away").rename(path)
    append(path, len(START), state(2, 2))

    assert reached(reader) == (2, 2, 1)


def test_no_file_stays_open_so_that_the_volume_can_be_unmounted(tmp_path: Path) -> None:
    path = segment(tmp_path, 0, 0, START)
    segment(tmp_path, 1, 2, head())
    reader = LogReader(tmp_path)

    assert reader.sync_and_read() == reader.read() == read_position(tmp_path)

    open_files = [each.readlink() for each in Path("/proc/self/fd").iterdir() if each.is_symlink()]
    assert path.parent not in [each.parent for each in open_files]
