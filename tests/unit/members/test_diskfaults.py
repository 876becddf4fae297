"""What counts as a broken file system, and how often it is tried again."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protokube.members.diskfaults import (
    COUNTED,
    Broken,
    DiskFault,
    FaultRecord,
    HandOver,
    MountAnew,
    Room,
    Signs,
    Treatment,
    Writing,
    decode,
    encode,
    fault_in,
    room_in,
    treatment,
)

SOUND = Signs(options=frozenset({"rw", "noatime", "errors=remount-ro"}))
GIBIBYTE = 2**30
texts = st.text(max_size=20)
faults = st.builds(DiskFault, id=texts, host=texts, at=st.floats(0, 1e10), why=texts)
records = st.builds(FaultRecord, faults=st.lists(faults, max_size=4).map(tuple), handed_over=texts)


def a_fault(number: int, host: str = "i-1", at: float = 1000.0) -> DiskFault:
    return DiskFault(id=str(number), host=host, at=at, why="is read-only")


def a_record(*hosts: str, handed_over: str = "") -> FaultRecord:
    return FaultRecord(
        faults=tuple(a_fault(number, host) for number, host in enumerate(hosts)), handed_over=handed_over
    )


def decide(record: FaultRecord, me: str = "i-1", *, now: float = 1000.0, floats: bool = True) -> Treatment:
    return treatment("vol-1", "main/b", record, me, now, floats=floats)


def test_a_file_system_without_any_sign_is_sound() -> None:
    assert fault_in(SOUND) == ""
    assert fault_in(replace(SOUND, writing=Writing.FINE)) == ""


@pytest.mark.parametrize(
    ("signs", "words"),
    [
        (Signs(options={"ro"}), "is read-only"),
        (Signs(options={"rw", "emergency_ro"}), "turned read-only after an error"),
        (Signs(options={"rw", "abort", "emergency_ro"}), "turned read-only after an error"),
        (Signs(options={"rw", "shutdown"}), "was shut down"),
        (Signs(options={"rw"}, errors=1), "reports 1 error"),
        (Signs(options={"rw"}, errors=3), "reports 3 errors"),
        (Signs(options={"rw"}, unreadable="input/output error"), "cannot be read: input/output error"),
        (
            Signs(options={"rw"}, writing=Writing.FAILED, detail="read-only file system"),
            "cannot be written: read-only file system",
        ),
        (Signs(options={"rw"}, writing=Writing.HANGS, detail="stuck"), "hangs when it is written: stuck"),
    ],
)
def test_each_sign_is_enough(signs: Signs, words: str) -> None:
    assert fault_in(signs) == words


def test_options_that_only_look_alike_are_no_sign() -> None:
    assert fault_in(Signs(options={"rw", "errors=remount-ro", "data_err=abort"})) == ""


def test_a_full_file_system_is_no_fault_of_the_disk() -> None:
    assert fault_in(replace(SOUND, writing=Writing.NO_ROOM, detail="no space left on device")) == ""


@pytest.mark.parametrize(
    ("free", "writing", "room"),
    [
        (0, Writing.FINE, Room.NONE),
        (16 * 2**20, Writing.FINE, Room.NONE),
        (GIBIBYTE // 2, Writing.NO_ROOM, Room.NONE),
        (GIBIBYTE // 40, Writing.FINE, Room.LITTLE),
        (GIBIBYTE // 2, Writing.FINE, Room.ENOUGH),
    ],
)
def test_how_much_room_is_left(free: int, writing: Writing, room: Room) -> None:
    assert room_in(free, GIBIBYTE, writing) is room


def test_the_first_fault_is_mended_where_it_happened() -> None:
    assert decide(FaultRecord()) == MountAnew()
    assert decide(a_record("i-1")) == MountAnew()


def test_the_second_one_gives_the_volume_to_another_machine_once() -> None:
    assert isinstance(decide(a_record("i-1", "i-1")), HandOver)
    assert decide(a_record("i-1", "i-1", handed_over="i-1")) == MountAnew()


def test_whoever_gets_it_does_not_give_it_away_again() -> None:
    assert decide(a_record("i-1", "i-1"), me="i-2") == MountAnew()


def test_a_disk_that_is_bolted_to_its_machine_is_tried_there_once_more() -> None:
    assert decide(a_record("i-1", "i-1"), floats=False) == MountAnew()


def test_the_third_fault_needs_a_person_who_reads_where_and_why() -> None:
    match decide(a_record("i-1", "i-1", "i-2", handed_over="i-1"), me="i-2"):
        case Broken(why, hint):
            assert "broke 3 times within an hour, on i-1, i-2" in why
            assert "is read-only" in why
            assert "protokube etcd accept vol-1 --repaired" in hint
        case other:
            pytest.fail(str(other))


def test_faults_are_forgotten_after_an_hour() -> None:
    assert decide(a_record("i-1", "i-1", "i-2"), now=1000 + COUNTED) == MountAnew()
    later = a_record("i-1", "i-1", handed_over="i-1").with_fault(a_fault(9, at=1000 + COUNTED))
    assert later == FaultRecord(faults=(a_fault(9, at=1000 + COUNTED),)), "and with them that it was given away"


def test_a_fault_is_counted_once() -> None:
    record = a_record("i-1").with_fault(a_fault(0))

    assert record == a_record("i-1")


@given(records)
def test_a_record_reads_back_as_it_was_written(record: FaultRecord) -> None:
    assert decode(encode(record)) == record


@given(st.one_of(st.binary(max_size=60), st.recursive(st.none() | st.booleans() | texts, st.lists).map(json.dumps)))
def test_whatever_else_is_read_is_none(document: bytes | str) -> None:
    assert decode(document if isinstance(document, bytes) else document.encode()) is None


@pytest.mark.parametrize(
    "document",
    [
        {"faults": [], "handedOver": "", "version": 2},
        {"faults": [], "version": 1},
        {"faults": {}, "handedOver": "", "version": 1},
        {"faults": [{"id": "1"}], "handedOver": "", "version": 1},
        {"faults": [{"id": "1", "host": "h", "at": "soon", "why": ""}], "handedOver": "", "version": 1},
        {"faults": [], "handedOver": 1, "version": 1},
    ],
)
def test_a_record_that_is_not_quite_one_is_none(document: dict[str, object]) -> None:
    assert decode(json.dumps(document).encode()) is None


@given(
    st.lists(st.tuples(st.sampled_from(["i-1", "i-2", "i-3"]), st.floats(0, 2 * COUNTED)), max_size=12), st.booleans()
)
def test_within_an_hour_nobody_tries_a_disk_more_than_three_times(
    breaks: list[tuple[str, float]], floats: bool
) -> None:
    """Whoever holds it when it breaks, and however late: mounts between two refusals stay few."""
    record, tries, given_away = FaultRecord(), [], []
    for number, (host, at) in enumerate(sorted(breaks, key=lambda each: each[1])):
        match decide(record, host, now=at, floats=floats):
            case Broken():
                continue  # it is not mounted, so it cannot break
            case HandOver():
                record = record.with_hand_over(host)
                given_away.append(at)
                continue
            case MountAnew():
                tries.append(at)
        record = record.with_fault(a_fault(number, host, at))

    assert all(sum(at <= each < at + COUNTED for each in tries) <= 3 for at in tries)
    assert floats or not given_away
