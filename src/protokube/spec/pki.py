"""Names of keys and certificates: who is who in the cluster."""

from __future__ import annotations

from dataclasses import dataclass

from protokube.spec.fields import lasting, spec_field


@dataclass(frozen=True, slots=True, kw_only=True)
class Authority:
    """A certificate authority, made once; it signs nothing outside its purpose."""

    common_name: str = spec_field("Whom its certificate names")
    purpose: str = spec_field("Whom it signs for")


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """A certificate: who it names, for what it is good, and who signs it."""

    authority: str = spec_field("Who signs it")
    common_name: str = spec_field("Whom it names")
    organizations: list[str] = spec_field("The groups its holder is in")
    names: list[str] = spec_field("DNS names and addresses it is good for")
    usages: list[str] = spec_field("What it is good for")


@dataclass(frozen=True, slots=True, kw_only=True)
class PKI:
    """Every authority, key pair and certificate by name; the keys themselves lie in the store, never here."""

    authorities: dict[str, Authority] = spec_field("Who signs", keyed=True)
    key_pairs: list[str] = spec_field("Keys without a certificate")
    certificates: dict[str, Certificate] = spec_field("Who is signed", keyed=True)
    certificate_lifetime: str = spec_field(
        "How long a certificate is valid from the moment it is issued; longer than clocks of machines may differ",
        check=lasting("60s", "87600h"),
    )
