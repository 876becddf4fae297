"""List and watch one kind; report whether the cache is complete. A caller that deletes must be sure that it is.

A complete list, page by page, then a watch from the list's resourceVersion. The hard part is to detect every way in
which a watch can be wrong: it goes silent, breaks off within a line, skips a part of the history, or comes from a
server that was restored from a backup. Anything unexpected leads to a complete relist, with back-off. A list that fails
removes nothing from the cache.
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
"""The range of the watches' timeoutSeconds: random, so that not all watches reconnect at once."""
SHORT = 1.0
"""Seconds without a watch that are not worth reporting."""
STOPPED = "stopped"

log = logging.getLogger(__name__)
T = TypeVar("T")


class Lines(Protocol):
    def __iter__(self) -> Iterator[bytes]: ...
    def hang_up(self) -> None: ...


class WatchApi(Protocol):
    """List and watch; `protokube.kube.session.Session` implements it."""

    def get(self, path: str, query: Mapping[str, str]) -> bytes: ...
    def watch(self, path: str, query: Mapping[str, str], *, silence: float) -> AbstractContextManager[Lines]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot(Generic[T]):
    """An immutable copy of the cache at one moment."""

    items: Mapping[str, T]
    """By `namespace/name`, or name."""
    lists: int
    """Number of complete lists so far."""
    listed_at: float | None
    """When the last complete list was requested, on the monotonic clock: everything in it is at least as new."""
    total: int
    """Objects in that list, kept or not."""
    in_touch: bool
    """There was a complete list, and the watch has followed all changes since."""
    trouble: str
    """Why `in_touch` is False, in words."""


class Reflector(Generic[T]):
    """The cache of one kind. One thread runs it; any thread may call `snapshot` and `relist`."""

    def __init__(
        self,
        server: WatchApi,
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
        self._version = ""  # the resourceVersion to watch from; empty: list first
        self._misses = 0  # watches in a row that brought nothing
        self._heard = self._opened = 0.0
        self._trouble = "not listed yet"
        self._wanted = False  # a relist was requested
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
        """Request a complete list soon, even if the cache seems fine: callers check again before they delete."""
        with self._lock:
            watch = None if self._wanted else self._watch  # end the watch once: the next one sees `_wanted`
            self._wanted = True
        if watch is not None:
            watch.hang_up()

    def run(self, stop: threading.Event) -> None:
        """Run until `stop` is set and the session is closed: only the latter ends an open watch."""
        while not stop.is_set():
            self._opened = time.monotonic()
            trouble = guarded(self._kind.name, lambda: self._list_and_watch(stop))
            if trouble and not stop.is_set():
                self._out_of_touch(trouble)
            wait = self._backoff.wait(time.monotonic() - self._opened)
            if wait > SHORT and not trouble:
                self._out_of_touch("the watch ends as soon as it has begun")
            stop.wait(wait)
        self._out_of_touch(STOPPED)

    def _list_and_watch(self, stop: threading.Event) -> None:
        """List if needed, then watch until it ends."""
        try:
            while not stop.is_set():
                if not self._version or (self._wanted and not self._until_relist()):
                    self._list(stop)
                    self._opened = time.monotonic()  # the time of a slow list must not reset the back-off
                if not self._follow(stop):
                    return
        except Stale:
            self._version = ""
            raise

    def _until_relist(self) -> float:
        """Seconds until the next relist is allowed."""
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
                    if (kept := read_object(self._kind, each)) is not None:
                        items[meta_of(each).key] = kept
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
        """Watch; return whether it ended because a relist was requested."""
        seconds = random.randint(*WATCH_SECONDS)  # noqa: S311  # no secret
        if hurried := self._wanted:  # no relist is allowed yet: let the server end the watch when it is
            seconds = min(seconds, int(self._until_relist()) + 1)
        options = {"watch": "true", "allowWatchBookmarks": "true", "timeoutSeconds": str(seconds)}
        query = {**self._kind.query, **options, "resourceVersion": self._version}
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
        """Retry a watch that was silent or refused once. After twice in a row our resourceVersion may be the cause.

        A server that was restored from a backup waits for versions that are yet to come, and one that cannot read a
        version may report an internal error. A server that does not answer at all says nothing about our version.
        """
        if self._watch is not None or not isinstance(why, NoAnswer):
            self._misses += 1
        if self._misses > 1:
            self._misses = 0
            raise Stale(why.message) from why

    def _take(self, content: bytes) -> None:
        line = line_of(content)
        if line.type not in ("ADDED", "MODIFIED", "DELETED", "BOOKMARK"):
            excerpt = bytes(line.object)[:300].decode(errors="replace")
            raise Stale(f"the watch of {self._kind.name} said {line.type}: {excerpt}")
        meta = meta_of(line.object)
        self._misses, self._heard = 0, time.monotonic()
        if not meta.resourceVersion or _goes_back(self._version, meta.resourceVersion):
            raise Stale(f"the watch of {self._kind.name} went back from {self._version} to {meta.resourceVersion!r}")
        kept = None
        if line.type in ("ADDED", "MODIFIED"):
            kept = read_object(self._kind, line.object)
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


def _goes_back(seen: str, received: str) -> bool:
    """Resource versions are opaque strings by contract; where both are numbers, they only grow."""
    return seen.isdecimal() and received.isdecimal() and int(received) < int(seen)
