"""Choose a provider by its name in the configuration: the one place where vendors are named, for agents and commands.

Each factory imports its vendor when it is called, so an agent in a rack never loads a cloud's library.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from protokube.errors import InvalidRequest, Refused, TryLater
from protokube.providers.dns import DnsProvider
from protokube.providers.groups import GroupProvider
from protokube.providers.machines import MachineProvider
from protokube.providers.volumes import VolumePool, VolumeProvider
from protokube.store import Store, layout

if TYPE_CHECKING:
    from protokube.providers.clients.local import LocalClient
    from protokube.providers.dns.keys import TsigKey
    from protokube.providers.dns.opened import OpenZones

Settings = Mapping[str, Any]
"""As launch data have them: `kind`, and what that kind needs."""
Wake = Callable[[], None]
Factory = TypeVar("Factory")
OPERATOR_PATIENCE = 30.0
"""Seconds for one call of a command: it may create many disks, or end many hosts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Infrastructure:
    """Where volumes and machines come from."""

    volumes: VolumeProvider
    machines: MachineProvider
    watch: Callable[[Wake], None] | None
    """Runs in a thread of its own and wakes the agent on each change; None where nothing can be watched."""


def infrastructure(settings: Settings) -> Infrastructure:
    return _chosen(INFRASTRUCTURES, settings.get("kind"), "infrastructure")(settings)


def _local(settings: Settings) -> Infrastructure:
    from protokube.providers.clients.local import LocalClient
    from protokube.providers.machines.local import LocalMachines
    from protokube.providers.volumes.local import LocalVolumes

    client = LocalClient(Path(settings["socket"]))
    return Infrastructure(
        volumes=LocalVolumes(client), machines=LocalMachines(client), watch=lambda wake: _watch(client, wake)
    )


def _watch(client: LocalClient, wake: Wake) -> None:
    """Wake the agent on every change of the cloud; reconnect when the connection breaks."""
    while True:
        try:
            with client.watch() as changes:
                while True:
                    if changes.wait(60):
                        wake()
        except TryLater:
            time.sleep(0.5)


def _file(settings: Settings) -> Infrastructure:
    from protokube.providers.machines.file import FileMachines
    from protokube.providers.volumes.file import FileVolumes

    inventory, state, me = Path(settings["inventory"]), Path(settings["state"]), str(settings["machine"])
    return Infrastructure(volumes=FileVolumes(inventory, me, state), machines=FileMachines(inventory, me), watch=None)


INFRASTRUCTURES: dict[str, Callable[[Settings], Infrastructure]] = {"local": _local, "file": _file}


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """What a command changes at the provider: volumes and instance groups of a whole cluster."""

    volumes: VolumePool
    groups: GroupProvider


def operator(settings: Settings) -> Operator:
    """For commands; `kind` is the cloud that the spec names. Sends no request yet."""
    return _chosen(OPERATORS, settings.get("kind"), "cloud for commands")(settings)


def _local_operator(settings: Settings) -> Operator:
    from protokube.providers.clients.local import LocalClient
    from protokube.providers.groups.local import LocalGroups
    from protokube.providers.volumes.local import LocalVolumePool

    admin = LocalClient(Path(settings["socket"]), patience=OPERATOR_PATIENCE)
    return Operator(volumes=LocalVolumePool(admin), groups=LocalGroups(admin))


OPERATORS: dict[str, Callable[[Settings], Operator]] = {"local": _local_operator}


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """Where an agent writes names."""

    provider: DnsProvider | None
    zone: bool
    """Whether they are in a zone that others read; else each machine has its own hosts file."""


def names(settings: Settings | None, root: Path, store: Store, cluster: str) -> Names:
    """For an agent. Without settings there is no provider."""
    if not settings or settings.get("kind") is None:
        return Names(provider=None, zone=True)
    return _chosen(NAMES, settings["kind"], "provider of names")(settings, root, store, cluster)


def _agent_rfc2136(settings: Settings, _root: Path, store: Store, cluster: str) -> Names:
    """By the key that launch data name; launch data of former versions hold the key itself."""
    from protokube.providers.dns.keys import TsigKey
    from protokube.providers.dns.rekeyed import RekeyedDns
    from protokube.providers.dns.rfc2136 import Rfc2136Dns

    def connect(key: TsigKey) -> DnsProvider:
        return Rfc2136Dns(settings["zone"], settings["server"], key, port=int(settings.get("port", 53)))

    if "secret" in settings["key"]:
        key = TsigKey(name=settings["key"]["name"], secret=settings["key"]["secret"])
        return Names(provider=connect(key), zone=True)
    path = layout.secret(cluster, str(settings["key"]["fromSecret"]))
    return Names(provider=RekeyedDns(settings["zone"], lambda: _stored_key(store, path), connect), zone=True)


def _stored_key(store: Store, path: str) -> TsigKey:
    from protokube.providers.dns.keyfile import key_in

    try:
        return key_in(store.read(path).data.decode(errors="replace"), f"{path} in {store.url}")
    except InvalidRequest as why:  # no user typed it: a person has to look into the store
        raise Refused(why.message, saw=why.saw, want=why.want, hint=why.hint) from why


def _agent_hosts(settings: Settings, root: Path, _store: Store, _cluster: str) -> Names:
    from protokube.providers.dns.hosts import HostsDns

    file = root / str(settings.get("path", "/etc/hosts")).lstrip("/")
    return Names(provider=HostsDns(settings["zone"], file), zone=False)


def _agent_route53(settings: Settings, _root: Path, _store: Store, _cluster: str) -> Names:
    """With the credentials of the machine. Sends no request yet."""
    from protokube.providers.dns.named_zone import NamedZone
    from protokube.providers.dns.route53 import Route53Zones

    account = Route53Zones(endpoint=settings.get("endpoint"))
    zone = NamedZone(account, settings["zone"], zone_id=settings.get("id", ""), private=settings.get("private"))
    return Names(provider=zone, zone=True)


NAMES: dict[str, Callable[[Settings, Path, Store, str], Names]] = {
    "rfc2136": _agent_rfc2136,
    "hosts": _agent_hosts,
    "route53": _agent_route53,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ZoneAccess:
    """How a command reaches the zones: what each provider needs of it is checked by the command."""

    zones: Sequence[str] = ()
    """Names of the zones, for providers that cannot list them."""
    server: tuple[str, int] = ("", 53)
    key: TsigKey | None = None
    hosts_file: Path = Path("/etc/hosts")
    endpoint: str | None = None
    read_only: bool = False


def zones(kind: str, access: ZoneAccess) -> OpenZones:
    """All zones that a command or a controller may see. Sends no request yet."""
    return _chosen(ZONES, kind, "provider of zones")(access)


def _route53(access: ZoneAccess) -> OpenZones:
    from protokube.providers.dns.opened import OpenZones
    from protokube.providers.dns.route53 import Route53Zones

    account = Route53Zones(endpoint=access.endpoint)
    return OpenZones(account, account.budget, counts_itself=True, read_only=access.read_only)


def _rfc2136(access: ZoneAccess) -> OpenZones:
    from protokube.providers.dns.rfc2136 import Rfc2136Dns

    assert access.key is not None
    address, port = access.server
    return _given([Rfc2136Dns(zone, address, access.key, port=port) for zone in access.zones], access)


def _hosts(access: ZoneAccess) -> OpenZones:
    from protokube.providers.dns.hosts import HostsDns

    return _given([HostsDns(zone, access.hosts_file) for zone in access.zones], access)


def _given(providers: Sequence[DnsProvider], access: ZoneAccess) -> OpenZones:
    from protokube.providers.dns.budget import Budget
    from protokube.providers.dns.given_zones import given
    from protokube.providers.dns.opened import OpenZones

    return OpenZones(given(*providers), Budget(), read_only=access.read_only)


ZONES: dict[str, Callable[[ZoneAccess], OpenZones]] = {"route53": _route53, "rfc2136": _rfc2136, "hosts": _hosts}


def _chosen(table: Mapping[str, Factory], kind: object, what: str) -> Factory:
    if isinstance(kind, str) and kind in table:
        return table[kind]
    raise InvalidRequest(f"there is no {what} {kind!r}", want=" or ".join(table))
