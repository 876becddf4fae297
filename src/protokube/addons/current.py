"""The current revision of the set of add-ons: its digest, and a number that only rises.

Masters are launched at different times, each with the add-ons wanted at that time. Digests alone do not show which set
is newer, and a master with an older one would prune what another has applied. The numbers do: the store has the number
of the set that was requested last, the record in the cluster the number of the set that was applied last.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from protokube.errors import Refused

DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Current:
    """The digest of the wanted set, and its number."""

    number: int
    """0 for the set in a machine's launch configuration, which is not numbered and may be old."""
    digest: str


def following(current: Current | None, digest: str) -> Current:
    """The current set after a request for this digest."""
    if current is not None and current.digest == digest:
        return current
    return Current(number=1 + (current.number if current else 0), digest=digest)


def why_not(current: Current, recorded: int) -> str:
    """Why this set must not be applied to a cluster whose record has that number; "" if it may be."""
    if current.number >= recorded:
        return ""
    have = f"has only set {current.number}" if current.number else "has no numbered set"
    return f"nothing is applied or pruned: the cluster has set {recorded} of its add-ons, and the store {have}"


def encode(current: Current) -> bytes:
    return json.dumps({"number": current.number, "digest": current.digest}).encode()


def decode(data: bytes) -> Current:
    """Decode what `encode` wrote. Refused if unreadable: a guess could prune what a newer set wants."""
    try:
        document = json.loads(data)
    except ValueError:
        document = None
    match document:
        case {"number": int(number), "digest": str(digest)} if DIGEST.fullmatch(digest) and _counts(number):
            return Current(number=number, digest=digest)
    raise Refused(
        "the number of the current add-ons cannot be read from the store", saw=repr(data[:60]),
        want="a number from 1, and a digest",
        hint="restore the file from a backup of the store; or delete it and the ConfigMap kube-system/protokube-addons "
        "and run `protokube up` again, which prunes nothing",
    )  # fmt: skip


def _counts(number: int) -> bool:
    return number >= 1 and not isinstance(number, bool)
