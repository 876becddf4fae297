"""Marks as the lines of a TXT record: one line for one value, or for many whose objects are named alike.

A name may lead to hundreds of nodes, and a provider takes only so many characters in one change, before and after: so
what the marks of a line have in common is written once. With a star in the middle it reads

    protokube/1 <owner> A 10.0.* 1.7=1-7,1.8=1-8 service/default/web>node/ip-10-0-*.internal

where each pair is what the stars stand for. The same marks give the same lines, whoever writes them.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from protokube.records.owners import TYPE, Mark

LONGEST_LINE = 2_000
"""Characters. A provider cuts a text into strings of 255 itself; half of what Route 53 takes in one."""
ONE = re.compile(rf"protokube/1 ([!-~]+) {TYPE} ([!-~]+) ([!-~]+)")
MANY = re.compile(rf"protokube/1 ([!-~]+) {TYPE} ([!-~]+) ([!-~]+) ([!-~]+)")
OURS = re.compile(r"[*,=]")
"""What has a meaning in a line of many: a mark that holds one of these has a line of its own."""
UP_TO_BREAK = re.compile(r".*[./:>-]", re.DOTALL)
FROM_BREAK = re.compile(r"[./:>-].*", re.DOTALL)


def lines_of(marks: Iterable[Mark]) -> set[str]:
    """Every mark, in as few characters as need be."""
    alike: defaultdict[tuple[str, ...], list[Mark]] = defaultdict(list)
    lines: set[str] = set()
    for mark in sorted(set(marks), key=lambda each: (each.by, each)):
        if OURS.search(mark.value + mark.by):
            lines.add(str(mark))
        else:
            alike[mark.owner, mark.type, mark.by.rpartition("/")[0]].append(mark)
    return lines.union(*(_packed(group) for group in alike.values()))


def marks_in(text: str) -> tuple[Mark, ...]:
    """The marks that a line holds; none if it is not exactly such a line."""
    if found := ONE.fullmatch(text):
        return (Mark(owner=found[1], type=found[2], value=found[3], by=found[4]),)
    found = MANY.fullmatch(text)
    if found is None or found[3].count("*") != 1 or found[5].count("*") > 1:
        return ()
    pairs = [part.split("=") for part in found[4].split(",")]
    if any(len(pair) != 1 + found[5].count("*") for pair in pairs):
        return ()
    return tuple(
        Mark(owner=found[1], type=found[2], value=found[3].replace("*", pair[0]), by=found[5].replace("*", pair[-1]))
        for pair in pairs
    )


def can_be_written(mark: Mark) -> bool:
    return marks_in(str(mark)) == (mark,)


def _packed(marks: Sequence[Mark]) -> Iterator[str]:
    """In their order, as many in a line as it holds: with each more it is longer, so that is found by halving."""
    while marks:
        here = marks[: LONGEST_LINE // 2]  # each takes a character and a comma at least
        more = bisect_right(range(2, len(here) + 1), LONGEST_LINE, key=partial(_length, here))
        yield _line(here[: 1 + more]) if more else str(here[0])
        marks = marks[1 + more :]


def _length(marks: Sequence[Mark], count: int) -> int:
    return len(_line(marks[:count]))


def _line(marks: Sequence[Mark]) -> str:
    values, parts = _common([mark.value for mark in marks])
    objects = {mark.by for mark in marks}
    if len(objects) == 1:
        told, by = parts, marks[0].by
    else:
        by, others = _common([mark.by for mark in marks])
        told = [f"{part}={other}" for part, other in zip(parts, others, strict=True)]
    return f"protokube/1 {marks[0].owner} {marks[0].type} {values} {','.join(told)} {by}"


def _common(texts: Sequence[str]) -> tuple[str, list[str]]:
    """What all begin and end with, with a star in between, and what it stands for in each."""
    before = UP_TO_BREAK.match(_beginning(texts))
    start = len(before[0]) if before else 0
    after = FROM_BREAK.search(_beginning([text[start:][::-1] for text in texts])[::-1])
    end = len(after[0]) if after else 0
    parts = [text[start : len(text) - end] for text in texts]
    return f"{texts[0][:start]}*{texts[0][len(texts[0]) - end :]}", parts


def _beginning(texts: Sequence[str]) -> str:
    """What all begin with: what the first and the last of them in the alphabet have in common, all between have too."""
    first, last = min(texts), max(texts)
    same = next((at for at, (one, other) in enumerate(zip(first, last, strict=False)) if one != other), len(first))
    return first[:same]
