"""When an authority expires, and the warning before that.

Authorities are not renewed automatically: everything that trusts one has to trust the next one first. So a person is
warned, a year ahead. Every certificate that it signs expires no later than the authority itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from protokube.pki.files import content_of
from protokube.pki.renewal import DAY

WARN_BEFORE = 365 * DAY
URGENT = 30 * DAY
HINT = "nothing it signed is valid after that; have another authority made, and trusted everywhere, before"


def ends(directory: Path, authorities: Iterable[str]) -> dict[str, float]:
    """When each authority expires, in seconds since 1970; without those whose certificate is missing or unreadable."""
    found = {}
    for name in authorities:
        try:
            if text := content_of(directory / f"{name}.crt"):
                found[name] = end_of(text)
        except (OSError, ValueError):
            continue  # it is rewritten before anything is issued, and read again then
    return found


def end_of(certificate: bytes) -> float:
    from cryptography import x509

    return x509.load_pem_x509_certificate(certificate).not_valid_after_utc.timestamp()


def words(name: str, end: float, now: float) -> str:
    """The warning about an authority; empty while it is valid for more than a year."""
    left = end - now
    if left <= 0:
        return f"the authority {name} has ended, and so has everything it signed"
    return f"the authority {name} ends in {int(left / DAY)} days" if left <= WARN_BEFORE else ""


def is_urgent(end: float, now: float) -> bool:
    return end - now <= URGENT
