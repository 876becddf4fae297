"""The log of the dns-controller: what a round changed, and each problem once."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence

from protokube.controllers.dns.controller import Round
from protokube.records.batches import Unit
from protokube.records.owners import marked_name

log = logging.getLogger("protokube.dns")
SHOWN = 20
"""Changes of one round that are logged one by one."""


def journal() -> Callable[[Round], None]:
    """Make a function that is called with each round. It logs a problem again only after it was gone for a while."""
    logged: set[str] = set()

    def report(done: Round) -> None:
        nonlocal logged
        for outcome in done.zones:
            for line in changes(outcome.applied):
                log.info("%s: %s", outcome.zone.name, line)
        now = set(sentences(done))
        for sentence in sorted(now - logged):
            log.warning("%s", sentence)
        logged = now

    return report


def changes(units: Sequence[Unit]) -> Iterator[str]:
    for unit in units[:SHOWN]:
        yield from (str(change) for change in unit if not marked_name(change.key[0]))
    if len(units) > SHOWN:
        yield f"and {len(units) - SHOWN} more names"


def sentences(done: Round) -> Iterator[str]:
    """The problems of a round, each as a sentence that stays the same while the problem lasts."""
    if done.waits:
        yield f"waiting: {done.waits}"
    for zone, why in done.left_alone:
        yield f"zone {zone} is left alone: {why}"
    for problem in done.problems:
        yield f"{problem.source}{f' asks for {problem.name}' if problem.name else ''}: {problem.why}"
    if done.seen is not None and done.seen.ready and not done.seen.whole:
        yield f"nothing is removed: {done.seen.trouble}"
    for outcome in done.zones:
        if outcome.trouble:
            yield f"zone {outcome.zone.name}: {outcome.trouble}"
        yield from (f"zone {outcome.zone.name}: {left}" for left in outcome.left if left.kind != "waits")
        yield from (f"{unit.name} was turned away: {why}" for unit, why in outcome.refused)
        yield from (f"{line.name} keeps {line.mark.value}: {each.why}" for line, each in outcome.doubts.items())
