"""The lines of several logs, in the order of their times; first what is there, then what comes.

Programs write when they like, so the order of what comes is that of one look: lines of the same look are sorted.
"""

from __future__ import annotations

import heapq
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from protokube.errors import TryLater
from protokube.local.base.paths import Paths
from protokube.local.logs import targets
from protokube.local.logs.known import Known, read_known
from protokube.local.logs.lines import Entry
from protokube.local.logs.places import Logs, Place, logs_of_cloud, logs_of_host
from protokube.local.logs.reading import Clock, LogReader
from protokube.local.logs.targets import Target, Trail


class Line(NamedTuple):
    """One line, and where it comes from."""

    at: float | None
    place: Place
    text: str


class News(NamedTuple):
    """What one more look found: lines, and then what became of the places."""

    lines: Sequence[Line]
    notes: Sequence[str]


class Follower:
    """Reads the logs of some targets."""

    def __init__(self, paths: Paths, wanted: Iterable[Target], known: Known, clock: Clock = time.time) -> None:
        self.paths, self._clock, self._began = paths, clock, clock()
        self.trails: list[Trail] = []
        self.notes: list[str] = []
        """What there is to say before the first line."""
        for each in wanted:
            trail, notes = targets.begin(each, known)
            self.trails.append(trail)
            self.notes += notes
        self._readers: dict[Place, LogReader] = {}
        self._left: dict[Place, float] = {}
        """When a place was left; what it holds from before was shown, or is of another member."""

    @property
    def places(self) -> list[Place]:
        return list(dict.fromkeys(place for trail in self.trails for place in trail.places))

    def history(self, *, tail: int | None = None, since: float | None = None) -> Iterator[Line]:
        """What was logged until now."""
        logs = self._logs(self.places)
        streams = []
        for place in self.places:
            entries = self._reader(place).history(logs[place], tail=tail, since=since)
            streams.append(lines_of(place, entries))
        merged = merge(streams)
        return iter(deque(merged, maxlen=tail)) if tail is not None else merged

    def news(self) -> News | None:
        """What was logged since the last look; None once the cluster is gone."""
        if not self.paths.database.exists():
            return None
        notes: list[str] = []
        lines = self._read(list(self._readers) or self.places)
        with suppress(TryLater):  # busy: we ask again
            known = read_known(self.paths)
            for number, trail in enumerate(self.trails):
                self.trails[number], said = targets.follow(trail, known)
                notes += said
        wanted = self.places
        for place in [each for each in self._readers if each not in wanted]:
            lines += lines_of(place, self._readers.pop(place).finish())
            self._left[place] = self._clock()
        for place in wanted:
            if place not in self._readers:
                self._readers[place] = LogReader(self._clock, self._left.get(place, self._began))
        return News(sorted(lines, key=_order), list(dict.fromkeys(notes)))

    def finish(self) -> list[Line]:
        """The rest of every file that is open."""
        lines = [line for place, reader in self._readers.items() for line in lines_of(place, reader.finish())]
        return sorted(lines, key=_order)

    def close(self) -> None:
        for reader in self._readers.values():
            reader.close()

    def _read(self, places: Sequence[Place]) -> list[Line]:
        logs = self._logs(places)
        return [line for place in places for line in lines_of(place, self._reader(place).news(logs[place]))]

    def _reader(self, place: Place) -> LogReader:
        return self._readers.setdefault(place, LogReader(self._clock))

    def _logs(self, places: Iterable[Place]) -> dict[Place, list[Path]]:
        """The files of each place; each host is looked at once."""
        seen: dict[str, Logs] = {}
        for host in {place.host for place in places}:
            seen[host] = logs_of_host(self.paths.host(host), host) if host else logs_of_cloud(self.paths)
        return {place: seen[place.host].get(place.source, []) for place in places}


def lines_of(place: Place, entries: Iterable[Entry]) -> Iterator[Line]:
    for each in entries:
        yield Line(each.at, place, each.text)


def merge(streams: Iterable[Iterable[Line]]) -> Iterator[Line]:
    """By time; what has none comes first, and lines of one stream stay in their order."""
    return heapq.merge(*streams, key=_order)


def _order(line: Line) -> float:
    return line.at if line.at is not None else 0.0
