"""Reads are real, exact, and cover what they say."""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from protokube.host.child import reading
from protokube.host.child.reading import (
    ALIGNMENT,
    GIB,
    HEAD,
    MIB,
    MIDDLE,
    SAMPLES,
    SMALL,
    TAIL,
    Unreadable,
    first_not_zero,
    open_direct,
    spans,
)

steady = settings(derandomize=True, deadline=None)

SECTORS = st.integers(min_value=0, max_value=(20 << 40) // 512).map(lambda count: count * 512)


@steady
@given(size=SECTORS)
@example(size=0)
@example(size=512)
@example(size=SMALL)
@example(size=SMALL + 512)
@example(size=20 << 40)
def test_spans_lie_within_the_device_in_order_and_aligned(size: int) -> None:
    found = spans(size)

    assert found == sorted(found)
    for start, length in found:
        assert start % ALIGNMENT == 0
        assert length > 0
        assert start + length <= size


@steady
@given(size=SECTORS.filter(lambda size: size > SMALL))
def test_head_middle_tail_and_samples_are_always_read(size: int) -> None:
    found = dict(spans(size))

    assert found[0] >= HEAD
    assert any(start <= size - TAIL and start + length == size for start, length in found.items())
    assert any(start <= size // 2 < start + length and length >= MIDDLE for start, length in found.items())
    assert len(found) >= SAMPLES
    assert sum(found.values()) < 20 * MIB


@steady
@given(size=SECTORS.filter(lambda size: size > SMALL))
def test_no_gap_between_samples_is_much_larger_than_a_sixtyfourth_of_the_device(size: int) -> None:
    found = spans(size)

    gaps = [after - (start + length) for (start, length), (after, _) in pairwise(found)]
    assert max(gaps) <= size // SAMPLES + 2 * ALIGNMENT


@pytest.mark.parametrize("size", [512, MIB, SMALL])
def test_a_small_device_is_read_whole(size: int) -> None:
    assert spans(size) == [(0, size)]


def test_places_where_file_systems_keep_copies_of_their_superblock_are_read() -> None:
    starts = {start for start, _ in spans(512 * GIB)}

    assert {128 * MIB, 3 * 128 * MIB, 49 * 128 * MIB, 64 * MIB, 256 * GIB} <= starts


@pytest.fixture
def image(tmp_path: Path) -> Path:
    place = tmp_path / "image"
    with place.open("wb") as file:
        file.truncate(80 * MIB)
    return place


def found_in(image: Path, size: int | None = None) -> int | None:
    handle = open_direct(str(image), os.O_RDONLY)
    try:
        return first_not_zero(handle, image.stat().st_size if size is None else size)
    finally:
        os.close(handle)


def test_nothing_but_zeros_is_found_to_be_nothing(image: Path) -> None:
    assert found_in(image) is None


@pytest.mark.parametrize(
    "position",
    [0, 1, 1023, 1024, 4095, 4096, HEAD - 1, 40 * MIB, 40 * MIB - MIDDLE // 2, 76 * MIB, 80 * MIB - 512, 80 * MIB - 1],
)
def test_one_byte_at_a_place_that_is_read_is_found_exactly_there(image: Path, position: int) -> None:
    with image.open("r+b") as file:
        file.seek(position)
        file.write(b"\x01")

    assert found_in(image) == position


def test_one_byte_in_each_sample_is_found(image: Path) -> None:
    for start, length in spans(80 * MIB)[::9]:
        with image.open("r+b") as file:
            file.seek(start + length - 1)
            file.write(b"\x01")

        assert found_in(image) == start + length - 1

        os.truncate(image, 0)
        os.truncate(image, 80 * MIB)


def test_the_first_of_several_is_told(image: Path) -> None:
    with image.open("r+b") as file:
        for position in (5, 40 * MIB, 80 * MIB - 1):
            file.seek(position)
            file.write(b"\x01")

    assert found_in(image) == 5


def test_a_device_that_ends_early_is_unreadable_even_if_something_was_found(image: Path) -> None:
    with image.open("r+b") as file:
        file.write(b"data")
    os.truncate(image, 79 * MIB + 4096)

    with pytest.raises(Unreadable, match=r"short read at byte 83886080: 0 of|short read at byte \d+: 4096 of 1048576"):
        found_in(image, 80 * MIB)


def test_a_short_read_says_how_short(tmp_path: Path) -> None:
    place = tmp_path / "short"
    place.write_bytes(bytes(4096))
    handle = open_direct(str(place), os.O_RDONLY)
    try:
        with pytest.raises(Unreadable, match="short read at byte 0: 4096 of 8192 bytes"):
            reading.read(handle, 0, 8192)
    finally:
        os.close(handle)


def test_an_error_says_where_and_what(tmp_path: Path) -> None:
    handle = os.open(tmp_path, os.O_RDONLY)
    try:
        with pytest.raises(Unreadable, match="read error in the 4096 bytes at byte 8192: Is a directory"):
            reading.read(handle, 8192, 4096)
    finally:
        os.close(handle)


def test_a_device_that_cannot_be_read_directly_is_read_all_the_same() -> None:
    """Files of procfs refuse direct reads; its smallest stand in for a device that does."""
    with pytest.raises(OSError, match="Invalid argument"):
        os.open("/proc/self/status", os.O_RDONLY | os.O_DIRECT)

    handle = open_direct("/proc/self/status", os.O_RDONLY)
    try:
        assert os.read(handle, 5) == b"Name:"
    finally:
        os.close(handle)


def test_what_cannot_be_opened_is_not_tried_twice(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        open_direct(str(tmp_path / "missing"), os.O_RDONLY)
