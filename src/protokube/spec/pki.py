"""Keys and certificates of the cluster, by name."""

from __future__ import annotations

from dataclasses import dataclass

from protokube.spec.fields import lasting, spec_field


@dataclass(frozen=True, slots=True, kw_only=True)
class Authority:
    """A certificate authority, created once; it signs nothing outside its purpose."""

    common_name: str = spec_field("The common name of its certificate")
    purpose: str = spec_field("What it signs certificates for")


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """A certificate: its subject, names and usages, and the authority that signs it."""

    authority: str = spec_field("The authority that signs it")
    common_name: str = spec_field("The common name of its subject")
    organizations: list[str] = spec_field("The organizations of its subject; groups to Kubernetes")
    names: list[str] = spec_field("DNS names and addresses it is valid for")
    usages: list[str] = spec_field("Its key usages, such as client auth")


@dataclass(frozen=True, slots=True, kw_only=True)
class PKI:
    """Every authority, key pair and certificate by name; the keys themselves are only in the state store."""

    authorities: dict[str, Authority] = spec_field("The certificate authorities", keyed=True)
    key_pairs: list[str] = spec_field("Key pairs without a certificate")
    certificates: dict[str, Certificate] = spec_field("The certificates", keyed=True)
    certificate_lifetime: str = spec_field(
        "How long a certificate is valid after it is issued; has to exceed the clock skew between machines",
        check=lasting("60s", "87600h"),
    )
