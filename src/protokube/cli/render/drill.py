"""Render the verdict of a drill, as text and as data. Pure."""

from __future__ import annotations

import json
from typing import Any

from protokube.cli.render.table import exactly
from protokube.errors import ExitCode
from protokube.local.drill.values import Step, Verdict


def outcome(verdict: Verdict) -> ExitCode:
    if verdict.broken:
        return ExitCode.REFUSED
    return ExitCode.TRY_LATER if verdict.missing else ExitCode.OK


def step_line(step: Step) -> str:
    return f"{step.at:8.2f} s  {step.text}"


def render_verdict(verdict: Verdict) -> list[str]:
    lines = [f"{verdict.drill}: {verdict.target}", writes(verdict), *api_writes(verdict), members(verdict)]
    if verdict.old is not None:
        old = verdict.old
        lines.append(
            f"the old holder: {old.attempts} writes tried through it, {len(old.acknowledged)} acknowledged,"
            f" {len(old.landed)} in the cluster"
        )
    if verdict.broken:
        lines += ["broken promises:", *(f"  {each}" for each in verdict.broken)]
    if verdict.missing:
        lines += ["still waited for when the time was up:", *(f"  {each}" for each in verdict.missing)]
    if verdict.lacks:
        lines += ["because:", *(f"  {each}" for each in verdict.lacks)]
    if verdict.good:
        lines.append("good: every promise was kept")
    return lines


def writes(verdict: Verdict) -> str:
    kept = "all" if verdict.there == verdict.acknowledged else f"only {verdict.there:,}"
    gap = f"longest gap {exactly(verdict.longest_gap)}"
    return (
        f"writes: {verdict.acknowledged:,} acknowledged, {kept} of them read back;"
        f" {verdict.unanswered:,} without an answer; {gap}"
    )


def api_writes(verdict: Verdict) -> list[str]:
    api = verdict.api
    if api is None:
        return []
    kept = "all" if api.there == api.acknowledged else f"only {api.there:,}"
    return [
        f"through the Kubernetes API: {api.acknowledged:,} acknowledged, {kept} of them read back;"
        f" {api.unanswered:,} without an answer; longest gap {exactly(api.longest_gap)}"
    ]


def members(verdict: Verdict) -> str:
    if verdict.same_list:
        return "members: the same before and after, byte by byte"
    names = [sorted(each["name"] for each in json.loads(text)) for text in verdict.lists]
    if verdict.replaced and names[0] == names[1]:
        return f"members: the same names as before; {verdict.replaced} joined anew, with another id"
    return "members: another list than before"


def verdict_tree(verdict: Verdict) -> dict[str, Any]:
    before, after = (json.loads(each) for each in verdict.lists)
    tree: dict[str, Any] = {
        "drill": verdict.drill,
        "target": verdict.target,
        "good": verdict.good,
        "broken": list(verdict.broken),
        "waitingFor": list(verdict.missing),
        "because": list(verdict.lacks),
        "steps": [{"seconds": round(each.at, 3), "text": each.text} for each in verdict.steps],
        "writes": {
            "acknowledged": verdict.acknowledged,
            "readBack": verdict.there,
            "unanswered": verdict.unanswered,
            "longestGap": round(verdict.longest_gap, 3),
            "longestGapBegan": round(verdict.gap_began, 3),
        },
        "members": {"same": verdict.same_list, "before": before, "after": after},
    }
    if verdict.api is not None:
        tree["apiWrites"] = {
            "acknowledged": verdict.api.acknowledged,
            "readBack": verdict.api.there,
            "unanswered": verdict.api.unanswered,
            "longestGap": round(verdict.api.longest_gap, 3),
        }
    if verdict.old is not None:
        tree["oldHolder"] = {
            "host": verdict.old.host,
            "attempts": verdict.old.attempts,
            "acknowledged": list(verdict.old.acknowledged),
            "landed": list(verdict.old.landed),
            "goneAfter": verdict.old.gone_after,
        }
    return tree
