"""Encode marks as the lines of a TXT record: one line for one value, or for many with similar object names.

A name may have hundreds of nodes, and a provider limits the characters of one change, old and new records together. So
a line contains the common prefix and suffix of its marks only once, with a star in between:

    protokube/1 <owner> A 10.0.* 1.7=1-7,1.8=1-8 service/default/web>node/ip-10-0-*.internal

Each pair holds what the two stars stand for. The encoding is deterministic: every writer makes the same lines from the
same marks.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from protokube.records.owners import TYPE, Mark

LONGEST_LINE = 2_000
"""Characters: half of what Route 53 accepts in one value. Providers split a text into strings of 255 themselves."""
ONE = re.compile(rf"protokube/1 ([!-~]+) {TYPE} ([!-~]+) ([!-~]+)")
MANY = re.compile(rf"protokube/1 ([!-~]+) {TYPE} ([!-~]+) ([!-~]+) ([!-~]+)")
OURS = re.compile(r"[*,=]")
"""Characters with a meaning in a line of many marks: a mark that contains one gets a line of its own."""
UP_TO_BREAK = re.compile(r".*[./:>-]", re.DOTALL)
FROM_BREAK = re.compile(r"[./:>-].*", re.DOTALL)


def lines_of(marks: Iterable[Mark]) -> set[str]:
    """The lines that encode all marks compactly."""
    each_once = set(marks)
    if len(each_once) == 1:  # most names have one value
        return set(map(str, each_once))
    alike: defaultdict[tuple[str, ...], list[Mark]] = defaultdict(list)
    lines: set[str] = set()
    for mark in sorted(each_once, key=lambda each: (each.by, each)):
        if OURS.search(mark.value + mark.by):
            lines.add(str(mark))
        else:
            alike[mark.owner, mark.type, mark.by.rpartition("/")[0]].append(mark)
    return lines.union(*(_packed(group) for group in alike.values()))


def marks_in(text: str) -> tuple[Mark, ...]:
    """The marks in a line; none if it does not match the format exactly."""
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
    """Fill lines in order. A line grows with each mark, so a binary search finds how many fit."""
    while marks:
        here = marks[: LONGEST_LINE // 2]  # each takes at least a character and a comma
        more = bisect_right(range(2, len(here) + 1), LONGEST_LINE, key=partial(_length, here))
        yield _line(here[: 1 + more]) if more else str(here[0])
        marks = marks[1 + more :]


def _length(marks: Sequence[Mark], count: int) -> int:
    return len(_line(marks[:count]))


def _line(marks: Sequence[Mark]) -> str:
    values, parts = _common([mark.value for mark in marks])
    objects = {mark.by for mark in marks}
    if len(objects) == 1:
        pieces, by = parts, marks[0].by
    else:
        by, others = _common([mark.by for mark in marks])
        pieces = [f"{part}={other}" for part, other in zip(parts, others, strict=True)]
    return f"protokube/1 {marks[0].owner} {marks[0].type} {values} {','.join(pieces)} {by}"


def _common(texts: Sequence[str]) -> tuple[str, list[str]]:
    """The common prefix and suffix with a star in between, and what the star stands for in each text."""
    before = UP_TO_BREAK.match(_beginning(texts))
    start = len(before[0]) if before else 0
    after = FROM_BREAK.search(_beginning([text[start:][::-1] for text in texts])[::-1])
    end = len(after[0]) if after else 0
    parts = [text[start : len(text) - end] for text in texts]
    return f"{texts[0][:start]}*{texts[0][len(texts[0]) - end :]}", parts


def _beginning(texts: Sequence[str]) -> str:
    """The common prefix: that of the smallest and the greatest text is shared by all texts between them."""
    first, last = min(texts), max(texts)
    same = next((at for at, (one, other) in enumerate(zip(first, last, strict=False)) if one != other), len(first))
    return first[:same]
