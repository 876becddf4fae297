"""Histories of one register, drawn: real ones, with a hidden order that explains them, and arbitrary ones."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from hypothesis import strategies as st

from soak.chaos.history import Kind, Operation, Result, Value


@dataclass
class Played:
    """A register that is really there, and the calls on it in the order in which they took effect."""

    operations: list[Operation]
    values: list[Value]
    """What it held before each call, and at the end."""


@st.composite
def played(draw: st.DrawFn, most: int = 30, *, lose_replies: bool = True) -> Played:
    """Call number n takes effect at time 10 * n; calls begin before that and return after it, and so overlap."""
    value: Value = None
    operations: list[Operation] = []
    values: list[Value] = [None]
    for number in range(draw(st.integers(1, most))):
        at = 10.0 * (number + 1)
        begin, end = at - draw(st.integers(0, 25)), at + draw(st.integers(0, 25))
        kind = draw(st.sampled_from(list(Kind)))
        result = draw(st.sampled_from([Result.OK] * 4 + [Result.FAIL, Result.UNKNOWN] * lose_replies))
        takes_effect = result is Result.OK or (result is Result.UNKNOWN and draw(st.booleans()))
        new = f"v{number}" if kind is not Kind.READ else None
        expected = draw(st.sampled_from([value, *values])) if kind is Kind.CAS else None
        swapped = kind is Kind.CAS and takes_effect and value == expected
        operations.append(
            Operation(
                client=f"c{number}",
                key="r",
                kind=kind,
                invoked=begin,
                returned=inf if result is Result.UNKNOWN else end,
                result=result,
                expected=expected,
                new=new,
                seen=value if kind is not Kind.WRITE and not swapped and result is Result.OK else None,
                swapped=swapped and result is Result.OK,
            )
        )
        value = new if takes_effect and (kind is Kind.WRITE or swapped) else value
        values.append(value)
    return Played(operations, values)


@st.composite
def arbitrary(draw: st.DrawFn, most: int = 5) -> list[Operation]:
    """Replies that may or may not have an explanation."""
    count = draw(st.integers(1, most))
    known: list[Value] = [None, *(f"v{number}" for number in range(count))]
    found = []
    for number in range(count):
        kind = draw(st.sampled_from(list(Kind)))
        result = draw(st.sampled_from([Result.OK, Result.OK, Result.OK, Result.UNKNOWN]))
        begin = draw(st.integers(0, 8))
        swapped = kind is Kind.CAS and result is Result.OK and draw(st.booleans())
        expected = draw(st.sampled_from(known)) if kind is Kind.CAS else None
        reads = result is Result.OK and not swapped and kind is not Kind.WRITE
        found.append(
            Operation(
                client=f"c{number}",
                key="r",
                kind=kind,
                invoked=float(begin),
                returned=inf if result is Result.UNKNOWN else float(begin + draw(st.integers(0, 6))),
                result=result,
                expected=expected,
                new=f"v{number}" if kind is not Kind.READ else None,
                seen=draw(st.sampled_from(known)) if reads else None,
                swapped=swapped,
            )
        )
    return found
