"""A dns-controller that starts before its API server, or before its rights, waits for them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from protokube.controllers.runtime import patiently
from protokube.errors import ProtokubeError, TryLater
from protokube.kube.client import ApiError

FORBIDDEN = ApiError(403, "Forbidden", "it is forbidden")


def asking(*answers: str | ProtokubeError) -> Iterator[str | ProtokubeError]:
    return iter(answers)


def next_answer(answers: Iterator[str | ProtokubeError]) -> str:
    answer = next(answers)
    if isinstance(answer, ProtokubeError):
        raise answer
    return answer


def test_silence_and_missing_rights_and_namespaces_are_waited_for() -> None:
    """An API server answers before it has made kube-system."""
    unknown, missing = ApiError(401, "Unauthorized", "who?"), ApiError(404, "NotFound", "there is no kube-system")
    answers = asking(TryLater("nobody there"), unknown, FORBIDDEN, missing, "uid-1")
    pauses: list[float] = []
    found = patiently(lambda: next_answer(answers), log="protokube.dns", tries=None, sleep=pauses.append)
    assert (found, pauses) == ("uid-1", [0.2, 0.4, 0.8, 1.6])


def test_what_waiting_does_not_mend_is_told_at_once() -> None:
    answers = asking(ApiError(400, "BadRequest", "there is no such thing"), "never asked for")
    with pytest.raises(ApiError, match="no such thing"):
        patiently(lambda: next_answer(answers), log="protokube.dns", tries=None)
    assert next(answers) == "never asked for"


@pytest.mark.parametrize("why", [TryLater("nobody there"), FORBIDDEN])
def test_for_a_single_round_by_hand_nothing_is_waited_for(why: ProtokubeError) -> None:
    answers = asking(why, "never asked for")
    with pytest.raises(type(why)):
        patiently(lambda: next_answer(answers), log="protokube.dns", tries=1)
