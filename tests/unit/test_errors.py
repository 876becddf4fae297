"""An error tells what happened, what we saw, what we want and what to do next."""

from __future__ import annotations

import pytest

from protokube.errors import ExitCode, InvalidSpec, Problem, ProtokubeError, Refused, TryLater, Where


def a_problem(path: str = "cloud", message: str = "is not given", *, file: str = "f.yaml", line: int = 1) -> Problem:
    return Problem(path=path, message=message, where=Where(file, line))


def test_a_problem_reads_place_path_message_and_hint() -> None:
    problem = Problem(path="masters", message="0 is less than 1", hint="1, 3 or 5", where=Where("f.yaml", 9))

    assert str(problem) == "f.yaml:9 masters: 0 is less than 1\n  hint: 1, 3 or 5"


@pytest.mark.parametrize(
    ("problem", "text"),
    [
        (Problem(path="", message="no"), "no"),
        (Problem(path="a.b", message="no"), "a.b: no"),
        (Problem(path="", message="no", where=Where("f", 3)), "f:3: no"),
        (Problem(path="", message="no", hint="one\ntwo"), "no\n  hint: one\n  hint: two"),
    ],
)
def test_what_a_problem_does_not_have_leaves_no_trace(problem: Problem, text: str) -> None:
    assert str(problem) == text


def test_problems_come_in_the_order_a_reader_meets_them_and_each_once() -> None:
    late, early = a_problem("b", line=10), a_problem("a", line=9)
    other, nowhere = a_problem(file="a.yaml", line=99), Problem(path="z", message="no")

    assert InvalidSpec([late, early, late, other, nowhere]).problems == (nowhere, other, early, late)


def test_an_invalid_spec_counts_and_shows_every_problem() -> None:
    error = InvalidSpec([a_problem(line=1), Problem(path="zones", message="are not given", hint="for example [a]")])

    assert str(error).splitlines() == [
        "2 problems in the spec",
        "  zones: are not given",
        "    hint: for example [a]",
        "  f.yaml:1 cloud: is not given",
    ]
    assert InvalidSpec([a_problem()]).message == "1 problem in the spec"


def test_an_error_aligns_what_it_tells_and_leaves_out_what_it_does_not() -> None:
    error = Refused("refusing to format /dev/xvdu", saw="an xfs filesystem", want="a blank device", hint="wipefs --all")

    assert str(error).splitlines() == [
        "refusing to format /dev/xvdu",
        "  saw:  an xfs filesystem",
        "  want: a blank device",
        "  hint: wipefs --all",
    ]
    assert str(Refused("no")) == "no"


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (InvalidSpec([a_problem()]), ExitCode.INVALID),
        (TryLater("no answer"), ExitCode.TRY_LATER),
        (Refused("not blank"), ExitCode.REFUSED),
        (ProtokubeError("anything"), ExitCode.REFUSED),
    ],
)
def test_the_exit_code_says_who_has_to_act(error: ProtokubeError, code: ExitCode) -> None:
    assert error.exit_code == code


def test_exit_codes_are_a_promise_to_scripts() -> None:
    assert {code.name: code.value for code in ExitCode} == {
        "OK": 0,
        "DIFFERENT": 1,
        "INVALID": 2,
        "TRY_LATER": 3,
        "REFUSED": 4,
        "BUG": 70,
        "STOPPED": 130,
    }
