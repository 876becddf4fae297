"""Check that the history of one register is linearizable: Wing and Gong's search with Lowe's memoization.

The hard part is calls without a reply: each may take effect at any later time or never, so a plain search doubles with
every one of them. Unique values remove that choice: a call whose value was observed took effect before the observation
returned; a call whose value was never observed does not affect any reply, and is left out.

The remaining history is complete, so it can be cut wherever no call is in flight. Each piece maps the values that the
register may hold before it to those that it may hold afterwards. A history that comes in parts is checked part by part:
`Register` carries the possible values and the calls that may still take effect.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import inf

from soak.chaos.history import Kind, Operation, Result, Value

MOST_CONFIGURATIONS = 2_000_000
"""The limit for one piece; a few concurrent calls stay far below it."""
SHOWN = 12


@dataclass(frozen=True, slots=True)
class NotLinearizable:
    """No order of the calls explains the replies."""

    why: str
    around: tuple[Operation, ...] = ()
    """The piece of the history that has no explanation."""

    def __str__(self) -> str:
        lines = [f"    {each}" for each in self.around[:SHOWN]]
        more = [f"    ... and {len(self.around) - SHOWN} more"] if len(self.around) > SHOWN else []
        return "\n".join([self.why, *lines, *more])


class TooLarge(Exception):
    """The search exceeded its limit: undecided."""


@dataclass(frozen=True, slots=True)
class Register:
    """One register between two parts of its history."""

    possible: frozenset[Value] = frozenset({None})
    pending: tuple[Operation, ...] = ()
    """Calls without a reply whose effect was not observed."""
    written: frozenset[str] = field(default=frozenset())
    """Values of earlier parts; used only to name what is wrong."""

    def feed(self, part: Sequence[Operation], *, most: int = MOST_CONFIGURATIONS) -> Register | NotLinearizable:
        """Check the next part; every call of it has returned, or is unknown. Raises TooLarge."""
        start = min((each.invoked for each in part), default=0.0)
        # a pending call that took effect before the cut, unobserved, was the last one to do so; moving it after the
        # cut makes no difference
        carried = [replace(each, invoked=min(each.invoked, start)) for each in self.pending]
        operations = [*carried, *(each for each in part if each.result is not Result.FAIL)]
        known = {each.new: each for each in operations if each.new is not None}
        for each in operations:
            for value in each.observed:
                if value not in known and value not in self.possible:
                    spent = value in self.written
                    why = "an overwritten value came back" if spent else "a value was read that was never written"
                    return NotLinearizable(f"{why}: {value}", (each,))
        certain, open_calls = settle(operations)
        values = self.possible
        for piece in pieces(certain):
            after = final_values(piece, values, most)
            if not after:
                return NotLinearizable(f"no order explains this, starting from {show(values)}", tuple(piece))
            values = after
        written = self.written | {each.new for each in certain if each.new is not None}
        return Register(values, tuple(open_calls), written)


def settle(operations: Iterable[Operation]) -> tuple[list[Operation], list[Operation]]:
    """Split into calls that took effect or returned, each with an end, and calls whose effect was not observed."""
    certain = [each for each in operations if each.result is Result.OK]
    unknown = {each.new: each for each in operations if each.result is Result.UNKNOWN and each.kind is not Kind.READ}
    seen_by: dict[Value, float] = {}
    for each in certain:
        for value in each.observed:
            seen_by[value] = min(seen_by.get(value, inf), each.returned)
    waiting = [value for value in seen_by if value in unknown]
    while waiting:
        value = waiting.pop()
        call = unknown[value]
        settled = replace(call, result=Result.OK, returned=seen_by[value], swapped=call.kind is Kind.CAS)
        unknown[value] = settled
        for needed in settled.observed:  # a swap that took effect has seen what it compared with
            if seen_by.get(needed, inf) > settled.returned:
                seen_by[needed] = settled.returned
                waiting += [needed] * (needed in unknown)
    certain += [each for each in unknown.values() if each.result is Result.OK]
    return certain, [each for each in unknown.values() if each.result is Result.UNKNOWN]


def pieces(complete: Iterable[Operation]) -> Iterator[list[Operation]]:
    """Cut wherever everything that was called has returned."""
    piece: list[Operation] = []
    latest = -inf
    for each in sorted(complete, key=lambda operation: (operation.invoked, operation.returned)):
        if piece and each.invoked > latest:
            yield piece
            piece = []
        piece.append(each)
        latest = max(latest, each.returned)
    if piece:
        yield piece


def final_values(piece: Sequence[Operation], values: Iterable[Value], most: int) -> frozenset[Value]:
    """What the register may hold after a piece, by every order that explains it; nothing if none does."""
    everything = (1 << len(piece)) - 1
    waiting: list[tuple[int, Value]] = [(0, value) for value in values]
    seen = set(waiting)
    found: set[Value] = set()
    while waiting:
        done, value = waiting.pop()
        if done == everything:
            found.add(value)
            continue
        for number in may_be_next(piece, done):
            allowed, after = step(piece[number], value)
            configuration = (done | 1 << number, after)
            if allowed and configuration not in seen:
                seen.add(configuration)
                waiting.append(configuration)
        if len(seen) > most:
            raise TooLarge(f"{len(piece)} calls overlap")
    return frozenset(found)


def may_be_next(piece: Sequence[Operation], done: int) -> Iterator[int]:
    """Calls that may be linearized next: no other remaining call returned before they were invoked.

    The piece is sorted by invocation.
    """
    first = first_missing(done)
    earliest = inf
    candidates = []
    for number in range(first, len(piece)):
        if piece[number].invoked > earliest:
            break
        if not done >> number & 1:
            candidates.append(number)
            earliest = min(earliest, piece[number].returned)
    return (number for number in candidates if piece[number].invoked <= earliest)


def first_missing(done: int) -> int:
    """The lowest bit that is not set."""
    return (~done & (done + 1)).bit_length() - 1


def step(operation: Operation, value: Value) -> tuple[bool, Value]:
    """Whether a register with this value allows the reply, and its value afterwards."""
    if operation.kind is Kind.WRITE:
        return True, operation.new
    if operation.kind is Kind.CAS and operation.swapped:
        return value == operation.expected, operation.new
    if operation.kind is Kind.CAS:
        return value == operation.seen and value != operation.expected, value
    return value == operation.seen, value


def show(values: Iterable[Value]) -> str:
    return " or ".join(sorted(str(each) for each in values))
