"""A value has one revision, whichever member is asked."""

from __future__ import annotations

from dataclasses import replace

from soak.chaos.history import Kind, Operation, Result
from soak.chaos.revisions import Revisions

WRITTEN = Operation(client="a.0", key="r", kind=Kind.WRITE, invoked=0, returned=1, new="x", revision=7)
READ = Operation(client="b.0", key="r", kind=Kind.READ, invoked=2, returned=3, seen="x", revision=7)


def test_members_that_agree_are_fine() -> None:
    assert Revisions().feed([WRITTEN, READ]) == ""


def test_a_member_that_counts_differently_is_named_also_in_a_later_part() -> None:
    revisions = Revisions()
    revisions.feed([WRITTEN])

    found = revisions.feed([READ, replace(READ, client="c.0", revision=9)])

    assert found == "x has revision 7 through a.0 and 9 through c.0: the members hold different histories"


def test_calls_without_a_reply_and_registers_without_a_value_have_none() -> None:
    nothing = replace(READ, seen=None, revision=0)
    lost = replace(WRITTEN, result=Result.UNKNOWN, revision=0)

    assert Revisions().feed([nothing, lost, WRITTEN]) == ""


def test_a_swap_that_failed_counts_for_the_value_that_it_found() -> None:
    swap = Operation(
        client="c.0", key="r", kind=Kind.CAS, invoked=4, returned=5, expected="w", new="y", seen="x", revision=8
    )

    assert "7 through a.0 and 8 through c.0" in Revisions().feed([WRITTEN, swap])
