"""Certificates of this master: its own etcd client certificate, and those of the members it holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from protokube.agent.cache import Confirmed, StepCache, is_fresh, is_recent, seconds_left
from protokube.agent.round import Round
from protokube.manifests.etcd import PKI
from protokube.pki import expiry
from protokube.pki.renewal import look_every

STEP = "keys"
CLIENT = "protokube-etcd-client"
CHECK_EVERY = 600.0
"""Seconds between two checks of valid certificates; less only where certificates are short-lived."""
SHARED = "shared keys"


@dataclass(slots=True)
class KeysCache(StepCache):
    looked: dict[str, float] = field(default_factory=dict)
    """When each group of certificates was last checked and valid."""
    given: Confirmed[tuple[float | None, float | None]] | None = None
    """When the component folders were last written, with the times of the two checks they are based on."""
    authorities: Confirmed[tuple[str, ...]] | None = None
    """The authorities whose certificates were last read."""
    ends: dict[str, float] = field(default_factory=dict)
    """When each authority that could be read expires."""


def sync(round_: Round) -> None:
    if round_.wanted.etcd:
        warn(round_)
        ensure(round_, [CLIENT])


def ensure(round_: Round, names: Sequence[str]) -> None:
    """Issue or renew these certificates if needed; TryLater if they cannot be issued now."""
    lasts = min(CHECK_EVERY, look_every(round_.wanted.certificate_lifetime))
    _look(round_, _group_key(names), lasts, lambda: round_.edges.keys.sync(names))


def ensure_shared(round_: Round) -> None:
    """Write the keys that all masters share; TryLater if they cannot be read now."""
    _look(round_, SHARED, CHECK_EVERY, round_.edges.keys.sync_shared)


def give(round_: Round, folders: Callable[[], Mapping[str, Sequence[str]]], names: Sequence[str]) -> None:
    """Copy to each component's own folder the files it uses, if a check of these certificates came since."""
    cache, now = round_.edges.cache.of(KeysCache), round_.edges.clock.monotonic()
    looked = (cache.looked.get(SHARED), cache.looked.get(_group_key(names)))
    if not is_fresh(cache.given, looked, now, CHECK_EVERY):
        for component, files in folders().items():  # searching all flags is too expensive for every round
            for each in round_.edges.keys.give(component, files):
                round_.report.done(STEP, each)
        cache.given = Confirmed(looked, now)


def warn(round_: Round) -> None:
    """Report every authority that expires within a year."""
    edges, cache = round_.edges, round_.edges.cache.of(KeysCache)
    names, now = (
        round_.wanted.authorities,
        edges.clock.monotonic(),
    )
    if not is_fresh(cache.authorities, names, now, CHECK_EVERY):
        cache.ends = expiry.ends(edges.inside(PKI), names)
        cache.authorities = Confirmed(names, now)
    today = edges.clock.now()
    for name, end in cache.ends.items():
        if text := expiry.words(name, end, today):
            report = round_.report.needs_a_person if expiry.is_urgent(end, today) else round_.report.warn
            report(STEP, text, hint=expiry.HINT)


def _group_key(names: Sequence[str]) -> str:
    return f"keys {' '.join(names)}"


def _look(round_: Round, what: str, lasts: float, sync: Callable[[], Sequence[str]]) -> None:
    looked, now = round_.edges.cache.of(KeysCache).looked, round_.edges.clock.monotonic()
    if not is_recent(looked.get(what), now, lasts):
        for each in sync():
            round_.report.done(STEP, each)
        looked[what] = now
    if lasts < CHECK_EVERY:  # otherwise an idle round comes soon enough
        round_.within(seconds_left(looked.get(what), now, lasts))
