"""Apply the rules to the differences of two configurations: all refusals at once.

An item that is added or removed as a whole, such as an etcd member, is one refusal, not one for each of its fields.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from functools import cache

from protokube.config.diff import Difference, Side
from protokube.config.fixed.rules import RULES, Rule
from protokube.config.why import brief
from protokube.errors import Problem
from protokube.spec.parse import GROUPS


def refusals(found: Iterable[Difference], masters: Collection[str]) -> list[Problem]:
    """What of these differences a running cluster cannot take over.

    `masters`: the groups of role Master, before or after; the rules for groups are for these only.
    """
    names = tuple(sorted(masters))
    items: dict[str, Problem] = {}
    refused: dict[str, Problem] = {}
    differing = list(found)
    for each in differing:
        items.update(_items(each, names))
    for each in differing:
        inside = [item for item in items if each.path.startswith(f"{item}.")]
        problem = items[min(inside, key=len)] if inside else _field(each, names)
        if problem:
            refused.setdefault(problem.path, problem)
    return list(refused.values())


def _items(each: Difference, masters: tuple[str, ...]) -> Iterator[tuple[str, Problem]]:
    """The item that is added or removed with this field."""
    if each.left.present and each.right.present:
        return
    for rule in RULES:
        if not rule.each:
            continue
        for pattern in rule.paths:
            if match := _pattern(f"{pattern}.{rule.each}", masters).fullmatch(each.path):
                path = match[0].removesuffix(f".{rule.each}")
                how = "removed from" if each.left.present else "added to"
                yield path, _problem(path, rule, f"cannot be {how} a running cluster")


def _field(each: Difference, masters: tuple[str, ...]) -> Problem | None:
    before, after = (side.value if side.present else None for side in (each.left, each.right))
    for rule in RULES:
        is_for = not rule.each and any(_pattern(path, masters).match(each.path) for path in rule.paths)
        if is_for and rule.refuses(before, after):
            step = f"{_shown(each.left)} -> {_shown(each.right)}"
            return _problem(each.path, rule, f"cannot change on a running cluster, {step}")
    return None


def _problem(path: str, rule: Rule, what: str) -> Problem:
    return Problem(path=path, message=f"{what}: {rule.reason}", hint=rule.instead)


def _shown(side: Side) -> str:
    return brief(side.value) if side.present else "not set"


@cache
def _pattern(path: str, masters: tuple[str, ...]) -> re.Pattern[str]:
    """Matches the path and everything under it; names of groups may have dots, other names have none."""
    name = "[^.]+"
    if path.startswith(f"{GROUPS}."):
        name = f"(?:{'|'.join(map(re.escape, masters))})" if masters else "(?!)"
    return re.compile(rf"{re.escape(path).replace(re.escape('*'), name)}(?=\.|\[|\Z)")
