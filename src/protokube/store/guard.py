"""Prove that a store really rejects a conditional write whose condition fails.

Some servers with S3's API accept a condition and ignore it. With such a store two masters could both believe
that they founded the cluster, so callers that rely on conditional writes call this once, before the first use.
"""

from __future__ import annotations

import secrets
from contextlib import suppress

from protokube.errors import Refused
from protokube.store import AlreadyThere, Changed, Store

PROBE = "protokube-guard-probe"  # stays behind; a few bytes, at the top of the store


def prove_guard(store: Store) -> None:
    """Raise Refused unless a second create and a replace of an old version are both rejected."""
    if not store.guards:
        raise _unguarded(store, "it has no conditional writes")
    with suppress(AlreadyThere):
        store.create(PROBE, _something())
    _must_lose(store)
    past = store.read(PROBE).version
    try:
        store.replace(PROBE, _something(), past)
        store.replace(PROBE, _something(), past)
    except Changed:  # by the second replace, or by a concurrent proof: both show that conditions work
        return
    raise _unguarded(store, "it replaced a file that had changed in between")


def _must_lose(store: Store) -> None:
    try:
        store.create(PROBE, _something())
    except AlreadyThere:
        return
    raise _unguarded(store, "it created the same file twice")


def _something() -> bytes:
    return secrets.token_hex(8).encode()


def _unguarded(store: Store, saw: str) -> Refused:
    return Refused(
        f"refusing to rely on {store.url}: two concurrent writers could both succeed",
        saw=saw,
        want="a store with conditional writes: Amazon S3, Google Cloud Storage, a current MinIO, or files",
        hint="use another store, or a single master",
    )
