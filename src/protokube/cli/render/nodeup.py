"""What nodeup did, would do, or did in an earlier run. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from protokube.cli.render.table import exactly, several, table
from protokube.errors import ExitCode
from protokube.nodeup.changes import Change, Outcome, Result
from protokube.nodeup.trace import Trace, critical_path, to_tree

SLOWEST = 8
SHOWN = (Result.CHANGED, Result.UNCHANGED, Result.FAILED, Result.BLOCKED, Result.STOPPED)
ALWAYS = (Result.CHANGED, Result.UNCHANGED)


def plain(text: str) -> str:
    """Without what a terminal would obey, or cannot show: names of files on a machine may have any bytes."""
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def outcome_line(outcome: Outcome) -> str:
    """One line for what happened to one task; empty if nothing did."""
    match outcome.result:
        case Result.CHANGED:
            return f"changed  {outcome.key}: {changes_text(outcome.changes)} ({exactly(outcome.seconds)})"
        case Result.FAILED:
            return f"failed   {outcome.key}: {outcome.why}"
        case Result.BLOCKED:
            return f"blocked  {outcome.key}: needs {outcome.why}"
        case Result.STOPPED:
            return f"stopped  {outcome.key}: {outcome.why}"
    return ""


def plan_line(outcome: Outcome) -> str:
    """One line for what would happen to one task."""
    match outcome.result:
        case Result.CHANGED:
            reason = f"; {outcome.why}" if outcome.why else ""
            return f"would change  {outcome.key}: {changes_text(outcome.changes)}{reason}"
        case Result.FAILED:
            return f"would fail    {outcome.key}: {outcome.why}"
        case Result.STOPPED:
            return f"not looked at {outcome.key}: {outcome.why}"
    return ""


def changes_text(changes: Sequence[Change]) -> str:
    return ", ".join(map(str, changes))


def summary(outcomes: Sequence[Outcome], seconds: float) -> str:
    """`nodeup: 3 changed, 57 unchanged, 1 failed, 2 blocked in 4.1 s`."""
    return f"nodeup: {counts(outcomes)} in {seconds:.1f} s"


def counts(outcomes: Sequence[Outcome]) -> str:
    found = Counter(outcome.result for outcome in outcomes)
    return ", ".join(f"{found[each]} {each}" for each in SHOWN if found[each] or each in ALWAYS)


def plan_summary(outcomes: Sequence[Outcome]) -> str:
    found = Counter(outcome.result for outcome in outcomes)
    if found[Result.UNCHANGED] == len(outcomes):
        return f"nodeup: nothing would change; {several(len(outcomes), 'task')} looked at"
    failed = f", {found[Result.FAILED]} would fail" if found[Result.FAILED] else ""
    stopped = f", {found[Result.STOPPED]} not looked at" if found[Result.STOPPED] else ""
    return f"nodeup: {found[Result.CHANGED]} would change, {found[Result.UNCHANGED]} unchanged{failed}{stopped}"


def plan_tree(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """A plan as data."""
    return {
        "tasks": [
            {
                "key": outcome.key,
                "result": str(outcome.result),
                "why": outcome.why,
                "changes": [asdict(each) for each in outcome.changes],
            }
            for outcome in outcomes
        ]
    }


def exit_code(outcomes: Sequence[Outcome], *, plan: bool = False) -> ExitCode:
    """Who has to act. A failure that may pass by itself needs nobody, unless there are others."""
    failed = [outcome for outcome in outcomes if outcome.result is Result.FAILED]
    if any(outcome.result is Result.STOPPED for outcome in outcomes):
        return ExitCode.STOPPED
    if failed:
        return ExitCode.TRY_LATER if all(outcome.again for outcome in failed) else ExitCode.REFUSED
    if plan and any(outcome.result is Result.CHANGED for outcome in outcomes):
        return ExitCode.DIFFERENT
    return ExitCode.OK


def render_report(number: int, trace: Trace) -> list[str]:
    """A trace for people: how it ended, what took its time, and what failed."""
    lines = [
        f"run {number} of protokube {trace.version}, begun {trace.began}: {trace.end} after {exactly(trace.seconds)}"
    ]
    if trace.error:
        return [plain(line) for line in (*lines, f"nothing was tried: {trace.error}")]
    lines.append(counts(trace.outcomes))
    path = critical_path(trace.outcomes, trace.needs)
    total = sum(step.outcome.seconds + step.waited for step in path)
    rows = [
        (exactly(each.outcome.began), exactly(each.outcome.seconds), exactly(each.waited), each.outcome.key)
        for each in path
    ]
    if rows:
        lines += ["", f"critical path, {exactly(total)}:", *table(("BEGAN", "TOOK", "WAITED", "TASK"), rows)]
    slow = sorted(trace.outcomes, key=lambda each: (-each.seconds, each.key))[:SLOWEST]
    rows = [(exactly(each.seconds), exactly(each.cpu), str(each.result), each.key) for each in slow if each.seconds > 0]
    if rows:
        lines += ["", "slowest tasks:", *table(("TOOK", "CPU", "RESULT", "TASK"), rows)]
    bad = [outcome_line(each) for each in trace.outcomes if each.result not in ALWAYS]
    return [plain(line) for line in ([*lines, "", "not done:", *bad] if bad else lines)]


def report_tree(number: int, trace: Trace) -> dict[str, Any]:
    """The same as data: the trace and its critical path."""
    path = critical_path(trace.outcomes, trace.needs)
    steps = [{"key": each.outcome.key, "waited": round(each.waited, 4)} for each in path]
    return {"run": number, **to_tree(trace), "criticalPath": steps}
