"""Names of keys and certificates: who is who in the cluster."""

from __future__ import annotations

from dataclasses import dataclass

from protokube.spec.fields import said


@dataclass(frozen=True, slots=True, kw_only=True)
class Authority:
    """A certificate authority, made once; it signs nothing outside its purpose."""

    common_name: str = said()
    purpose: str = said()


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """A certificate: who it names, for what it is good, and who signs it."""

    authority: str = said()
    common_name: str = said()
    organizations: list[str] = said()
    names: list[str] = said("DNS names and addresses it is good for")
    usages: list[str] = said()


@dataclass(frozen=True, slots=True, kw_only=True)
class PKI:
    """Every authority, key pair and certificate by name; the keys themselves lie in the store, never here."""

    authorities: dict[str, Authority] = said(keyed=True)
    key_pairs: list[str] = said("Keys without a certificate")
    certificates: dict[str, Certificate] = said(keyed=True)
