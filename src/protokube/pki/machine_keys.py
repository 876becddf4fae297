"""Issue the certificates of one machine from the cluster's authorities, and renew them in time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from protokube.manifests.certificate import CertificateWanted
from protokube.pki.authority import Authorities
from protokube.pki.files import sync_certificates
from protokube.pki.folders import give
from protokube.pki.renewal import Place
from protokube.pki.shared import sync_shared


class MachineKeys:
    """Implements the agent's `Keys`.

    `authorities` reads them anew for each call: they may be replaced in the store. `certificates` are those of the
    configuration, by name. `renewal_order` lists, for each etcd cluster and member, the names of the member's
    certificates: the members of one cluster renew theirs one after the other.
    """

    def __init__(
        self,
        authorities: Callable[[], Authorities],
        certificates: Mapping[str, CertificateWanted],
        *,
        lifetime: float,
        renewal_order: Sequence[Sequence[Sequence[str]]],
        directory: Path,
        now: Callable[[], float],
    ) -> None:
        self._authorities, self._certificates, self._lifetime = authorities, certificates, lifetime
        self._directory, self._now = directory, now
        self._places = {
            certificate: Place(index, len(members))
            for members in renewal_order
            for index, names in enumerate(members)
            for certificate in names
        }

    def sync(self, names: Sequence[str]) -> Sequence[str]:
        authorities, news = self._authorities(), list[str]()
        for name in names:
            wanted = {name: self._certificates[name]}
            place = self.place_of(name)
            news += sync_certificates(self._directory, wanted, authorities, self._now(), place, self._lifetime)
        return news

    def place_of(self, certificate: str) -> Place:
        """When it is renewed, in relation to the other members'; any time, unless it is an etcd member's."""
        return self._places.get(certificate, Place())

    def sync_shared(self) -> Sequence[str]:
        return sync_shared(self._directory, self._authorities())

    def give(self, component: str, names: Sequence[str]) -> Sequence[str]:
        return give(self._directory, component, names)
