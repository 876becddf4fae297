"""Notice what somebody changed by hand on this master: files that had to be written again.

The files are restored in the next round anyway. The warning stays for a while, because whoever edits a file there
should learn that the spec is the place to change.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

from protokube.agent.cache import StepCache
from protokube.agent.round import Round

STEP = "drift"
SHOWN = 600.0
"""Seconds for which a restored file is reported."""
HINT = "change the spec instead, and run `up` with it"


@dataclass(slots=True)
class DriftCache(StepCache):
    verified: dict[str, str] = field(default_factory=dict)
    """By path: the digest of the content that this agent wrote or found there. If lost, a change by hand is restored
    without a warning."""
    restored: dict[str, float] = field(default_factory=dict)
    """By path: when it was last restored."""


def note(round_: Round, path: str, content: bytes, *, written: bool) -> None:
    """After each look at a file; `written` if its content was not the wanted one."""
    cache, digest = round_.edges.cache.of(DriftCache), hashlib.sha256(content).hexdigest()
    if written and cache.verified.get(path) == digest:
        cache.restored[path] = round_.edges.clock.monotonic()
    cache.verified[path] = digest


def sync(round_: Round) -> None:
    """Report each file that was restored lately."""
    cache, now = round_.edges.cache.of(DriftCache), round_.edges.clock.monotonic()
    cache.restored = {path: when for path, when in cache.restored.items() if now - when < SHOWN}
    for path in sorted(cache.restored):
        round_.report.warn(STEP, "it was changed by hand, and was restored", path, HINT)
