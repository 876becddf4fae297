"""Report the state of an object's DNS names to its owner by Events.

Every round finds all problems again, and a thousand objects may have one at once. So an Event is written when a problem
appears and, since the API server expires Events after an hour, repeated now and then while it lasts. A token bucket
bounds their number; what exceeds it comes with a later round.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Protocol

from protokube.controllers.dns import Source
from protokube.controllers.dns.controller import Round
from protokube.controllers.dns.decide.desired import source_of
from protokube.controllers.dns.read.watching import Seen
from protokube.controllers.dns.tell.unmet import marks_changed, unmet
from protokube.controllers.dns.write.zonework import Outcome
from protokube.controllers.event_correlator import News, Regarding
from protokube.records.batches import Unit
from protokube.records.onename import held
from protokube.records.owners import Mark

NOT_SET, SET, REMOVED = "DNSNameNotSet", "DNSNameSet", "DNSNameRemoved"
MANY = 20
"""A round that writes more names than this fills a zone: it gets no Event per owner, only the number in the log."""
AGAIN = 1800.0
"""Seconds after which a lasting problem is reported again."""
BURST, RATE = 50, 1.0
"""Token bucket: its size, and the tokens that it gains per second."""
KINDS = {"pod": "Pod", "service": "Service", "ingress": "Ingress", "node": "Node"}


class EventSink(Protocol):
    """Takes the news to write; `protokube.controllers.events.Events` implements it."""

    def tell(self, news: News) -> None: ...


def event_reporter(events: EventSink, clock: Callable[[], float] = time.monotonic) -> Callable[[Round], None]:
    """Make a function that is called with each round, and returns at once."""
    reported: dict[News, float] = {}
    spent, since = 0.0, clock()

    def report(done: Round) -> None:
        nonlocal reported, spent, since
        now = clock()
        spent, since = max(0.0, spent - (now - since) * RATE), now
        wrong = list(dict.fromkeys(warnings(done)))
        if done.routed is not None:  # a replica that does not lead does not know which problems are gone
            reported = {news: reported[news] for news in wrong if news in reported}
        due = [news for news in wrong if now - reported.get(news, -AGAIN) >= AGAIN]
        for news in [*changes(done), *due]:
            if spent + 1 > BURST:
                return
            spent += 1
            if news.type == "Warning":
                reported[news] = now
            events.tell(news)

    return report


def warnings(done: Round) -> Iterator[News]:
    """Requests of objects that are not met."""
    if done.routed is None or done.seen is None:
        return
    seen = done.seen
    for each in unmet(done):
        turned_away = f"turned away by zone {each.turned_away_by}: " if each.turned_away_by else ""
        yield from _warn(seen, each.source, each.name, f"{turned_away}{each.why}")
    for outcome in done.zones:
        for line, doubt in sorted(outcome.doubts.items()):
            yield from _warn(seen, source_of(line.mark.by), line.name, f"{line.mark.value} stays: {doubt.why}")


def changes(done: Round) -> Iterator[News]:
    """What was written for objects, unless it is too much for single Events."""
    if done.seen is None or sum(len(outcome.applied) for outcome in done.zones) > MANY:
        return
    for outcome in done.zones:
        for unit in outcome.applied:
            yield from _of_unit(done.seen, outcome, unit)


def _of_unit(seen: Seen, outcome: Outcome, unit: Unit) -> Iterator[News]:
    new, gone = marks_changed(unit)
    came = _by_source(mark for mark in new if (mark.type, mark.value) not in held(gone))
    went = _by_source(mark for mark in gone if (mark.type, mark.value) not in held(new))
    for key in sorted(came.keys() | went.keys()):
        if (about := regarding(seen, key)) is None:
            continue
        now, before = ", ".join(came.get(key, ())), ", ".join(went.get(key, ()))
        if not now:
            text = f"{unit.name} no longer has {before} for it in zone {outcome.zone.name}"
        else:
            instead = f", no longer {before}," if before else ""
            text = f"{unit.name} is {now}{instead} in zone {outcome.zone.name}"
        yield News(about=about, type="Normal", reason=SET if now else REMOVED, message=text)


def regarding(seen: Seen, key: str) -> Regarding | None:
    """The object to attach an Event to, if it exists."""
    kind, _, rest = key.partition("/")
    namespace, _, name = rest.rpartition("/")
    source = _source(seen, kind, rest, key)
    if source is None or not source.uid or kind not in KINDS:
        return None
    version = "networking.k8s.io/v1" if kind == "ingress" else "v1"
    return Regarding(kind=KINDS[kind], name=name, namespace=namespace, uid=source.uid, api_version=version)


def _source(seen: Seen, kind: str, name: str, key: str) -> Source | None:
    if kind == "node":
        return seen.nodes[name].source if name in seen.nodes else None
    return seen.sources.get(key)


def _warn(seen: Seen, key: str, name: str, why: str) -> Iterator[News]:
    if (about := regarding(seen, key)) is not None:
        yield News(about=about, type="Warning", reason=NOT_SET, message=f"{name}: {why}" if name else why)


def _by_source(marks: Iterator[Mark]) -> dict[str, list[str]]:
    found: defaultdict[str, list[str]] = defaultdict(list)
    for mark in sorted(marks, key=lambda mark: (mark.type, mark.value)):
        found[source_of(mark.by)].append(f"{mark.type} {mark.value}")
    return found
