"""Names in certificates: with an invalid name a certificate cannot be issued, in every round."""

from __future__ import annotations

import ipaddress
import re

from protokube.config.draft import Draft, Ledger

LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?", re.IGNORECASE)
LONGEST_NAME = 253
AMBIGUOUS = frozenset("ßς\u200c\u200d")
"""IDNA 2003 and IDNA 2008 give different A-labels for these."""


def check_names(cluster: Draft) -> None:
    """Names that the user adds, and names of certificates that the user wrote in full."""
    ledger = cluster.ledger
    for index, text in enumerate(cluster.get("additionalSans") or []):
        _check(ledger, cluster.at(f"additionalSans[{index}]"), text)
    checked = set(cluster.get("additionalSans") or [])
    for _, certificate in cluster.under("pki").each("certificates"):
        for index, text in enumerate(certificate.get("names") or []):
            path = certificate.at(f"names[{index}]")
            origin = ledger.origin(path)
            if text not in checked and origin and origin.where:  # derived names are reported at their source
                _check(ledger, path, text)


def _check(ledger: Ledger, path: str, text: str) -> None:
    if not is_name(text):
        ledger.problem(path, f"{text!r} is neither a DNS name nor an address", hint(text))


def is_name(text: str) -> bool:
    """An address, or a name of A-labels, the first of which may be `*`."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        labels = text.removeprefix("*.").split(".")
        # a last label of digits is most likely a mistyped address
        return len(text) <= LONGEST_NAME and all(map(LABEL.fullmatch, labels)) and not labels[-1].isdigit()
    return "%" not in text  # a zone id is valid on one machine only


def hint(text: str) -> str:
    """How to write an internationalized name as A-labels; otherwise examples of valid names."""
    if not text.isascii() and not AMBIGUOUS & set(text):
        try:
            plain = text.encode("idna").decode()
        except UnicodeError:
            plain = ""
        if is_name(plain):
            return f"write it as its A-labels: {plain}"
    if not text.isascii():
        return "write it as its A-labels, which begin with `xn--`"
    return "for example api.example.com, *.example.com or 192.0.2.1"
