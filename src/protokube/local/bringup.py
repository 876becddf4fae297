"""From nothing to a running cluster on this machine: the steps of `up`, each of which may be repeated.

Whatever was begun and cut short is finished by asking again: authorities, founding volumes and generation records are
made only where there are none, and what is there is never made anew.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from protokube.agent.controlplane.keys import CLIENT
from protokube.agent.wanted import EtcdCluster, MasterConfig, to_tree
from protokube.config.dnscontroller import KEY_SECRET, LOCAL_SERVER
from protokube.errors import Refused, TryLater
from protokube.host.files import write_atomic
from protokube.local.base import client_files, private
from protokube.local.base.paths import Paths
from protokube.manifests.kubeconfig import by_content
from protokube.members.founding import first_generation
from protokube.members.generation import Generation, decode, encode
from protokube.pki.authority import Authorities, ensure_authority
from protokube.pki.files import sync_certificates
from protokube.pki.shelf import Shelf
from protokube.pki.wanted import CertificateWanted
from protokube.providers.clients.local import LocalClient
from protokube.providers.dns.keys import TsigKey, new_key
from protokube.providers.volumes import Volume
from protokube.store import AlreadyThere, NotThere, Store, layout

AGENT = "protokube"
"""The certificate by which the agent, and whoever owns the machine, speaks to the API."""
STORE_INSIDE = "/srv/protokube/store"
CACHE = Path("/var/cache/protokube")
"""Programs that were fetched once; no cluster owns them."""
DAEMON_PATIENCE = 15.0


def tsig_key(store: Store, cluster: str) -> TsigKey:
    """The key by which agents write names; made once."""
    path = layout.secret(cluster, KEY_SECRET)
    made = new_key(f"protokube.{cluster}")
    with contextlib.suppress(AlreadyThere):
        store.create(path, json.dumps({"name": made.name, "secret": made.secret}).encode())
    told = json.loads(store.read(path).data)
    return TsigKey(name=told["name"], secret=told["secret"])


def ensure_authorities(store: Store, wanted: MasterConfig) -> None:
    """Every authority that signs something, and every key pair, made once and only here: an agent never makes one."""
    shelf = Shelf(store=store, layout=layout, cluster=wanted.cluster)
    for name in sorted({told["authority"] for told in wanted.certificates.values()} | set(wanted.key_pairs)):
        ensure_authority(shelf, name, time.time())


def write_client(store: Store, paths: Paths, wanted: MasterConfig) -> None:
    """A certificate for the person who typed `up`."""
    folder = client_files.folder(paths)
    private.make_folder(folder)
    told = CertificateWanted.read({**wanted.certificates[CLIENT], "commonName": "operator"})
    authorities = Authorities(Shelf(store=store, layout=layout, cluster=wanted.cluster))
    sync_certificates(folder, {"client": told}, authorities, time.time())
    (folder / "ca.crt").write_bytes((folder / f"{told.authority}.crt").read_bytes())


def start_daemon(paths: Paths) -> bool:
    """Have the cloud running; say whether it was started now. Raises with the end of its log if it does not come up."""
    client = LocalClient(paths.admin_socket, patience=1.0)
    if answers(client):
        return False
    with os.fdopen(private.open_file(paths.log, os.O_WRONLY | os.O_APPEND), "ab") as log:
        process = subprocess.Popen(  # noqa: S603
            [sys.executable, "-m", "protokube.local.cloud.daemon", str(paths.root)],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, cwd="/",
        )  # fmt: skip
    end = time.monotonic() + DAEMON_PATIENCE
    while not answers(client):
        if process.poll() is not None or time.monotonic() > end:
            tail = paths.log.read_text(errors="replace").splitlines()[-3:]
            raise Refused("the local cloud does not start", saw=" | ".join(tail), hint=f"see {paths.log}")
        time.sleep(0.02)
    return True


def answers(client: LocalClient) -> bool:
    try:
        client.call("hosts")
    except TryLater:
        return False
    return True


def create_founders(admin: LocalClient, wanted: MasterConfig) -> list[Volume]:
    """One blank disk for each member; asked again, the cloud returns the same ones."""
    likes = [
        Volume(
            id="", zone=member.zone or "local", etcd_cluster=etcd.key, member=member.short,
            members=tuple(each.short for each in etcd.members), size=member.size, made_empty=True,
        )
        for etcd in wanted.etcd
        for member in etcd.members
    ]  # fmt: skip
    made = admin.call("create_founders", volumes=[asdict(each) for each in likes])
    return [Volume(**{**told, "members": tuple(told["members"])}) for told in made]


def record_generation(store: Store, cluster: str, etcd: EtcdCluster, volumes: Sequence[Volume]) -> Generation:
    """Written once, before any machine boots; one that is there stays, whatever it says."""
    path = layout.etcd_generation(cluster, etcd.key)
    founders = {each.member: each.id for each in volumes if each.etcd_cluster == etcd.key}
    made = first_generation(etcd.key, etcd.token, founders, uuid.uuid4().hex[:12])
    with contextlib.suppress(AlreadyThere):
        store.create(path, encode(made))
    found = decode(store.read(path).data)
    if found is None:
        raise Refused(
            f"the generation record of {etcd.key} cannot be read", hint="restore it from a backup of the store"
        )
    if found.open and found.founders != founders:
        raise Refused(
            f"the generation record of {etcd.key} names other volumes than the cloud has",
            saw=f"{found.founders} recorded, {founders} in the cloud",
            hint="`protokube down`, if nothing of it is needed, and `up` again",
        )
    return found


def is_closed(store: Store, wanted: MasterConfig) -> bool:
    """Whether the creation of every etcd cluster is over."""
    for etcd in wanted.etcd:
        try:
            record = decode(store.read(layout.etcd_generation(wanted.cluster, etcd.key)).data)
        except NotThere:
            return False
        if record is None or record.open:
            return False
    return True


def launch_data(wanted: MasterConfig, zone: str) -> str:
    """What a master's agent finds in /etc/protokube/agent.json: no secrets, for the cloud keeps it."""
    told: dict[str, Any] = {
        "master": to_tree(wanted),
        "store": f"file://{STORE_INSIDE}",
        "infrastructure": {"kind": "local", "socket": "/run/protokube/cloud.sock"},
        "dns": {
            "kind": "rfc2136", "server": LOCAL_SERVER, "port": 53, "zone": zone,
            "key": {"fromSecret": KEY_SECRET},
        },
        "units": "local",
        "pki": "/srv/kubernetes",
    }  # fmt: skip
    return json.dumps(told)


def write_launcher(paths: Paths) -> Path:
    """A folder for the hosts' PATH with this very protokube in it: static pods of ours start it by its name."""
    folder = paths.root / "bin"
    folder.mkdir(mode=0o755, exist_ok=True)
    text = f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m protokube "$@"\n'
    write_atomic(folder / "protokube", text.encode(), 0o755)
    return folder


def template(launch: str, binaries: Sequence[Path]) -> dict[str, Any]:
    """What every master of the local cloud is made from."""
    command = [sys.executable, "-m", "protokube", "agent"]
    path = os.pathsep.join(
        [*(str(each) for each in binaries), "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"]
    )
    return {
        "units": {"protokube.service": command},
        "startable": {"kubelet.service": []},
        "path": path,
        "environment": {"PYTHONUNBUFFERED": "1"},
        "files": {"/etc/protokube/agent.json": launch},
    }


def set_groups(admin: LocalClient, wanted: MasterConfig, told: Callable[[str], dict[str, Any]]) -> None:
    """One group for each master, as the configuration has them: a killed one is replaced in its own group."""
    groups = sorted({member.group or "masters" for etcd in wanted.etcd for member in etcd.members})
    for group in groups:
        admin.call("set_group", name=group, size=1, template=told(group))


def endpoints(admin: LocalClient, etcd: EtcdCluster) -> dict[str, str]:
    """Client URLs on the user's own loopback, by the name of the member; they stay while members move."""
    wanted = [{"name": member.dns_name, "port": etcd.pod.client_port} for member in etcd.members]
    ports = {(told["name"], told["port"]): told["local_port"] for told in admin.call("forwards", wanted=wanted)}
    return {member.name: f"https://127.0.0.1:{ports[member.dns_name, etcd.pod.client_port]}" for member in etcd.members}


def api_server(admin: LocalClient, wanted: MasterConfig) -> str:
    """The API on the user's own loopback: whichever master serves it now."""
    name = wanted.api_names[0]
    told = admin.call("forwards", wanted=[{"name": name, "port": wanted.api_port}])
    (port,) = (each["local_port"] for each in told if (each["name"], each["port"]) == (name, wanted.api_port))
    return f"https://127.0.0.1:{port}"


def write_kubeconfig(store: Store, paths: Paths, wanted: MasterConfig, server: str) -> Path:
    """For the person who typed `up`: may do everything, and needs no other file."""
    folder = client_files.folder(paths)
    told = CertificateWanted.read({**wanted.certificates[AGENT], "commonName": "operator"})
    authorities = Authorities(Shelf(store=store, layout=layout, cluster=wanted.cluster))
    sync_certificates(folder, {"kubernetes": told}, authorities, time.time())
    ca, certificate, key = (
        (folder / name).read_bytes() for name in (f"{told.authority}.crt", "kubernetes.crt", "kubernetes.key")
    )
    text = by_content(wanted.cluster, server, "operator", ca=ca, certificate=certificate, key=key)
    write_atomic(folder / "kubeconfig", text.encode(), 0o600)
    write_atomic(folder / "api-server", f"{server}\n".encode())
    return folder / "kubeconfig"


def dns_address(admin: LocalClient) -> str:
    """Where the embedded DNS server answers the user."""
    return f"127.0.0.1:{admin.call('about')['dns_port']}"
