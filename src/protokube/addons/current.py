"""Which set of add-ons is the current one: its digest, and a number that only rises.

Masters were launched at different times, and each was told what was wanted then. By digests alone nobody can say who of
them is right, and who is wrong takes away what another one applied. By numbers everybody can: the store has the number
of what was asked for last, the record in the cluster that of what was applied last.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from protokube.errors import Refused

DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Current:
    """What is wanted, and how often that changed before."""

    number: int
    """0 where nobody counts yet: then it is what a machine was told at its launch, however long ago."""
    digest: str


def following(current: Current | None, digest: str) -> Current:
    """What is current once these are wanted."""
    if current is not None and current.digest == digest:
        return current
    return Current(number=1 + (current.number if current else 0), digest=digest)


def why_not(current: Current, recorded: int) -> str:
    """Why this must not be carried out in a cluster whose record has that number; "" if it may."""
    if current.number >= recorded:
        return ""
    have = f"has only number {current.number}" if current.number else "has none that is numbered"
    return f"nothing is applied or taken away: the cluster got set {recorded} of its add-ons, and the store {have}"


def encode(current: Current) -> bytes:
    return json.dumps({"number": current.number, "digest": current.digest}).encode()


def decode(data: bytes) -> Current:
    """Read back what `encode` made; a guess could take away what somebody newer wants."""
    try:
        told = json.loads(data)
    except ValueError:
        told = None
    match told:
        case {"number": int(number), "digest": str(digest)} if DIGEST.fullmatch(digest) and _counts(number):
            return Current(number=number, digest=digest)
    raise Refused(
        "which add-ons are current cannot be read from the store", saw=repr(data[:60]),
        want="a number from 1, and a digest",
        hint="restore the file from a backup of the store; or delete it and the ConfigMap kube-system/protokube-addons "
        "and run `protokube up` again, which takes nothing away",
    )  # fmt: skip


def _counts(number: int) -> bool:
    return number >= 1 and not isinstance(number, bool)
