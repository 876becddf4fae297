"""Which vendor stands behind which kind of help: named in the launch data of a machine, chosen here, line by line.

Each branch imports what it needs and nothing else, so an agent in a rack never loads a cloud's library.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from protokube.agent.wanted import MasterConfig
from protokube.errors import InvalidRequest, Refused
from protokube.etcd import MaintainedEtcd
from protokube.host import Units
from protokube.providers.dns import DnsProvider
from protokube.providers.machines import MachineProvider
from protokube.providers.volumes import VolumeProvider
from protokube.store import Store, layout

if TYPE_CHECKING:
    from protokube.agent.edges import Clock
    from protokube.kube.client import KubeApi
    from protokube.pki.authority import Authorities
    from protokube.pki.renewal import Place
    from protokube.providers.dns.keys import TsigKey

Wake = Callable[[], None]


class SystemClock:
    """This machine's own time."""

    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()


@dataclass(frozen=True, slots=True, kw_only=True)
class Infrastructure:
    """Where volumes and machines come from, and a thread's work that wakes the agent when they change."""

    volumes: VolumeProvider
    machines: MachineProvider
    watch: Callable[[Wake], None] | None


def infrastructure(told: Mapping[str, Any]) -> Infrastructure:
    match told.get("kind"):
        case "local":
            from protokube.providers.clients.local import LocalClient
            from protokube.providers.machines.local import LocalMachines
            from protokube.providers.volumes.local import LocalVolumes

            client = LocalClient(Path(told["socket"]))
            return Infrastructure(
                volumes=LocalVolumes(client), machines=LocalMachines(client), watch=lambda wake: _watch(client, wake)
            )
        case "file":
            from protokube.providers.machines.file import FileMachines
            from protokube.providers.volumes.file import FileVolumes

            inventory, state, me = Path(told["inventory"]), Path(told["state"]), str(told["machine"])
            return Infrastructure(
                volumes=FileVolumes(inventory, me, state), machines=FileMachines(inventory, me), watch=None
            )
        case kind:
            raise InvalidRequest(f"there is no infrastructure {kind!r}", want="local or file")


def _watch(client: Any, wake: Wake) -> None:
    """Wake the agent on every change of the cloud, for ever; a broken connection is made anew."""
    from protokube.errors import TryLater

    while True:
        try:
            with client.watch() as changes:
                while True:
                    if changes.wait(60):
                        wake()
        except TryLater:
            time.sleep(0.5)


def names(told: Mapping[str, Any] | None, root: Path, store: Store, cluster: str) -> tuple[DnsProvider | None, bool]:
    """The provider of names, and whether they are in a zone that others read."""
    match (told or {}).get("kind"):
        case None:
            return None, True
        case "rfc2136":
            assert told is not None
            return _updated(told, store, cluster), True
        case "hosts":
            from protokube.providers.dns.hosts import HostsDns

            assert told is not None
            return HostsDns(told["zone"], root / str(told.get("path", "/etc/hosts")).lstrip("/")), False
        case kind:
            raise InvalidRequest(f"there is no provider of names {kind!r}", want="rfc2136 or hosts")


def _updated(told: Mapping[str, Any], store: Store, cluster: str) -> DnsProvider:
    """A zone that takes updates, by the key that launch data name; those of before have the key itself in them."""
    from protokube.providers.dns.keys import TsigKey
    from protokube.providers.dns.rekeyed import RekeyedDns
    from protokube.providers.dns.rfc2136 import Rfc2136Dns

    def connect(key: TsigKey) -> DnsProvider:
        return Rfc2136Dns(told["zone"], told["server"], key, port=int(told.get("port", 53)))

    if "secret" in told["key"]:
        return connect(TsigKey(name=told["key"]["name"], secret=told["key"]["secret"]))
    secret = str(told["key"]["fromSecret"])
    return RekeyedDns(told["zone"], lambda: _stored_key(store, layout.secret(cluster, secret)), connect)


def _stored_key(store: Store, path: str) -> TsigKey:
    from protokube.cli.dns.zones import key_in

    try:
        return key_in(store.read(path).data.decode(errors="replace"), f"{path} in {store.url}")
    except InvalidRequest as why:  # not of whoever typed a command: a person has to look into the store
        raise Refused(why.message, saw=why.saw, want=why.want, hint=why.hint) from why


def units(kind: str) -> Units:
    match kind:
        case "local":
            from protokube.local.host.units import LocalUnits

            return LocalUnits()
        case "systemd":
            from protokube.host.systemd import SystemdUnits

            return SystemdUnits()
        case _:
            raise InvalidRequest(f"there is no service manager {kind!r}", want="local or systemd")


class StoreKeys:
    """Certificates issued on this machine by the authorities in the store."""

    def __init__(self, store: Store, wanted: MasterConfig, directory: Path, clock: Clock) -> None:
        self._store, self._wanted, self._directory, self._clock = store, wanted, directory, clock

    def sync(self, names: Sequence[str]) -> Sequence[str]:
        from protokube.pki.files import sync_certificates
        from protokube.pki.wanted import CertificateWanted

        authorities, lifetime = self._authorities(), self._wanted.certificate_lifetime
        news: list[str] = []
        for name in names:
            told, now = {name: CertificateWanted.read(self._wanted.certificates[name])}, self._clock.now()
            news += sync_certificates(self._directory, told, authorities, now, self._place(name), lifetime)
        return news

    def sync_shared(self) -> Sequence[str]:
        from protokube.pki.shared import sync_shared

        return sync_shared(self._directory, self._authorities())

    def give(self, component: str, names: Sequence[str]) -> Sequence[str]:
        from protokube.pki.folders import give

        return give(self._directory, component, names)

    def _authorities(self) -> Authorities:
        from protokube.pki.authority import Authorities
        from protokube.pki.shelf import Shelf

        return Authorities(Shelf(store=self._store, layout=layout, cluster=self._wanted.cluster))

    def _place(self, certificate: str) -> Place:
        """Members of one etcd cluster renew one after the other."""
        from protokube.pki.renewal import Place

        for etcd in self._wanted.etcd:
            members = sorted(each.name for each in etcd.members)
            for index, name in enumerate(members):
                if certificate in (f"{name}-peer", f"{name}-server"):
                    return Place(index, len(members))
        return Place()


def etcd_clients(wanted: MasterConfig, directory: Path) -> dict[str, MaintainedEtcd]:
    from protokube.agent.controlplane.keys import CLIENT
    from protokube.etcd.client import GatewayEtcd
    from protokube.etcd.tls import TlsFiles

    tls = TlsFiles(
        ca=directory / "etcd-client-ca.crt", cert=directory / f"{CLIENT}.crt", key=directory / f"{CLIENT}.key"
    )
    return {
        etcd.key: GatewayEtcd({each.name: each.client_url for each in etcd.members}, tls=tls) for etcd in wanted.etcd
    }


def kube_api(wanted: MasterConfig, directory: Path) -> KubeApi:
    """The API server of this very machine, asked as the agent."""
    from protokube.kube.client import KubeApi

    server = f"https://127.0.0.1:{wanted.api_port}"
    return KubeApi(
        server, ca=directory / "ca.crt", certificate=directory / "protokube.crt", key=directory / "protokube.key"
    )
