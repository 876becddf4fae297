"""Know all objects of one kind, and whether that knowledge is good: who deletes by it must be sure that it is whole.

A complete list, page by page, then a watch from the list's version. The hard thing is to notice every way in which a
watch can lie: it goes silent, breaks within a line, jumps over a part of the history, comes from a server that was set
back. Whatever is odd ends in a new complete list, each further one later than the last; nothing is ever forgotten
because a list failed.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from types import MappingProxyType
from typing import Generic, Protocol, TypeVar

from protokube.controllers.backoff import Backoff
from protokube.controllers.decoding import Kind, Stale, line_of, meta_of, page_of, read_object
from protokube.controllers.guard import guarded
from protokube.errors import TryLater
from protokube.kube.client import ApiError, NoAnswer

SILENCE = 75.0
PAGE_SIZE = 500
RELIST_EVERY = 10.0
WATCH_SECONDS = (240, 300)
"""How long a watch is asked to last: not the same for all, or all come back at once."""
SHORT = 1.0
"""Seconds without a watch that are not worth telling."""
STOPPED = "stopped"

log = logging.getLogger(__name__)
T = TypeVar("T")


class Lines(Protocol):
    def __iter__(self) -> Iterator[bytes]: ...
    def hang_up(self) -> None: ...


class Server(Protocol):
    """What is asked of `protokube.kube.session.Session`."""

    def get(self, path: str, query: Mapping[str, str]) -> bytes: ...
    def watch(self, path: str, query: Mapping[str, str], *, silence: float) -> AbstractContextManager[Lines]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot(Generic[T]):
    """What is known at one moment; it does not change any more."""

    items: Mapping[str, T]
    """By `namespace/name`, or name."""
    lists: int
    """Complete lists so far."""
    listed_at: float | None
    """When the last complete list was asked for, on the monotonic clock: all in it is at least as new."""
    total: int
    """Objects in that list, kept or not."""
    in_touch: bool
    """There was a list, and what happens since reaches us."""
    trouble: str
    """Why we are not in touch, in words."""


class Reflector(Generic[T]):
    """The objects of one kind. One thread runs it; any may ask."""

    def __init__(
        self,
        server: Server,
        kind: Kind[T],
        changed: Callable[[], None] = lambda: None,
        *,
        silence: float = SILENCE,
        page_size: int = PAGE_SIZE,
        relist_every: float = RELIST_EVERY,
        backoff: Backoff | None = None,
    ) -> None:
        self._server, self._kind, self._changed = server, kind, changed
        self._silence, self._page_size, self._relist_every = silence, page_size, relist_every
        self._backoff = backoff or Backoff()
        self._lock = threading.Lock()
        self._items: dict[str, T] = {}
        self._frozen: Mapping[str, T] | None = MappingProxyType({})
        self._lists, self._total = 0, 0
        self._listed_at: float | None = None
        self._version = ""  # where the watch goes on; empty: nowhere, list first
        self._misses = 0  # watches in a row that told nothing
        self._heard = self._opened = 0.0
        self._trouble = "not listed yet"
        self._wanted = False  # somebody asked for a list
        self._watch: Lines | None = None

    def snapshot(self) -> Snapshot[T]:
        with self._lock:
            if self._frozen is None:
                self._frozen = MappingProxyType(dict(self._items))
            trouble = self._trouble
            if not trouble and time.monotonic() - self._heard > self._silence + SHORT:
                trouble = f"nothing was heard of {self._kind.name} for {self._silence:g} s"
            return Snapshot(
                items=self._frozen,
                lists=self._lists,
                listed_at=self._listed_at,
                total=self._total,
                in_touch=not trouble,
                trouble=trouble,
            )

    def relist(self) -> None:
        """A complete list soon, also if all seems well: for who wants a second look before deleting."""
        with self._lock:
            watch = None if self._wanted else self._watch  # once is enough: the next watch knows
            self._wanted = True
        if watch is not None:
            watch.hang_up()

    def run(self, stop: threading.Event) -> None:
        """Until `stop` is set and the session is closed: a watch that is open ends only by the latter."""
        while not stop.is_set():
            self._opened = time.monotonic()
            trouble = guarded(self._kind.name, lambda: self._turn(stop))
            if trouble and not stop.is_set():
                self._out_of_touch(trouble)
            wait = self._backoff.wait(time.monotonic() - self._opened)
            if wait > SHORT and not trouble:
                self._out_of_touch("the watch ends as soon as it has begun")
            stop.wait(wait)
        self._out_of_touch(STOPPED)

    def _turn(self, stop: threading.Event) -> None:
        """List if there is a reason to, then watch for as long as it goes."""
        try:
            while not stop.is_set():
                if not self._version or (self._wanted and not self._until_relist()):
                    self._list(stop)
                    self._opened = time.monotonic()  # a long list is no success that lasted
                if not self._follow(stop):
                    return
        except Stale:
            self._version = ""
            raise

    def _until_relist(self) -> float:
        """Seconds for which nobody gets another list."""
        due = (self._listed_at or 0.0) + self._relist_every
        return max(0.0, due - time.monotonic())

    def _list(self, stop: threading.Event) -> None:
        self._wanted, version, began = False, "", time.monotonic()
        items: dict[str, T] = {}
        total, token = 0, ""
        try:
            while not stop.is_set():
                query = {**self._kind.query, "limit": str(self._page_size)} | ({"continue": token} if token else {})
                page = page_of(self._server.get(self._kind.path, query))
                for each in page.items or ():
                    key = meta_of(each).key
                    if (kept := read_object(self._kind, each, key)) is not None:
                        items[key] = kept
                total += len(page.items or ())
                version, token = page.metadata.resourceVersion, page.metadata.token
                if not token:
                    break
            else:
                return
            if not version:
                raise Stale(f"the list of {self._kind.name} has no version")
        except BaseException:
            self._wanted = True
            raise
        with self._lock:
            self._items, self._frozen, self._version, self._misses = items, None, version, 0
            self._lists, self._total, self._listed_at = self._lists + 1, total, began
        self._changed()

    def _follow(self, stop: threading.Event) -> bool:
        """Watch; whether somebody ended it because a list is wanted."""
        seconds = random.randint(*WATCH_SECONDS)  # noqa: S311  # no secret
        if hurried := self._wanted:  # not yet: the server ends the watch when it is time
            seconds = min(seconds, int(self._until_relist()) + 1)
        told = {"watch": "true", "allowWatchBookmarks": "true", "timeoutSeconds": str(seconds)}
        query = {**self._kind.query, **told, "resourceVersion": self._version}
        try:
            with self._server.watch(self._kind.path, query, silence=self._silence) as watch:
                with self._lock:
                    self._watch = watch
                self._in_touch()
                if self._wanted and not hurried:
                    return True
                for line in watch:
                    self._take(line)
                    if stop.is_set():
                        return False
                return hurried and not self._until_relist()
        except Stale:
            raise
        except ApiError as why:
            if why.status in (400, 410):  # the version is too old, or one that this server cannot read
                raise Stale(why.message) from why
            raise
        except TryLater as why:
            if self._wanted and not hurried and self._watch is not None:
                return True
            self._count_miss(why)
            raise
        finally:
            with self._lock:
                self._watch = None

    def _count_miss(self, why: TryLater) -> None:
        """A watch was silent or refused once: try it again. Twice in a row: it may be because of our version.

        A server that was set back waits for versions to come, and one that cannot read a version may call it an error
        of its own. One that is not there at all says nothing about our version.
        """
        if self._watch is not None or not isinstance(why, NoAnswer):
            self._misses += 1
        if self._misses > 1:
            self._misses = 0
            raise Stale(why.message) from why

    def _take(self, content: bytes) -> None:
        line = line_of(content)
        if line.type not in ("ADDED", "MODIFIED", "DELETED", "BOOKMARK"):
            said = bytes(line.object)[:300].decode(errors="replace")
            raise Stale(f"the watch of {self._kind.name} said {line.type}: {said}")
        meta = meta_of(line.object)
        self._misses, self._heard = 0, time.monotonic()
        if not meta.resourceVersion or _goes_back(self._version, meta.resourceVersion):
            raise Stale(f"the watch of {self._kind.name} went back from {self._version} to {meta.resourceVersion!r}")
        kept = None
        if line.type in ("ADDED", "MODIFIED"):
            kept = read_object(self._kind, line.object, meta.key)
        with self._lock:
            self._version = meta.resourceVersion
            news = line.type != "BOOKMARK" and self._items.get(meta.key) != kept
            if news:
                self._frozen = None
                if kept is None:
                    del self._items[meta.key]
                else:
                    self._items[meta.key] = kept
        if news:
            self._changed()

    def _in_touch(self) -> None:
        with self._lock:
            self._heard, news, self._trouble = time.monotonic(), bool(self._trouble), ""
        if news:
            self._changed()

    def _out_of_touch(self, why: str) -> None:
        with self._lock:
            news, self._trouble = self._trouble != why, why
        if news:
            log.log(logging.DEBUG if why == STOPPED else logging.WARNING, "%s: %s", self._kind.name, why)
            self._changed()


def _goes_back(seen: str, told: str) -> bool:
    """Versions are words by contract; where both are numbers, they only grow."""
    return seen.isdecimal() and told.isdecimal() and int(told) < int(seen)
