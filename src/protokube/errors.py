"""What can go wrong, by who has to act.

`InvalidSpec`: the user edits. `TryLater`: the next round, or the same command a little later, asks again.
`Refused`: a person decides. Every error tells what happened, what we saw, what we want and what to do next.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class ExitCode(IntEnum):
    """What a command tells the shell: one table for all commands, docs/exit-codes.md."""

    OK = 0  # done; for `status` and `up`: ready, and nobody is needed
    DIFFERENT = 1  # the two things compared are not the same
    INVALID = 2  # the user edits something and runs the command again
    TRY_LATER = 3  # not yet, or something outside did not answer; nobody has to act
    REFUSED = 4  # a person has to act, also while the cluster serves
    BUG = 70  # ours to mend


@dataclass(frozen=True, slots=True)
class Where:
    """A place in a file the user wrote."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing that is wrong, or a warning about one, at one place."""

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
        """Problems come out in the order a reader meets them in the file."""
        where = self.where or Where("", 0)
        return (where.file, where.line, self.path, self.message)


class ProtokubeError(Exception):
    """An error a user can do something about: shown without a traceback."""

    exit_code = ExitCode.REFUSED

    def __init__(self, message: str, *, saw: str = "", want: str = "", hint: str = "") -> None:
        super().__init__(message)
        self.message, self.saw, self.want, self.hint = message, saw, want, hint

    def __str__(self) -> str:
        told = (("saw", self.saw), ("want", self.want), ("hint", self.hint))
        return "\n".join([self.message, *(f"  {name + ':':5} {text}" for name, text in told if text)])


class TryLater(ProtokubeError):
    """Something outside did not answer; asking again later may help."""

    exit_code = ExitCode.TRY_LATER


class Refused(ProtokubeError):
    """Going on could do harm; a person decides."""


class InvalidRequest(ProtokubeError):
    """What was asked for on the command line does not exist."""

    exit_code = ExitCode.INVALID


class InvalidSpec(ProtokubeError):
    """What the user wrote cannot be carried out; every problem at once."""

    exit_code = ExitCode.INVALID

    def __init__(self, problems: list[Problem] | tuple[Problem, ...]) -> None:
        self.problems = tuple(sorted(set(problems), key=lambda problem: problem.order))
        count = len(self.problems)
        super().__init__(f"{count} problem{'' if count == 1 else 's'} in the spec")

    def __str__(self) -> str:
        shown = [line for problem in self.problems for line in str(problem).splitlines()]
        return "\n".join([self.message, *(f"  {line}" for line in shown)])
