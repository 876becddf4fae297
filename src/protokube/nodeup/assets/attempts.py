"""Decide which source of a file is asked next, when, and whether the bytes at hand are kept. Pure.

What is hard is that a file may consist of parts from several sources and earlier runs, and only its digest shows that
one part was wrong, not which. So once a file is wrong that came from several, parts of different sources are never put
together again: the next wrong file convicts its only source.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from urllib.parse import urlsplit, urlunsplit

PATIENCE = 6
"""Failures of one source in a row, until it is not asked again in this run."""
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
ENOUGH = 1 << 16
"""Bytes by which the file has to grow in an attempt that does not count as a failure."""
EARLIER = "an earlier run"
"""Stands for the source of bytes that were there at the beginning."""


def shown(url: str) -> str:
    """A URL for messages: without a password, and without a query, which may be a signature."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", parts.fragment))


class Verdict(StrEnum):
    ASKED = "asked"
    ABSENT = "absent"
    SILENT = "silent"
    WRONG = "wrong"


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One URL, and what became of it."""

    url: str
    verdict: Verdict = Verdict.ASKED
    failures: int = 0
    ready_at: float = 0.0
    why: str = ""
    """Its last failure."""


@dataclass(frozen=True, slots=True)
class Try:
    """Ask this source, after a pause; `afresh`: throw the bytes at hand away before."""

    url: str
    pause: float
    afresh: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempts:
    """All sources of one file, and where the bytes at hand came from."""

    sources: tuple[Source, ...]
    parts: frozenset[str] = frozenset()
    mixing: bool = True
    """Whether bytes of several sources may be put together."""
    current: str = ""
    """The source that sent bytes last, and is asked again first."""

    def next(self, now: float) -> Try | None:
        """What to do next; None if no source is left."""
        left = [each for each in self.sources if each.verdict is Verdict.ASKED]
        if not left:
            return None
        chosen = min(left, key=lambda each: (each.url != self.current, max(each.ready_at, now)))
        afresh = not self.mixing and not self.parts <= {chosen.url}
        return Try(chosen.url, max(chosen.ready_at - now, 0.0), afresh)

    def emptied(self) -> Attempts:
        """The bytes at hand were thrown away."""
        return replace(self, parts=frozenset())

    def cut(self, url: str, why: str, grown: int, now: float) -> Attempts:
        """The attempt ended early; the file grew by this many bytes."""
        if grown >= ENOUGH:
            done = self._with(url, failures=0, ready_at=now, why=why)
            return replace(done, current=url)
        failures = self.source(url).failures + 1
        verdict = Verdict.SILENT if failures >= PATIENCE else Verdict.ASKED
        pause = min(FIRST_PAUSE * 2 ** (failures - 1), LONGEST_PAUSE)
        done = self._with(url, failures=failures, ready_at=now + pause, why=why, verdict=verdict)
        # Where parts must not be mixed, another source would begin again: the same one is asked until it is silent.
        keeps = not self.mixing and verdict is Verdict.ASKED and bool(self.parts)
        return replace(done, current=url if keeps else "")

    def sent(self, url: str) -> Attempts:
        """The source sent bytes that were added to the file."""
        return replace(self, parts=self.parts | {url})

    def absent(self, url: str, why: str) -> Attempts:
        """The source has no such file."""
        return replace(self._with(url, why=why, verdict=Verdict.ABSENT), current="")

    def wrong(self, url: str, why: str) -> Attempts:
        """The file is complete, this source sent its end, and its digest is wrong. Its bytes are thrown away."""
        if self.parts <= {url}:
            done = self._with(url, why=why, verdict=Verdict.WRONG)
            return replace(done, parts=frozenset(), current="")
        return replace(self, parts=frozenset(), mixing=False, current=url)

    def reasons(self) -> str:
        """Why each source failed, for a message."""
        return "; ".join(f"{shown(each.url)}: {each.why}" for each in self.sources if each.why)

    def reason(self, url: str) -> str:
        """The last failure of one source, for a line of progress."""
        return f"{shown(url)}: {self.source(url).why}"

    def may_help_later(self) -> bool:
        """Whether a source may have the file that did not answer now."""
        return any(each.verdict in (Verdict.ASKED, Verdict.SILENT) for each in self.sources)

    def source(self, url: str) -> Source:
        """What became of one source."""
        return next(each for each in self.sources if each.url == url)

    def _with(
        self,
        url: str,
        *,
        why: str,
        verdict: Verdict = Verdict.ASKED,
        failures: int = 0,
        ready_at: float = 0.0,
    ) -> Attempts:
        done = Source(url=url, verdict=verdict, failures=failures, ready_at=ready_at, why=why)
        return replace(self, sources=tuple(done if each.url == url else each for each in self.sources))


def begin(urls: tuple[str, ...], *, resumed: bool) -> Attempts:
    """Nothing was asked yet; `resumed`: there are bytes of an earlier run."""
    sources = tuple(Source(url=url) for url in dict.fromkeys(urls))
    return Attempts(sources=sources, parts=frozenset({EARLIER}) if resumed else frozenset())
