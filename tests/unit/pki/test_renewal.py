"""Three years of clock: nothing ever expires, and no two members change at once."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest

from protokube.pki.renewal import HOUR, Life, Place, Stage, is_turn, look_every, may_renew, stage

DAY = 24 * HOUR
YEAR = 365 * DAY
START = 1_800_000_000.0
LIFE = Life(START - DAY, START + YEAR, YEAR)


def at(part: float) -> float:
    """The moment at which this part of the life is over."""
    return START + part * YEAR


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        (-0.01, Stage.EARLY),
        (-0.002, Stage.LONG),
        (0.0, Stage.FRESH),
        (0.66, Stage.FRESH),
        (0.67, Stage.DUE),
        (0.749, Stage.DUE),
        (0.751, Stage.OVERDUE),
        (0.999, Stage.OVERDUE),
        (1.0, Stage.EXPIRED),
        (7.0, Stage.EXPIRED),
    ],
)
def test_the_stages_of_a_life(part: float, expected: Stage) -> None:
    assert stage(LIFE, at(part)) is expected


@pytest.mark.parametrize("index", range(3))
def test_nobody_waits_for_a_turn_with_nothing_valid_or_after_three_quarters(index: int) -> None:
    place = Place(index, 3)
    for hour in range(72):
        for part in (-0.5, 0.76, 0.98, 1.0, 3.0):
            assert may_renew(LIFE, at(part) + hour * HOUR * (part > 0), place)
        assert not may_renew(LIFE, at(0.1) + hour * HOUR, place)


def test_alone_a_certificate_is_renewed_as_soon_as_it_is_due() -> None:
    assert may_renew(LIFE, at(2 / 3) + 1, Place())
    assert not may_renew(LIFE, at(2 / 3) - 1, Place())


@pytest.mark.parametrize("count", [2, 3, 5, 7])
def test_each_has_its_turns_and_never_together_with_another(count: int) -> None:
    turns = dict.fromkeys(range(count), 0)
    for minute in range(0, 30 * 24 * 60, 10):
        now = START + minute * 60
        mine = [index for index in range(count) if is_turn(LIFE, now, Place(index, count))]
        assert len(mine) <= 1
        for index in mine:
            turns[index] += 1

    assert min(turns.values()) > 0


@pytest.mark.parametrize("skew", [-2.5 * HOUR, 2.5 * HOUR])
def test_clocks_that_differ_by_hours_do_not_bring_two_together(skew: float) -> None:
    for minute in range(0, 10 * 24 * 60, 10):
        now = START + minute * 60
        assert not (is_turn(LIFE, now, Place(0, 3)) and is_turn(LIFE, now + skew, Place(1, 3)))


def lived(seed: int, lifetime: float, count: int = 3) -> list[tuple[float, int, bool]]:
    """What happens in three years: when which member was renewed, and whether it had anything valid then.

    Members look every ten minutes to six hours, some are away for weeks, and each begins anywhere in its life.
    """
    random = Random(seed)
    lives, asleep = [], []
    for _ in range(count):
        age = random.choice([0.0, random.uniform(0, 0.74)]) * lifetime
        lives.append(Life(START - age - DAY, START - age + lifetime, lifetime))
        asleep.append(0.0)
    renewed = []
    now = START
    while now < START + 3 * YEAR:
        now += random.uniform(1 / 6, 1) * HOUR
        for index in range(count):
            if now < asleep[index]:
                continue
            if random.random() < 0.0002:
                asleep[index] = now + random.uniform(0, 20) * DAY
            elif may_renew(lives[index], now, Place(index, count)):
                renewed.append((now, index, now < lives[index].end))
                lives[index] = Life(now - DAY, now + lifetime, lifetime)
    return renewed


@pytest.mark.parametrize("seed", range(6))
def test_in_three_years_nothing_expires_and_no_two_are_renewed_within_an_hour(seed: int) -> None:
    renewed = lived(seed, YEAR)

    assert all(valid for _, _, valid in renewed)
    assert all(len([1 for _, who, _ in renewed if who == index]) >= 3 for index in range(3))
    for (one, first, _), (other, second, _) in pairwise(renewed):
        assert first == second or other - one > HOUR


@pytest.mark.parametrize("length", [60.0, HOUR, DAY, 2 * DAY, 7 * DAY, YEAR])
@pytest.mark.parametrize("behind", [-HOUR, 0.0, HOUR])
def test_what_was_issued_just_now_is_fresh_however_short_it_lives_and_however_clocks_differ(
    length: float, behind: float
) -> None:
    """An authority made by a clock an hour ahead, or behind, may move the start; the end is where it is."""
    just_now = Life(START - DAY + behind, START + length, length)

    assert stage(just_now, START) is Stage.FRESH
    assert stage(just_now, START + length * 0.45) is Stage.FRESH
    assert stage(just_now, START + length * 0.74) is Stage.DUE
    assert stage(just_now, START + length * 0.76) is Stage.OVERDUE


def test_what_was_issued_for_longer_than_is_asked_for_now_is_renewed_in_its_turn() -> None:
    old = Life(START - DAY, START + YEAR, 2 * HOUR)

    assert stage(old, START) is Stage.LONG
    renewing = [
        index for second in range(0, 7200, 10) for index in range(3) if may_renew(old, START + second, Place(index, 3))
    ]
    assert set(renewing) == {0, 1, 2}
    assert not [
        second
        for second in range(0, 7200, 10)
        if sum(may_renew(old, START + second, Place(index, 3)) for index in range(3)) > 1
    ]


def test_a_clock_an_hour_back_does_not_make_a_certificate_too_long() -> None:
    assert stage(Life(START - DAY, START + 60, 60), START - HOUR) is Stage.FRESH


@pytest.mark.parametrize(("length", "every"), [(60.0, 0.75), (DAY, 600.0), (YEAR, 600.0)])
def test_short_lives_are_looked_at_often(length: float, every: float) -> None:
    assert look_every(length) == every
    assert look_every(length) <= length / 20
