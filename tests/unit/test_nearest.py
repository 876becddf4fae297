"""Names that do not exist, and the ones that were probably meant."""

from __future__ import annotations

import pytest

from protokube.errors import ExitCode
from protokube.nearest import SHOWN, near, no_such


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("kil-master", "kill-master"), ("KILL_MASTER", "kill-master"), ("pause-mastr", "pause-master"), ("xyz", "")],
)
def test_a_name_like_a_known_one_is_told_with_it(typed: str, meant: str) -> None:
    known = ("kill-master", "pause-master", "power-off")

    assert near(typed, known) == (f"did you mean `{meant}`?" if meant else "")


def test_the_error_lists_what_there_is_and_matches_other_names_for_it() -> None:
    error = no_such("member", "etcd-aa", ["main/a"], also=["etcd-a"], hint="protokube status")

    assert (error.message, error.saw, error.hint) == (
        "there is no member 'etcd-aa'",
        "main/a",
        "did you mean `etcd-a`?",
    )
    assert (error.code, error.exit_code) == ("not-found", ExitCode.INVALID)


def test_the_hint_says_what_else_to_do_where_no_name_is_like_it() -> None:
    error = no_such("cluster", "x", [], where="in s3://bucket", hint="protokube up")

    assert str(error).splitlines() == [
        "there is no cluster 'x' in s3://bucket", "  saw:  none at all", "  hint: protokube up",
    ]  # fmt: skip


def test_a_long_list_is_cut_and_all_of_it_is_matched() -> None:
    known = [f"host-{number:03}" for number in range(500)]
    error = no_such("host", "hst-499", known)

    assert error.saw.endswith(f", and {500 - SHOWN} more")
    assert error.hint == "did you mean `host-499`?"
