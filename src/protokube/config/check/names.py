"""Names in certificates: what cannot stand in one keeps its holder without any, round after round."""

from __future__ import annotations

import ipaddress
import re

from protokube.config.draft import Draft, Ledger

LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?", re.IGNORECASE)
LONGEST_NAME = 253
AMBIGUOUS = frozenset("ßς\u200c\u200d")
"""The old rules for names of many alphabets and the new ones make different A-labels of these."""


def check_names(cluster: Draft) -> None:
    """Those the user adds, and those of certificates that the user wrote down as a whole."""
    ledger = cluster.ledger
    for index, text in enumerate(cluster.get("additionalSans") or []):
        _check(ledger, cluster.at(f"additionalSans[{index}]"), text)
    told = set(cluster.get("additionalSans") or [])
    for _, certificate in cluster.under("pki").each("certificates"):
        for index, text in enumerate(certificate.get("names") or []):
            path = certificate.at(f"names[{index}]")
            origin = ledger.origin(path)
            if text not in told and origin and origin.where:  # else it is told where it comes from
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
        # a last label of digits is that of an address with a slip in it
        return len(text) <= LONGEST_NAME and all(map(LABEL.fullmatch, labels)) and not labels[-1].isdigit()
    return "%" not in text  # what follows it means something on one machine only


def hint(text: str) -> str:
    """The same name as certificates have it, if it is one of another alphabet."""
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
