"""What etcd's errors mean to the caller: ask again later, or a person decides.

etcd has few codes and tells the important cases apart by their text alone, which has been the same since 3.4.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from protokube.errors import ProtokubeError, Refused, TryLater


class Code(IntEnum):
    """gRPC's codes, as far as etcd uses them."""

    CANCELLED = 1
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    ABORTED = 10
    OUT_OF_RANGE = 11
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14


PASSING = frozenset({
    Code.CANCELLED, Code.UNKNOWN, Code.DEADLINE_EXCEEDED, Code.RESOURCE_EXHAUSTED, Code.ABORTED, Code.OUT_OF_RANGE,
    Code.INTERNAL, Code.UNAVAILABLE,
})  # fmt: skip
PASSING_TEXTS = (
    "too many learner members",
    "which is in sync with leader",
    "not enough started members",
    "lease not found",
)
LOCAL = frozenset({Code.CANCELLED, Code.UNKNOWN, Code.DEADLINE_EXCEEDED, Code.INTERNAL, Code.UNAVAILABLE})
"""What may be the trouble of the one member that answered."""
LEARNER = "rpc not supported for learner"
NOT_A_LEARNER = "can only promote a learner member"
HINTS = {
    "space exceeded": "etcd is full: compact and defragment it, then clear its alarm",
    "unhealthy cluster": "etcd changes its members only after all of them have been connected for 5 s",
    "lease not found": "the lease expired; take a new one",
}


class Fault(Exception):
    """A member answered, and the answer is an error."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message

    @property
    def elsewhere(self) -> bool:
        """Another member may know better."""
        return self.code in LOCAL

    @property
    def untouched(self) -> bool:
        """The request was certainly not carried out."""
        return LEARNER in self.message

    def explained(self, doing: str) -> ProtokubeError:
        """For the caller, in the words of who has to act."""
        hint = next((hint for text, hint in HINTS.items() if text in self.message), "")
        if self.code in PASSING or any(text in self.message for text in PASSING_TEXTS):
            return TryLater(f"{doing}: {self.message}", hint=hint)
        return Refused(f"{doing}: {self.message}", hint=hint or "see the log of etcd for more")


def fault_in(status: int, document: Any) -> Fault | None:
    """The error in an answer; None if there is none. A stream wraps its error once more."""
    if isinstance(document, dict):
        told = document.get("error")
        if told is None and status == 200:
            return None
        inner: dict[str, Any] = told if isinstance(told, dict) else document
        code = int(inner.get("code") or inner.get("grpc_code") or Code.UNKNOWN)
        return Fault(code, str(inner.get("message") or told or f"HTTP status {status}"))
    if status >= 500:
        return Fault(Code.UNAVAILABLE, f"HTTP status {status}: {str(document)[:200]}")
    text = str(document)[:200]
    return Fault(Code.UNIMPLEMENTED, f"this is not etcd's JSON API: HTTP status {status}: {text}")
