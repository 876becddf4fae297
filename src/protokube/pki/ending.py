"""When an authority ends, and what is said of it before.

Nothing renews an authority by itself: whoever trusts it has to trust the next one first. So a person is told, a year
ahead, and every certificate it signs ends with it at the latest.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from protokube.pki.files import content_of
from protokube.pki.renewal import DAY

TOLD_BEFORE = 365 * DAY
URGENT = 30 * DAY
HINT = "nothing it signed is valid after that; have another authority made, and trusted everywhere, before"


def ends(directory: Path, authorities: Iterable[str]) -> dict[str, float]:
    """Seconds since 1970, for each whose certificate is here and can be read."""
    found = {}
    for name in authorities:
        try:
            if text := content_of(directory / f"{name}.crt"):
                found[name] = end_of(text)
        except (OSError, ValueError):
            continue  # it is written anew before anything is issued, and then it is read again
    return found


def end_of(certificate: bytes) -> float:
    from cryptography import x509

    return x509.load_pem_x509_certificate(certificate).not_valid_after_utc.timestamp()


def words(name: str, end: float, now: float) -> str:
    """What to say of an authority now; nothing while it has more than a year."""
    left = end - now
    if left <= 0:
        return f"the authority {name} has ended, and so has everything it signed"
    return f"the authority {name} ends in {int(left / DAY)} days" if left <= TOLD_BEFORE else ""


def is_urgent(end: float, now: float) -> bool:
    return end - now <= URGENT
