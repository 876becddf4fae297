"""Bring up a cluster on this machine: the steps of `up`, each of them idempotent.

After an interruption, `up` again completes what was begun: authorities, founding volumes and generation records are
created only where they are missing, and existing ones are never replaced.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from protokube.agent.controlplane.keys import CLIENT
from protokube.binaries.product import CACHE as CACHE
from protokube.config.dnscontroller import KEY_SECRET, LOCAL_SERVER
from protokube.errors import Refused, TryLater
from protokube.etcd.client import GatewayEtcd
from protokube.host.files import write_atomic
from protokube.launch.boot import LaunchDocument
from protokube.launch.machine import EtcdCluster, MasterConfig
from protokube.local.base import client_files, private, programs
from protokube.local.base.paths import Paths
from protokube.local.etcd_choice import Etcd
from protokube.manifests.kubeconfig import by_content
from protokube.pki.authority import Authorities
from protokube.pki.files import sync_certificates
from protokube.pki.keystore import Keystore
from protokube.providers.clients.local import LocalClient
from protokube.store import Store, layout

AGENT = "protokube"
"""The certificate by which the agent and the operator authenticate to the API server."""
ZONE = "local"
"""The zone of disks and hosts, where the spec names none."""
STORE_INSIDE = "/srv/protokube/store"
DAEMON_PATIENCE = 15.0


def write_client(store: Store, paths: Paths, wanted: MasterConfig) -> None:
    """Write an etcd client certificate for the operator."""
    folder = client_files.folder(paths)
    private.make_folder(folder)
    certificate = replace(wanted.certificates[CLIENT], common_name="operator")
    authorities = Authorities(Keystore(store=store, layout=layout, cluster=wanted.cluster))
    sync_certificates(folder, {"client": certificate}, authorities, time.time())
    (folder / "ca.crt").write_bytes((folder / f"{certificate.authority}.crt").read_bytes())


def start_daemon(paths: Paths) -> bool:
    """Start the cloud's daemon if it does not run; return whether it was started. Refused, with the end of its log."""
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


def launch_data(wanted: MasterConfig, zone: str) -> str:
    """The content of a master's /etc/protokube/agent.json. Without secrets, because the cloud stores it."""
    document = LaunchDocument(
        master=wanted,
        store=f"file://{STORE_INSIDE}",
        infrastructure={"kind": "local", "socket": "/run/protokube/cloud.sock"},
        dns={
            "kind": "rfc2136", "server": LOCAL_SERVER, "port": 53, "zone": zone, "key": {"fromSecret": KEY_SECRET},
        },
        units="local",
    )  # fmt: skip
    return json.dumps(document.to_tree())


def write_launcher(paths: Paths) -> Path:
    """Create a folder for the hosts' PATH with a launcher of this protokube: our static pods start it by its name."""
    folder = paths.root / "bin"
    folder.mkdir(mode=0o755, exist_ok=True)
    text = f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m protokube "$@"\n'
    write_atomic(folder / "protokube", text.encode(), 0o755)
    return folder


def keep_programs(paths: Paths, wanted: MasterConfig, etcd: Etcd, kubernetes: Path | None) -> None:
    """Make the programs of this configuration visible in all hosts, those that run included."""
    tools = [etcd.etcd, etcd.etcdctl, etcd.etcd.with_name("etcdutl")]  # the tools restore snapshots
    for each in wanted.etcd:
        for program in tools:
            if program and program.exists():
                programs.add(paths.programs, each.pod.image, program)
    for component in wanted.components if kubernetes else ():
        if kubernetes and not component.program and (kubernetes / component.name).exists():
            programs.add(paths.programs, component.image, kubernetes / component.name)
    for version in sorted({each.version for each in wanted.kubelets.values() if each.version}):
        if kubernetes and (kubernetes / programs.KUBELET).exists():
            programs.add(paths.programs, f"{programs.KUBELET}:{version}", kubernetes / programs.KUBELET)


def template(launch: str, binaries: Sequence[Path], paths: Paths) -> dict[str, Any]:
    """The instance template of the masters."""
    command = [sys.executable, "-m", "protokube", "agent"]
    path = os.pathsep.join(
        [*(str(each) for each in binaries), "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"]
    )
    return {
        "units": {"protokube.service": command},
        "startable": {"kubelet.service": []},
        "path": path,
        "environment": {"PYTHONUNBUFFERED": "1", programs.VARIABLE: str(paths.programs)},
        "shown": [str(paths.programs)],
        "files": {"/etc/protokube/agent.json": launch},
    }


def blind_hosts(admin: LocalClient) -> list[str]:
    """Hosts that run and do not see the programs of a new version: an earlier protokube created them."""
    pids = {str(row["name"]): row["pid"] for row in admin.call("hosts") if row["running"] and row["pid"]}
    return sorted(name for name, pid in pids.items() if not _has_programs(pid))


def _has_programs(pid: int) -> bool:
    try:
        return f"{programs.VARIABLE}=".encode() in Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:  # it has ended; its replacement has them
        return True


def endpoints(admin: LocalClient, etcd: EtcdCluster) -> dict[str, str]:
    """Client URLs on the machine's loopback, by member name; they stay the same while members move between hosts."""
    wanted = [{"name": member.dns_name, "port": etcd.pod.client_port} for member in etcd.members]
    ports = {(each["name"], each["port"]): each["local_port"] for each in admin.call("forwards", wanted=wanted)}
    return {member.name: f"https://127.0.0.1:{ports[member.dns_name, etcd.pod.client_port]}" for member in etcd.members}


def etcd_client(paths: Paths, urls: dict[str, str]) -> GatewayEtcd:
    """The operator's client of an etcd cluster, by `endpoints`."""
    return GatewayEtcd(urls, client_files.etcd_tls(paths))


def api_server(admin: LocalClient, wanted: MasterConfig) -> str:
    """The URL of the API server on the machine's loopback, forwarded to a master that serves it."""
    name = wanted.api_internal_name
    forwards = admin.call("forwards", wanted=[{"name": name, "port": wanted.api_port}])
    (port,) = (each["local_port"] for each in forwards if (each["name"], each["port"]) == (name, wanted.api_port))
    return f"https://127.0.0.1:{port}"


def write_kubeconfig(store: Store, paths: Paths, wanted: MasterConfig, server: str) -> Path:
    """Write a self-contained kubeconfig with full rights for the operator."""
    folder = client_files.folder(paths)
    wanted_certificate = replace(wanted.certificates[AGENT], common_name="operator")
    authorities = Authorities(Keystore(store=store, layout=layout, cluster=wanted.cluster))
    sync_certificates(folder, {"kubernetes": wanted_certificate}, authorities, time.time())
    names = (f"{wanted_certificate.authority}.crt", "kubernetes.crt", "kubernetes.key")
    ca, certificate, key = ((folder / name).read_bytes() for name in names)
    text = by_content(wanted.cluster, server, "operator", ca=ca, certificate=certificate, key=key)
    write_atomic(folder / "kubeconfig", text.encode(), 0o600)
    write_atomic(folder / "api-server", f"{server}\n".encode())
    return folder / "kubeconfig"


def dns_address(admin: LocalClient) -> str:
    """The address of the embedded DNS server on the machine's loopback."""
    return f"127.0.0.1:{admin.call('about')['dns_port']}"
