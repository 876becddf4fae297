"""Numbered writes: what was acknowledged, what was lost, how long nothing was."""

from __future__ import annotations

import itertools
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clusters.drill import MemoryEtcd
from protokube.local.drill.writer import (
    Gap,
    Write,
    WriteLog,
    Writer,
    as_found,
    key_of,
    lost,
    regressions,
    unexplained,
    value_of,
)


def a_log(*writes: Write, began: float = 0.0, ended: float = 10.0) -> WriteLog:
    return WriteLog(prefix="/d/", began=began, ended=ended, writes=writes)


def written(*numbers: int) -> dict[str, str]:
    return {key_of("/d/", number): value_of(number) for number in numbers}


def run_until(etcd: MemoryEtcd, count: int, every: float = 0.0005) -> WriteLog:
    with Writer(etcd, "/d/", every=every) as writer:
        deadline = time.monotonic() + 10
        while writer.count < count:
            assert time.monotonic() < deadline
            time.sleep(0.001)
        return writer.stop()


def test_every_write_has_a_number_of_its_own_and_all_are_there() -> None:
    etcd = MemoryEtcd()
    log = run_until(etcd, 20)

    assert [each.number for each in log.writes] == list(range(1, len(log.writes) + 1))
    assert [each.revision for each in log.acknowledged] == list(range(1, len(log.writes) + 1))
    assert as_found(etcd.read("/d/")) == written(*range(1, len(log.writes) + 1))
    assert lost(log, as_found(etcd.read("/d/"))) == ()


def test_a_write_without_an_answer_is_not_repeated_and_not_missed() -> None:
    etcd = MemoryEtcd(lambda number: "away" if number in (3, 4) else "kept")
    log = run_until(etcd, 8)

    assert [each.number for each in log.writes if not each.revision] == [3, 4]
    assert key_of("/d/", 3) not in etcd.keys
    assert lost(log, etcd.keys) == ()


def test_a_write_that_stood_without_an_answer_is_no_surprise() -> None:
    etcd = MemoryEtcd(lambda number: "silent" if number == 3 else "kept")
    log = run_until(etcd, 8)

    assert key_of("/d/", 3) in etcd.keys
    assert unexplained(log, etcd.keys) == ()


def test_an_acknowledged_write_that_is_gone_is_lost() -> None:
    etcd = MemoryEtcd(lambda number: "lost" if number == 5 else "kept")
    log = run_until(etcd, 8)

    assert lost(log, etcd.keys) == (5,)


def test_a_revision_that_goes_back_betrays_a_second_history() -> None:
    etcd = MemoryEtcd(lambda number: "back" if number == 6 else "kept")
    log = run_until(etcd, 8)

    assert regressions(log) == (6,)


def test_the_lease_goes_with_every_write() -> None:
    seen: list[int] = []

    class Leased(MemoryEtcd):
        def put(self, key: str, value: str, lease: int = 0) -> int:
            seen.append(lease)
            return super().put(key, value, lease)

    with Writer(Leased(), "/d/", lease=77, every=0.0005) as writer:
        while not writer.count:
            time.sleep(0.001)

    assert set(seen) == {77}


def test_writes_keep_their_distance() -> None:
    log = run_until(MemoryEtcd(), 10, every=0.02)

    assert all(after.sent - before.sent > 0.018 for before, after in itertools.pairwise(log.writes))


def test_stopping_twice_is_stopping_once() -> None:
    with Writer(MemoryEtcd(), "/d/", every=0.0005) as writer:
        first = writer.stop()

    assert writer.log().writes == first.writes


@pytest.mark.parametrize(
    ("writes", "gap"),
    [
        ([], Gap(0.0, 10.0)),
        ([Write(1, 0.9, 1.0, 5), Write(2, 8.9, 9.0, 6)], Gap(1.0, 8.0)),
        ([Write(1, 5.0, 6.0, 5)], Gap(0.0, 6.0)),
        ([Write(1, 0.9, 1.0, 5)], Gap(1.0, 9.0)),
        ([Write(1, 0.9, 1.0, 5), Write(2, 1.0, 5.0, 0), Write(3, 5.0, 6.0, 6)], Gap(1.0, 5.0)),
    ],
)
def test_a_gap_is_the_time_without_an_answer_also_at_both_ends(writes: list[Write], gap: Gap) -> None:
    assert a_log(*writes).longest_gap == gap


LOGS = st.lists(st.tuples(st.floats(0.001, 2.0), st.booleans()), max_size=40).map(
    lambda pauses: [
        Write(
            number + 1,
            sum(each for each, _ in pauses[:number]),
            sum(each for each, _ in pauses[: number + 1]),
            ok * (number + 1),
        )
        for number, (_, ok) in enumerate(pauses)
    ]
)


@settings(deadline=None)  # a busy machine is no bug
@given(LOGS)
def test_no_time_without_an_answer_is_longer_than_the_longest_gap(writes: list[Write]) -> None:
    ended = writes[-1].answered if writes else 1.0
    log = a_log(*writes, ended=ended)
    answers = sorted([0.0, ended, *(each.answered for each in writes if each.revision)])

    gap = log.longest_gap
    assert gap.seconds == max(after - before for before, after in itertools.pairwise(answers))
    assert not [each for each in answers if gap.began < each < gap.began + gap.seconds - 1e-9]


@settings(deadline=None)  # a busy machine is no bug
@given(LOGS, st.sets(st.integers(1, 40)))
def test_exactly_the_acknowledged_writes_that_are_not_there_are_lost(writes: list[Write], kept: set[int]) -> None:
    log = a_log(*writes, ended=1000.0)
    acknowledged = {each.number for each in log.acknowledged}

    assert set(lost(log, written(*kept))) == acknowledged - kept
    assert set(unexplained(log, written(*kept))) == set(written(*kept - {each.number for each in writes}))


@settings(deadline=None)  # a busy machine is no bug
@given(st.lists(st.integers(1, 5), min_size=1, max_size=30))
def test_a_history_turns_back_exactly_where_a_revision_is_not_greater(revisions: list[int]) -> None:
    log = a_log(*(Write(number + 1, 0.0, 0.0, revision) for number, revision in enumerate(revisions)))
    back = {number + 2 for number, revision in enumerate(revisions[1:]) if revision <= revisions[number]}

    assert set(regressions(log)) == back


def test_a_value_that_somebody_changed_counts_as_lost() -> None:
    log = a_log(Write(1, 0.0, 0.1, 1), Write(2, 0.1, 0.2, 2))

    assert lost(log, written(1) | {key_of("/d/", 2): "other"}) == (2,)


def test_keys_sort_as_their_numbers_do() -> None:
    keys = [key_of("/d/", number) for number in (9, 10, 99, 100, 12345)]

    assert keys == sorted(keys)
