"""etcd's error replies, and what each means to the caller: retry later, or a person decides.

The gRPC code decides where it can. etcd uses one code for several causes, which differ by their text alone: every such
text is in `KNOWN`, nowhere else, and each row is tested against the real etcd. So are the messages with which etcd
exits, in `FATAL_MESSAGES`; `etcd.fatal_messages` finds them in its output.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, IntEnum, auto
from typing import Any

from protokube.errors import ProtokubeError, Refused, TryLater
from protokube.etcd import NoSpace
from protokube.members.fatal_messages import Ending


class Code(IntEnum):
    """The gRPC codes that etcd uses."""

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
    DATA_LOSS = 15


PASSING = frozenset({
    Code.CANCELLED, Code.UNKNOWN, Code.DEADLINE_EXCEEDED, Code.RESOURCE_EXHAUSTED, Code.ABORTED, Code.OUT_OF_RANGE,
    Code.INTERNAL, Code.UNAVAILABLE,
})  # fmt: skip
LOCAL = frozenset({Code.CANCELLED, Code.UNKNOWN, Code.DEADLINE_EXCEEDED, Code.INTERNAL, Code.UNAVAILABLE})
"""Codes that may concern only the member that replied."""


class Cause(Enum):
    """Why etcd refused, where its code alone is ambiguous."""

    NO_SPACE = auto()
    CORRUPT = auto()
    TOO_MANY_LEARNERS = auto()
    NOT_IN_SYNC = auto()
    NOT_A_LEARNER = auto()
    IS_A_LEARNER = auto()
    NOT_ENOUGH_STARTED = auto()
    NOT_CONNECTED = auto()
    LEASE_GONE = auto()
    COMPACTED = auto()
    NOT_LEADER = auto()
    BAD_TRANSFEREE = auto()


@dataclass(frozen=True, slots=True)
class Known:
    """One row: an error of etcd."""

    code: Code
    text: str
    """Part of the message; the same in 3.4, 3.5 and 3.6."""
    cause: Cause
    passes: bool
    """Whether a later retry may succeed."""
    hint: str = ""


KNOWN = (
    Known(
        Code.RESOURCE_EXHAUSTED, "database space exceeded", Cause.NO_SPACE, True,
        "etcd is full: the agents compact and defragment it, then clear its alarm; see `protokube status`",
    ),
    Known(
        Code.DATA_LOSS, "corrupt cluster", Cause.CORRUPT, False,
        "a member's data differs from the others': see `protokube etcd members`, and keep every disk as it is",
    ),
    Known(Code.FAILED_PRECONDITION, "too many learner members", Cause.TOO_MANY_LEARNERS, True),
    # before NOT_A_LEARNER, whose text is a prefix of this one
    Known(Code.FAILED_PRECONDITION, "which is in sync with leader", Cause.NOT_IN_SYNC, True),
    Known(Code.FAILED_PRECONDITION, "can only promote a learner member", Cause.NOT_A_LEARNER, False),
    Known(Code.UNAVAILABLE, "rpc not supported for learner", Cause.IS_A_LEARNER, True),
    Known(Code.FAILED_PRECONDITION, "rpc not supported for learner", Cause.IS_A_LEARNER, True),  # 3.6
    Known(Code.FAILED_PRECONDITION, "not enough started members", Cause.NOT_ENOUGH_STARTED, True),
    Known(
        Code.UNAVAILABLE, "unhealthy cluster", Cause.NOT_CONNECTED, True,
        "etcd changes its members only after all of them have been connected for 5 s",
    ),
    Known(Code.NOT_FOUND, "lease not found", Cause.LEASE_GONE, True, "the lease expired; take a new one"),
    Known(Code.OUT_OF_RANGE, "revision has been compacted", Cause.COMPACTED, True),
    Known(Code.FAILED_PRECONDITION, "not leader", Cause.NOT_LEADER, True),
    Known(Code.FAILED_PRECONDITION, "bad leader transferee", Cause.BAD_TRANSFEREE, True),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Last:
    """One row: a message with which etcd exits."""

    text: re.Pattern[str]
    """Matches a whole message or its whole error; the group is the acknowledged index."""
    ending: Ending


FATAL_MESSAGES = (
    Last(
        re.compile(
            r"tocommit\(([0-9]{1,20})\) is out of range \[lastIndex\([0-9]+\)\]\."
            r" Was the raft log corrupted, truncated, or lost\?"
        ),
        Ending.LACKS_ACKNOWLEDGED,
    ),
    Last(
        re.compile(
            r"walpb: crc mismatch(?:: expected: [0-9a-f]+ computed: [0-9a-f]+(?:: in file '\S+' at position: \d+)?)?"
        ),
        Ending.CORRUPT,
    ),
    Last(re.compile(r"wal: max entry size limit exceeded"), Ending.CORRUPT),
    Last(re.compile(r"invalid database"), Ending.CORRUPT),
    Last(re.compile(r"cannot open database at \S+ \(invalid database\)"), Ending.CORRUPT),  # capnslog
    Last(re.compile(r"freepages: failed to get all reachable pages \([^\n]*\)"), Ending.CORRUPT),
    # later releases truncate a WAL that they cannot read; this is one of which nothing is left
    Last(re.compile(r"cannot use none as id"), Ending.CORRUPT),
    Last(re.compile(r"assertion failed: Page expected to be: \d+, but self identifies as \d+"), Ending.CORRUPT),  # 3.6
    Last(re.compile(r"assertion failed: page \d+: has unexpected type/flags: [0-9a-f]+"), Ending.CORRUPT),  # 3.6
    # 3.4 does not check what a page says of itself; it depends on the damage where bbolt then goes wrong
    Last(re.compile(r"runtime error: [^\n]* \(in go\.etcd\.io/bbolt\.[^\n]*\)"), Ending.CORRUPT),
    Last(re.compile(r"the member has been permanently removed from the cluster"), Ending.REMOVED),
    Last(re.compile(r"invalid downgrade; server version is lower than determined cluster version"), Ending.TOO_NEW),
    Last(  # capnslog
        re.compile(
            r"cluster cannot be downgraded"
            r" \(current version: [0-9a-z.+-]+ is lower than determined cluster version: [0-9.]+\)\."
        ),
        Ending.TOO_NEW,
    ),
)
"""The same in 3.4, 3.5 and 3.6 unless noted, except for the log format around them.

Not here: `unexpected fault address`, since both a truncated database and a read error of the disk cause it.
"""


def fatal_message(text: str) -> tuple[Last, int] | None:
    """The row that a message matches, and the index in it (0 without one); None if etcd does not exit with it."""
    for row in FATAL_MESSAGES:
        if match := row.text.fullmatch(text):
            return row, int(match[1]) if match.groups() else 0
    return None


class Fault(Exception):
    """A member replied with an error."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message

    @property
    def known(self) -> Known | None:
        """Its row in the table."""
        # 3.4 reports some of them with code UNKNOWN
        return next(
            (each for each in KNOWN if self.code in (each.code, Code.UNKNOWN) and each.text in self.message), None
        )

    @property
    def cause(self) -> Cause | None:
        return self.known.cause if self.known else None

    @property
    def elsewhere(self) -> bool:
        """Another member may succeed."""
        return self.code in LOCAL or self.cause is Cause.IS_A_LEARNER

    @property
    def untouched(self) -> bool:
        """The request was certainly not applied."""
        return self.cause is Cause.IS_A_LEARNER

    def explained(self, doing: str) -> ProtokubeError:
        """The error to raise: TryLater, NoSpace or Refused."""
        known = self.known
        hint, passes = (known.hint, known.passes) if known else ("", self.code in PASSING)
        if known is not None and known.cause is Cause.NO_SPACE:
            return NoSpace(f"{doing}: {self.message}", hint=hint)
        if passes:
            return TryLater(f"{doing}: {self.message}", hint=hint)
        return Refused(f"{doing}: {self.message}", hint=hint or "see the log of etcd for more")


def fault_in(status: int, document: Any) -> Fault | None:
    """The error in a reply; None if there is none. A streaming call wraps its error once more."""
    if isinstance(document, dict):
        error = document.get("error")
        if error is None and status == 200:
            return None
        inner: dict[str, Any] = error if isinstance(error, dict) else document
        code = int(inner.get("code") or inner.get("grpc_code") or Code.UNKNOWN)
        return Fault(code, str(inner.get("message") or error or f"HTTP status {status}"))
    if status >= 500:
        return Fault(Code.UNAVAILABLE, f"HTTP status {status}: {str(document)[:200]}")
    text = str(document)[:200]
    return Fault(Code.UNIMPLEMENTED, f"this is not etcd's JSON API: HTTP status {status}: {text}")


def unanswered(doing: str, failures: Sequence[str]) -> TryLater:
    return TryLater(f"{doing}: no member of etcd answered with a quorum", saw="; ".join(failures))
