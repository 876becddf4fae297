"""Kinds of faults of a store, the same for every vendor.

The vendor file maps its errors to a `Kind`; here that becomes an error a user can act on. What matters most is
whether a write may have been applied. If it may and it was conditional, the error is `Unsure`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from importlib import import_module

from protokube.errors import ProtokubeError, Refused, TryLater
from protokube.store import Unsure
from protokube.store.paths import scrub
from protokube.store.patience import Busy


class Kind(Enum):
    """Kinds of faults that need different reactions."""

    AWAY = "no server answers"  # nothing was sent
    UNREACHED = "no connection came about in time"  # nothing was sent
    BUSY = "it asks us to retry later"  # it replied, and did nothing
    BROKEN = "it failed while answering"  # sent; applied or not is unknown
    SILENT = "it did not answer in time"  # sent; applied or not is unknown
    DENIED = "it does not let us in"
    NO_BUCKET = "there is no such bucket"
    UNTRUSTED = "its certificate is not trusted"
    REJECTED = "it rejected the request"


ERRORS: Mapping[Kind, type[ProtokubeError]] = {
    Kind.AWAY: Busy,
    Kind.UNREACHED: TryLater,
    Kind.BUSY: Busy,
    Kind.BROKEN: Busy,
    Kind.SILENT: TryLater,
    Kind.DENIED: Refused,
    Kind.NO_BUCKET: Refused,
    Kind.UNTRUSTED: Refused,
    Kind.REJECTED: Refused,
}

HINTS: Mapping[Kind, str] = {
    Kind.AWAY: "check the network and the store's URL, then run it again",
    Kind.UNREACHED: "check the network and firewalls on the way, then run it again",
    Kind.BUSY: "run it again in a minute",
    Kind.BROKEN: "run it again; if it stays like this, look at the store's own logs or status page",
    Kind.SILENT: "run it again; if it stays like this, look at the store's own logs or status page",
    Kind.DENIED: "check the credentials and what they are allowed to do",
    Kind.NO_BUCKET: "create the bucket, or correct the store's URL",
    Kind.UNTRUSTED: "point SSL_CERT_FILE at the certificate authority that signed it",
    Kind.REJECTED: "correct the store's URL or settings",
}


def fault(
    kind: Kind, *, doing: str, url: str, saw: str, hints: Mapping[Kind, str] = HINTS, guarded: bool = False
) -> ProtokubeError:
    """The error for a fault while `doing` something ("read dev/config") with the store at a URL."""
    message = f"cannot {doing} in {url}: {kind.value}"
    hint = hints.get(kind) or HINTS[kind]
    if guarded and kind in (Kind.BROKEN, Kind.SILENT):
        return Unsure(f"{message}; it may have been written", saw=scrub(saw), hint="read it again before deciding")
    return ERRORS[kind](message, saw=scrub(saw), hint=hint)


def need(module: str, extra: str, url: str) -> None:
    """Raise Refused, with the pip command, unless an optional library is installed."""
    try:
        import_module(module)
    except ImportError as missing:
        raise Refused(
            f"cannot open {scrub(url)}: {module} is not installed",
            saw=str(missing),
            hint=f"pip install 'protokube[{extra}]'",
        ) from missing
