"""Render the plan of a change: the values with their reasons, what is refused, and what restarts where. Pure."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

from protokube.cli.render.table import several
from protokube.config.diff import Difference, Side
from protokube.config.why import brief, printable, shown
from protokube.errors import Problem
from protokube.launch.change import ETCD
from protokube.launch.plan import ChangePlan

MOST_FOLLOWING = 8
LONGEST_REASON = 3
"""Lines of one reason."""
NARROWEST = 16
"""Fewest characters in which a value is shown."""
CONTEXT = 8
"""Characters that are kept before the first difference of two long texts."""


def render_change(plan: ChangePlan, cluster: str, before: int, after: int, width: int) -> list[str]:
    """Lines for a person, before anything is changed."""
    if not plan.changes:
        return [f"{cluster}: revision {before} has all of it already: nothing changes"]
    verb = "cannot change" if plan.refused else "would change"
    last = after + max(len(plan.stages) - 1, 0)
    lines = [f"{cluster}: revision {before} {verb} to {last}", "", *_added(plan, width), *_values(plan, width)]
    return [*lines, *(_refused(plan, width) if plan.refused else _restarts(plan, width))]


def change_tree(plan: ChangePlan, cluster: str, before: int, after: int) -> dict[str, Any]:
    """The same as data, with whole values."""
    return {
        "cluster": cluster,
        "before": before,
        "after": after,
        "changes": plan.changes,
        "values": [
            {
                "path": each.path,
                "before": _side_tree(each.left),
                "after": _side_tree(each.right),
                "follows": each.path in plan.following,
            }
            for each in plan.values
        ],
        "refused": [_problem_tree(each) for each in plan.refused],
        "restarts": list(plan.restarts),
        "stages": [list(each) for each in plan.stages],
        "oneWay": list(plan.one_way),
        "adds": list(plan.adds),
        "replacesHosts": any(plan.replacing),
        "masters": list(plan.masters),
        "apiAway": plan.api_away,
    }


def _side_tree(side: Side) -> dict[str, Any] | None:
    return {"value": side.value, "why": side.reason} if side.present else None


def _problem_tree(problem: Problem) -> dict[str, Any]:
    where = str(problem.where) if problem.where else None
    return {"path": problem.path, "message": problem.message, "hint": problem.hint, "where": where}


def _added(plan: ChangePlan, width: int) -> list[str]:
    lines = [line for each in plan.adds for line in _wrapped(f"adds {each}", "  ", width)]
    return [*lines, ""] if lines else []


def _values(plan: ChangePlan, width: int) -> list[str]:
    causes = [each for each in plan.values if each.path not in plan.following] or list(plan.values)
    following = [each for each in plan.values if each not in causes]
    lines: list[str] = []
    for each in causes:
        lines.append(_line(each, "  ", width))
        for name, side in (("was", each.left), ("now", each.right)):
            if side.present:
                lines += _wrapped(f"{name}: {side.reason}", "      ", width, LONGEST_REASON)
    if following:
        lines += ["  and what follows from it:", *(_line(each, "    ", width) for each in following[:MOST_FOLLOWING])]
    if more := following[MOST_FOLLOWING:]:
        lines.append(f"    and {several(len(more), 'value')} more")
    return [*lines, ""] if lines else []


def _line(each: Difference, indent: str, width: int) -> str:
    start = f"{indent}{each.path}  "
    return start + step(each.left, each.right, width - len(start))


def step(left: Side, right: Side, width: int) -> str:
    """From one value to another in one line; of long ones, the part that differs."""
    if not (left.present and right.present):
        return _one_sided(left, right, width)
    most = max((width - len(" -> ")) // 2, NARROWEST)
    before, after = _lines(left.value), _lines(right.value)
    plain = f"{before[0]} -> {after[0]}"
    if before == after:
        return "differs only in line ends or type"
    if len(before) == len(after) == 1 and len(plain) <= max(width, 2 * NARROWEST):
        return plain
    if isinstance(left.value, list) and isinstance(right.value, list):
        return _list_step(left.value, right.value, most)
    if len(before) == len(after) == 1:
        return " -> ".join(_differing(before[0], after[0], most))
    return _text_step(before, after, most)


def _lines(value: Any) -> list[str]:
    return [printable(line) for line in shown(value).removesuffix("\n").split("\n")]


def _one_sided(left: Side, right: Side, width: int) -> str:
    side = left if left.present else right
    if isinstance(side.value, dict) and side.value:
        return "removed" if left.present else "added"
    value = brief(side.value, max(width - len("not set -> "), NARROWEST))
    return f"{value} -> not set" if left.present else f"not set -> {value}"


def _list_step(before: list[Any], after: list[Any], most: int) -> str:
    added = [each for each in after if each not in before]
    removed = [each for each in before if each not in after]
    parts = [f"{verb} {brief(items, most)}" for verb, items in (("adds", added), ("removes", removed)) if items]
    return ", ".join(parts) or f"the same {len(after)} items in another order, or more often"


def _text_step(before: list[str], after: list[str], most: int) -> str:
    same = _alike(before, after)
    old, new = (text[same] if same < len(text) else "(end)" for text in (before, after))
    return f"line {same + 1} of {max(len(before), len(after))}: {' -> '.join(_differing(old, new, most))}"


def _differing(before: str, after: str, most: int) -> list[str]:
    """Both texts without their common beginning, if they are too long."""
    longest, same = max(len(before), len(after)), _alike(before, after)
    context = max(CONTEXT, most - (longest - same) - len("... "))
    if longest > most and same > context:
        before, after = (f"... {text[same - context :]}" for text in (before, after))
    return [brief(text, most) for text in (before, after)]


def _alike(before: Sequence[str], after: Sequence[str]) -> int:
    """How many items, or characters, are the same at the beginning."""
    pairs = enumerate(zip(before, after, strict=False))
    return next((index for index, (old, new) in pairs if old != new), min(len(before), len(after)))


def _refused(plan: ChangePlan, width: int) -> list[str]:
    lines = ["refused, nothing is changed:"]
    for each in plan.refused:
        for line in str(each).splitlines():
            lines += _wrapped(line.lstrip(), "    " if line.startswith(" ") else "  ", width)
    return lines


def _restarts(plan: ChangePlan, width: int) -> list[str]:
    where = ", ".join(plan.masters)
    if not plan.restarts:
        return _wrapped(f"written on {where} without a restart", "", width)
    turns = ", one master after the other" if len(plan.masters) > 1 else ""
    etcd = any(each.startswith(ETCD) for each in plan.restarts)
    verb = "starts" if plan.first_api and not any(plan.replacing) and not etcd else "restarts"
    lines = _wrapped(f"{verb} on {where}{turns}:", "", width)
    if len(plan.stages) > 1:
        for number, names in enumerate(plan.stages, start=1):
            lines += _wrapped(f"stage {number}: {', '.join(names) or 'no restart'}", "  ", width)
    else:
        lines += _wrapped(", ".join(plan.restarts), "  ", width)
    if any(plan.replacing):
        stage = f"stage {plan.replacing.index(True) + 1} replaces" if len(plan.stages) > 1 else "this replaces"
        lines += _wrapped(f"{stage} each host by a new one, which takes over its disks", "", width)
    for sentence in plan.one_way:
        lines += _wrapped(f"no way back: {sentence}", "", width)
    if plan.api_away:
        what = "the API and etcd do" if etcd else "the API does"
        doing = f"restarts {'them' if etcd else 'it'}"
        doing = "is replaced, for half a minute or so" if any(plan.replacing) else doing
        lines += _wrapped(f"{what} not answer while the only master {doing}; `--yes` confirms it", "", width)
    return lines


def _wrapped(text: str, indent: str, width: int, most: int | None = None) -> list[str]:
    more = f"{indent}  "
    fit = max(width, len(more) + NARROWEST)
    return textwrap.wrap(
        text,
        fit,
        initial_indent=indent,
        subsequent_indent=more,
        break_long_words=False,
        break_on_hyphens=False,
        max_lines=most,
        placeholder=" ...",
    )
