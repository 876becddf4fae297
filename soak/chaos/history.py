"""Operations on registers as their clients recorded them.

An operation without a reply is `UNKNOWN`: it may take effect at any later time, or never, so it has no end. Every
written value is unique in its history, so a value that is read identifies the operation that wrote it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from math import inf

Value = str | None
"""What a register holds; None before the first write."""


class Kind(Enum):
    READ = "read"
    WRITE = "write"
    CAS = "cas"


class Result(Enum):
    OK = "ok"
    FAIL = "fail"
    """Certainly had no effect."""
    UNKNOWN = "unknown"
    """Sent, but without a reply."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One call of one client on one key."""

    client: str
    key: str
    kind: Kind
    invoked: float
    returned: float = inf
    """On the same monotonic clock; infinite while the result is unknown."""
    result: Result = Result.OK
    expected: Value = None
    """What a compare-and-swap compares with."""
    new: Value = None
    """What a write or a compare-and-swap writes."""
    seen: Value = None
    """What a read found, or what a compare-and-swap found instead of `expected`."""
    swapped: bool = False
    """Whether a compare-and-swap with a reply took effect."""
    revision: int = 0
    """The revision that wrote the value, as reported by the member that replied; 0 for no value."""

    @property
    def observed(self) -> tuple[Value, ...]:
        """The values that a reply proves to have been in the register."""
        if self.result is not Result.OK or self.kind is Kind.WRITE:
            return ()
        if self.kind is Kind.CAS and self.swapped:
            return (self.expected,)
        return (self.seen,)

    @property
    def held(self) -> Value:
        """The value that `revision` belongs to."""
        return self.new if self.kind is Kind.WRITE or self.swapped else self.seen

    def __str__(self) -> str:
        what = {
            Kind.READ: f"read -> {self.seen}",
            Kind.WRITE: f"write {self.new}",
            Kind.CAS: f"cas {self.expected} -> {self.new}"
            + (": swapped" if self.swapped else f": found {self.seen}" if self.result is Result.OK else ""),
        }[self.kind]
        end = "?" if self.returned == inf else f"{self.returned:.3f}"
        return f"{self.invoked:.3f}..{end} {self.client} {self.key}: {what} ({self.result.value})"


def by_key(operations: Iterable[Operation]) -> dict[str, list[Operation]]:
    found: dict[str, list[Operation]] = {}
    for each in operations:
        found.setdefault(each.key, []).append(each)
    return found


def counts(operations: Iterable[Operation]) -> Counter[str]:
    """Operations by result."""
    return Counter(each.result.value for each in operations)
