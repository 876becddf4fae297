"""What a run did and how long each task took, kept as JSON on the machine; and what made the run take that long.

A trace has keys, words for changes and reasons, none of which may hold a secret: a File that is one says only that it
differs. Traces are numbered, since the clock of a machine may be set during a run.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from protokube.errors import NotFound, Refused
from protokube.host.files import write_atomic
from protokube.nodeup.changes import Change, Outcome, Result
from protokube.nodeup.engine.failures import explained

FOLDER = "/var/log/protokube/nodeup"
"""As a path of the machine."""
KEPT = 10
NAME = re.compile(r"[0-9]{6,20}\.json")
FORMAT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """One run."""

    version: str
    """Of protokube."""
    began: str
    """By the clock of the machine: 2026-01-01T00:00:00Z."""
    seconds: float
    end: str
    """`done`, `failed`, `stopped`, or `error` if nothing was tried."""
    error: str = ""
    """Why nothing was tried."""
    outcomes: tuple[Outcome, ...] = ()
    needs: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Step:
    """One task of the critical path, and how long it waited after the one before had ended: for its turn."""

    outcome: Outcome
    waited: float


def end_of(outcomes: Sequence[Outcome]) -> str:
    """How a run ended, in one word. Pure."""
    results = {outcome.result for outcome in outcomes}
    if Result.STOPPED in results:
        return "stopped"
    return "failed" if results & {Result.FAILED, Result.BLOCKED} else "done"


def critical_path(outcomes: Sequence[Outcome], needs: Mapping[str, Sequence[str]]) -> tuple[Step, ...]:
    """The chain that ended last: from its end, each time to that need which ended last. Pure.

    A file that somebody edited may say that tasks need each other: none is counted twice.
    """
    tried = {each.key: each for each in outcomes if _was_tried(each)}
    path: list[Step] = []
    following = max(tried.values(), key=_end, default=None)
    while following is not None:
        tried.pop(following.key)
        before = max((tried[key] for key in needs.get(following.key, ()) if key in tried), key=_end, default=None)
        waited = following.began - (_end(before) if before else 0.0)
        path.append(Step(following, max(waited, 0.0)))
        following = before
    return tuple(reversed(path))


def _was_tried(outcome: Outcome) -> bool:
    """What was stopped while it was under way took its time, too."""
    if outcome.result is Result.STOPPED:
        return outcome.seconds > 0
    return outcome.result is not Result.BLOCKED


def _end(outcome: Outcome) -> float:
    return outcome.began + outcome.seconds


def to_tree(trace: Trace) -> dict[str, Any]:
    """As JSON values. Pure."""
    return {
        "format": FORMAT,
        "version": trace.version,
        "began": trace.began,
        "seconds": round(trace.seconds, 4),
        "end": trace.end,
        "error": trace.error,
        "tasks": [_task(outcome, trace.needs.get(outcome.key, ())) for outcome in trace.outcomes],
    }


def _task(outcome: Outcome, needs: Sequence[str]) -> dict[str, Any]:
    return {
        "key": outcome.key,
        "result": str(outcome.result),
        "why": outcome.why,
        "again": outcome.again,
        "began": round(outcome.began, 4),
        "seconds": round(outcome.seconds, 4),
        "cpu": round(outcome.cpu, 4),
        "changes": [asdict(each) for each in outcome.changes],
        "needs": list(needs),
    }


def from_tree(tree: Any) -> Trace:
    """Refused if it is no trace, or one of a later version. Pure."""
    try:
        if tree["format"] != FORMAT:
            raise Refused(
                "this trace was written by another version of protokube",
                saw=f"format {tree['format']}",
                want=f"format {FORMAT}",
            )
        outcomes = tuple(
            Outcome(
                key=str(task["key"]), result=Result(task["result"]), why=str(task["why"]), again=bool(task["again"]),
                began=_seconds(task["began"]), seconds=_seconds(task["seconds"]), cpu=_seconds(task["cpu"]),
                changes=tuple(
                    Change(str(each["what"]), str(each["saw"]), str(each["want"])) for each in task["changes"]
                ),
            )
            for task in tree["tasks"]
        )  # fmt: skip
        return Trace(
            version=str(tree["version"]), began=str(tree["began"]), seconds=_seconds(tree["seconds"]),
            end=str(tree["end"]), error=str(tree["error"]), outcomes=outcomes,
            needs={str(task["key"]): tuple(map(str, task["needs"])) for task in tree["tasks"]},
        )  # fmt: skip
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise Refused("this is no trace of nodeup", saw=f"{type(error).__name__}: {error}") from error


def _seconds(value: Any) -> float:
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"{number} is no number of seconds")
    return number


def keep(folder: Path, trace: Trace) -> Path:
    """Write a trace and remove all but the newest. For the one who holds the lock of this machine."""
    folder.mkdir(parents=True, exist_ok=True)
    present = numbers(folder)
    taken = [int(each.stem) for each in folder.glob("*.json") if NAME.fullmatch(each.name)]  # also by what is no file
    path = folder / f"{max(taken, default=0) + 1:06d}.json"
    for draft in folder.glob(".*.json.*"):  # of runs that were killed while they wrote
        if draft.is_file():
            draft.unlink(missing_ok=True)
    write_atomic(path, json.dumps(to_tree(trace), indent=1).encode() + b"\n")
    for number in present[: 1 - KEPT]:
        with suppress(FileNotFoundError):
            (folder / f"{number:06d}.json").unlink()
    return path


def numbers(folder: Path) -> list[int]:
    """Of all traces that are kept, the newest one last. What has no such name, or is no file, is none of ours."""
    named = (each for each in folder.glob("*.json") if NAME.fullmatch(each.name) and each.is_file())
    return sorted(int(each.stem) for each in named if each.name == f"{int(each.stem):06d}.json")


def read(folder: Path, number: int | None = None) -> tuple[int, Trace]:
    """One trace, or the newest; NotFound if there is none."""
    try:
        present = numbers(folder)
    except OSError as error:
        raise explained(error, str(folder)) from error
    if not present:
        raise NotFound("nodeup has not run on this machine", saw=f"no trace in {folder}")
    chosen = present[-1] if number is None else number
    if chosen not in present:
        raise NotFound(
            f"there is no trace of run {chosen}", saw=f"runs {present[0]} to {present[-1]}",
            hint="only the newest ones are kept",
        )  # fmt: skip
    path = folder / f"{chosen:06d}.json"
    try:
        return chosen, from_tree(json.loads(path.read_bytes()))
    except OSError as error:
        raise explained(error, str(path)) from error
    except (ValueError, RecursionError) as error:
        raise Refused(f"{path} is no trace of nodeup", saw=str(error)) from error
