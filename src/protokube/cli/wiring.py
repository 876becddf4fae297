"""The edges of an agent that need no provider: services, keys, etcd clients and the API server of this machine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from protokube.errors import InvalidRequest
from protokube.etcd import MaintainedEtcd
from protokube.host import Units
from protokube.launch.machine import MasterConfig
from protokube.store import Store, layout

if TYPE_CHECKING:
    from protokube.agent.edges import Clock
    from protokube.kube.client import KubeApi
    from protokube.pki.machine_keys import MachineKeys


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


def end_machine(kind: str) -> Callable[[], None] | None:
    """None where nothing makes another machine in its place."""
    if kind != "local":
        return None
    from protokube.local.host.units import end_host

    return end_host


def machine_keys(store: Store, wanted: MasterConfig, directory: Path, clock: Clock) -> MachineKeys:
    from protokube.pki.authority import Authorities
    from protokube.pki.keystore import Keystore
    from protokube.pki.machine_keys import MachineKeys

    members = [sorted(each.name for each in etcd.members) for etcd in wanted.etcd]
    return MachineKeys(
        lambda: Authorities(Keystore(store=store, layout=layout, cluster=wanted.cluster)),
        wanted.certificates,
        lifetime=wanted.certificate_lifetime,
        renewal_order=[[(f"{name}-peer", f"{name}-server") for name in names] for names in members],
        directory=directory,
        now=clock.now,
    )


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
