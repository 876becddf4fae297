"""A certificate as the complete configuration asks for it, under `pki.certificates`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from protokube.errors import Refused

LONGEST_COMMON_NAME = 64
"""X.520 allows no more; a DNS name may have 253."""
FIELDS = frozenset({"authority", "commonName", "organizations", "names", "usages"})


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateWanted:
    """Subject, names and usages of a certificate, and the authority that signs it."""

    authority: str
    common_name: str
    organizations: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    """DNS names and addresses."""
    usages: tuple[str, ...] = ()
    """`server auth`, `client auth`."""

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> CertificateWanted:
        """As the complete configuration and launch data write it; TypeError for an unknown field."""
        if unknown := document.keys() - FIELDS:
            raise TypeError(f"a certificate has no field {', '.join(map(repr, sorted(unknown)))}")
        return cls(
            authority=document["authority"],
            common_name=document["commonName"],
            organizations=tuple(document["organizations"]),
            names=tuple(document["names"]),
            usages=tuple(document["usages"]),
        )

    def to_tree(self) -> dict[str, Any]:
        return {
            "authority": self.authority,
            "commonName": self.common_name,
            "organizations": list(self.organizations),
            "names": list(self.names),
            "usages": list(self.usages),
        }

    @property
    def subject(self) -> str:
        """The common name as it fits into a certificate: shortened only for servers.

        Clients verify a server by its alternative names; a client is identified by its common name.
        """
        if len(self.common_name) <= LONGEST_COMMON_NAME:
            return self.common_name
        if self.common_name in self.names:
            return self.common_name[:LONGEST_COMMON_NAME]
        raise Refused(
            f"no certificate can name {self.common_name!r}",
            want=f"at most {LONGEST_COMMON_NAME} characters",
            hint="choose a shorter name for the cluster",
        )
