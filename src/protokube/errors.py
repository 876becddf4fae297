"""Error classes, by who has to act.

`InvalidSpec`: the user edits the spec. `TryLater`: the next round, or the same command a little later, retries.
`Refused`: a person decides. Every error states what happened, what we saw, what we want and what to do next.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class ExitCode(IntEnum):
    """Exit codes of all commands; see docs/exit-codes.md."""

    OK = 0  # done; for `status` and `up`: ready, and no action is needed
    DIFFERENT = 1  # the compared configurations differ, or a plan would change something
    INVALID = 2  # the user edits something and runs the command again
    TRY_LATER = 3  # not yet, or something outside did not answer; no action is needed
    REFUSED = 4  # a person has to act, also while the cluster serves
    BUG = 70  # a bug in protokube
    STOPPED = 130  # Ctrl-C, as a shell counts it


CODES: dict[str, tuple[ExitCode, str]] = {
    "usage": (ExitCode.INVALID, "an unknown command or option, or a value that an option does not take"),
    "invalid-request": (ExitCode.INVALID, "options or arguments that do not go together, or cannot be carried out"),
    "invalid-spec": (ExitCode.INVALID, "a spec with problems; all of them are in `problems`"),
    "not-found": (ExitCode.INVALID, "a name that does not exist; `hint` has the one probably meant"),
    "no-cluster": (ExitCode.INVALID, "there is no cluster at all, here or in the store"),
    "several-clusters": (ExitCode.INVALID, "there are several clusters, and none was named"),
    "try-later": (ExitCode.TRY_LATER, "something did not answer, or is not so far yet"),
    "refused": (ExitCode.REFUSED, "going on could do harm, or something is missing that a person provides"),
    "needs-root": (ExitCode.REFUSED, "this needs root, or the permission to read what belongs to root"),
    "not-running": (ExitCode.REFUSED, "the named host does not run"),
    "cluster-down": (ExitCode.REFUSED, "the cluster is stopped, or its local cloud does not run; `protokube start`"),
    "needs-kubernetes": (ExitCode.REFUSED, "the cluster has no Kubernetes"),
    "missing-program": (ExitCode.REFUSED, "this machine lacks a program or a library"),
    "exists": (ExitCode.REFUSED, "what should be made is there already, and was left as it is"),
    "taken": (ExitCode.REFUSED, "the port is in use already"),
    "output": (ExitCode.REFUSED, "the result could not be written"),
    "bug": (ExitCode.BUG, "a bug in protokube"),
    "stopped": (ExitCode.STOPPED, "stopped by Ctrl-C"),
}
"""Stable names of errors for programs: they are never changed, and what a code means stays. With its exit code."""


@dataclass(frozen=True, slots=True)
class Where:
    """A place in a file the user wrote."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One problem or warning, at one place."""

    path: str
    message: str
    hint: str = ""
    where: Where | None = None

    def __str__(self) -> str:
        place = " ".join(part for part in (str(self.where or ""), self.path) if part)
        lines = [f"{place}: {self.message}" if place else self.message]
        lines += [f"  hint: {line}" for line in self.hint.splitlines()]
        return "\n".join(lines)

    @property
    def order(self) -> tuple[str, int, str, str]:
        """Sort key: the order of the lines in the file."""
        where = self.where or Where("", 0)
        return (where.file, where.line, self.path, self.message)


class ProtokubeError(Exception):
    """An error that a user can act on: shown without a traceback."""

    exit_code = ExitCode.REFUSED
    code = "refused"
    """A key of CODES with this exit code. `code=` names one for a single error."""

    def __init__(self, message: str, *, saw: str = "", want: str = "", hint: str = "", code: str = "") -> None:
        super().__init__(message)
        self.message, self.saw, self.want, self.hint = message, saw, want, hint
        self.code = code or type(self).code

    def __str__(self) -> str:
        fields = (("saw", self.saw), ("want", self.want), ("hint", self.hint))
        return "\n".join([self.message, *(f"  {name + ':':5} {text}" for name, text in fields if text)])

    def in_one_line(self) -> str:
        """As a reason, in a line of progress."""
        return " ".join(f"{self.message}{f' ({self.saw})' if self.saw else ''}".split())


class TryLater(ProtokubeError):
    """Something outside did not answer; retrying later may help."""

    exit_code = ExitCode.TRY_LATER
    code = "try-later"


class Refused(ProtokubeError):
    """Continuing could do harm; a person decides."""


class InvalidRequest(ProtokubeError):
    """An invalid request on the command line."""

    exit_code = ExitCode.INVALID
    code = "invalid-request"


class NotFound(InvalidRequest):
    """A name that does not exist."""

    code = "not-found"


class NeedsRoot(Refused):
    """Only root may do this."""

    code = "needs-root"


class InvalidSpec(ProtokubeError):
    """The spec is invalid; has every problem at once."""

    exit_code = ExitCode.INVALID
    code = "invalid-spec"

    def __init__(self, problems: list[Problem] | tuple[Problem, ...]) -> None:
        self.problems = tuple(sorted(set(problems), key=lambda problem: problem.order))
        count = len(self.problems)
        super().__init__(f"{count} problem{'' if count == 1 else 's'} in the spec")

    def __str__(self) -> str:
        shown = [line for problem in self.problems for line in str(problem).splitlines()]
        return "\n".join([self.message, *(f"  {line}" for line in shown)])
