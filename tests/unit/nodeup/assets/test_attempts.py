"""Which source is asked next, and which bytes are kept: for any history of failures."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from protokube.nodeup.assets.attempts import EARLIER, ENOUGH, PATIENCE, Attempts, Verdict, begin

GOOD, BAD, OTHER = "https://good", "https://bad", "https://other"


def test_a_source_that_is_cut_with_progress_is_asked_again_at_once() -> None:
    attempts = begin((GOOD, OTHER), resumed=False).cut(GOOD, "cut", ENOUGH, 10.0)

    step = attempts.next(10.0)

    assert step is not None
    assert (step.url, step.pause, step.afresh) == (GOOD, 0.0, False)


def test_a_source_that_does_not_answer_leaves_the_turn_to_the_next_one() -> None:
    attempts = begin((BAD, GOOD), resumed=False).cut(BAD, "no answer", 0, 10.0)

    step = attempts.next(10.0)

    assert step is not None
    assert (step.url, step.pause) == (GOOD, 0.0)


def test_pauses_of_the_only_source_grow_until_it_is_not_asked_again() -> None:
    attempts, now, pauses = begin((BAD,), resumed=False), 0.0, []
    while step := attempts.next(now):
        pauses.append(step.pause)
        now += step.pause
        attempts = attempts.cut(BAD, "no answer", 0, now)

    assert pauses == [0.0, 1.0, 2.0, 4.0, 8.0, 16.0]
    assert attempts.may_help_later()


def test_one_source_with_wrong_bytes_is_not_asked_again() -> None:
    attempts = begin((BAD,), resumed=False).sent(BAD).wrong(BAD, "its sha256 is 1")

    assert attempts.next(0.0) is None
    assert not attempts.may_help_later()


def test_wrong_bytes_of_several_sources_convict_nobody_and_are_not_mixed_again() -> None:
    attempts = begin((BAD, GOOD), resumed=False).sent(BAD).cut(BAD, "cut", ENOUGH, 0.0).sent(GOOD).wrong(GOOD, "wrong")

    assert {each.verdict for each in attempts.sources} == {Verdict.ASKED}
    assert not attempts.mixing


def test_bytes_of_an_earlier_run_may_be_wrong_and_convict_nobody() -> None:
    attempts = begin((GOOD,), resumed=True).sent(GOOD)

    assert attempts.parts == {EARLIER, GOOD}
    again = attempts.wrong(GOOD, "wrong").next(0.0)
    assert again is not None
    assert again.url == GOOD


@dataclass
class Link:
    """What happens at each attempt, in turn; afterwards everything is complete."""

    size: int
    right: dict[str, bool]
    grows: list[int]
    have: int = 0
    bad_bytes: bool = False
    asked: list[str] = field(default_factory=list)

    def run(self, attempts: Attempts) -> tuple[bool, Attempts]:
        now = 0.0
        while step := attempts.next(now):
            now += step.pause
            if step.afresh:
                attempts, self.have, self.bad_bytes = attempts.emptied(), 0, False
            self.asked.append(step.url)
            grown = min(self.grows.pop(0) if self.grows else self.size, self.size - self.have)
            self.have += grown
            self.bad_bytes |= bool(grown) and not self.right[step.url]
            attempts = attempts.sent(step.url) if grown else attempts
            if self.have < self.size:
                attempts = attempts.cut(step.url, "cut", grown, now)
                continue
            if not self.bad_bytes:
                return True, attempts
            attempts = attempts.wrong(step.url, "wrong")
            self.have, self.bad_bytes = 0, False
            attempts = attempts.emptied()
        return False, attempts


PIECES = st.lists(st.sampled_from([0, 1, ENOUGH, 3 * ENOUGH]), max_size=40)


@given(grows=PIECES, order=st.permutations([GOOD, BAD, OTHER]), resumed=st.sampled_from([0, 1, 5 * ENOUGH]))
def test_every_history_ends_and_a_right_source_that_answers_is_found(
    grows: list[int], order: list[str], resumed: int
) -> None:
    link = Link(size=5 * ENOUGH, right={GOOD: True, BAD: False, OTHER: False}, grows=grows, have=resumed)
    link.bad_bytes = resumed > 0

    done, attempts = link.run(begin(tuple(order), resumed=resumed > 0))

    silent = [each.url for each in attempts.sources if each.verdict is Verdict.SILENT]
    assert done or GOOD in silent
    assert all(each.verdict is not Verdict.WRONG for each in attempts.sources if each.url == GOOD)


@given(grows=PIECES, order=st.permutations([GOOD, BAD, OTHER]))
def test_no_source_is_asked_without_end(grows: list[int], order: list[str]) -> None:
    link = Link(size=5 * ENOUGH, right={GOOD: False, BAD: False, OTHER: False}, grows=grows)

    done, attempts = link.run(begin(tuple(order), resumed=False))

    assert not done
    assert len(link.asked) <= len(grows) + 3 * PATIENCE + 9
    assert attempts.next(1e9) is None
