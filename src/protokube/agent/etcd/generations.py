"""Read and update the generation record in the store: close it once, add replacements.

Every write is a compare-and-swap on the version that was read. After a lost answer the next round reads again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from protokube.agent.cache import Confirmed, StepCache, is_recent
from protokube.agent.round import Round
from protokube.errors import Refused, TryLater
from protokube.members.generation import Generation, decode, encode
from protokube.store import Changed, NotThere, Stored, layout

LASTS = 60.0
"""Seconds for which a cached record is good enough to check a member that already runs."""


@dataclass(slots=True)
class GenerationsCache(StepCache):
    read: dict[str, Confirmed[Generation | None]] = field(default_factory=dict)
    """By etcd cluster: the record as it was last read or written."""


def read(round_: Round, key: str) -> Generation | None:
    """The record, or None if there is none that can be read in full; TryLater if the store does not answer."""
    if key in round_.unread:
        raise round_.unread[key]  # an unreachable store costs one timeout a round, not one for each caller
    if key not in round_.generations:
        try:
            stored = _stored(round_, key)
        except (TryLater, Refused) as why:
            round_.unread[key] = why
            raise
        round_.generations[key] = decode(stored.data) if stored else None
        _remember(round_, key, round_.generations[key])
    return round_.generations[key]


def recent(round_: Round, key: str) -> Generation | None:
    """The record, possibly from the cache, for a member that runs; None if the store does not answer."""
    known, now = round_.edges.cache.of(GenerationsCache).read.get(key), round_.edges.clock.monotonic()
    if known is not None and is_recent(known.when, now, LASTS):
        record = known.value
        if record is not None and not record.open:  # an open one may have been closed since
            return record
    try:
        return read(round_, key)
    except (TryLater, Refused):
        return None


def remembered(round_: Round, key: str) -> Generation | None:
    """The cached record, of any age, without a call to the store."""
    known = round_.edges.cache.of(GenerationsCache).read.get(key)
    return known.value if known is not None else None


def change(round_: Round, key: str, how: Callable[[Generation], Generation]) -> Generation:
    """Write a changed record over the one just read; TryLater if another writer was faster."""
    stored = _stored(round_, key)
    known = decode(stored.data) if stored else None
    if stored is None or known is None:
        raise Refused(
            f"the generation record of {key} is missing or cannot be read",
            hint="restore it from a backup of the state store; nothing is founded without it",
        )
    wanted = how(known)
    if wanted != known:
        path = layout.etcd_generation(round_.wanted.cluster, key)
        round_.edges.store.replace(path, encode(wanted), stored.version)
    round_.generations[key] = wanted
    _remember(round_, key, wanted)
    return wanted


def create_record(round_: Round, key: str, path: str, data: bytes) -> None:
    """Create another record of this etcd cluster. TryLater in a store without a generation record.

    Such a store is empty because it is not mounted, or belongs to another cluster: a record created there would be lost
    or would be in the way.
    """
    if _stored(round_, key) is None:
        raise TryLater(
            f"the state store has no generation record of {key}, so nothing is created there",
            hint="see that the right store is mounted, or restore it from a backup",
        )
    round_.edges.store.create(path, data)


def _remember(round_: Round, key: str, record: Generation | None) -> None:
    round_.edges.cache.of(GenerationsCache).read[key] = Confirmed(record, round_.edges.clock.monotonic())


def _stored(round_: Round, key: str) -> Stored | None:
    try:
        return round_.edges.store.read(layout.etcd_generation(round_.wanted.cluster, key))
    except NotThere:
        return None


__all__ = ["Changed", "change", "create_record", "read", "recent"]
