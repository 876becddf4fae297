"""Runs inside fresh mount, network and PID namespaces: our server is the only resolver there is; who resolves by it?

Says as JSON what glibc (by `getent`) and Go (by `etcdctl`) made of its answers. Everything ends with the namespaces.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import struct
import subprocess
import sys
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from fakes.dns_thread import DnsThread
from protokube.local.dns.nameserver import DnsServer
from protokube.records import Record

ZONE = "dev.example.com"
SET_FLAGS, UP_AND_RUNNING = 0x8914, 0x41  # SIOCSIFFLAGS; IFF_UP | IFF_RUNNING


class Fixed:
    """Records that nobody changes."""

    def load(self) -> list[Record]:
        many = tuple(f"127.1.{number}.1" for number in range(200))
        return [
            Record(name=f"etcd-a.internal.{ZONE}", type="A", values=("127.0.0.7",), ttl=5),
            Record(name=f"api.{ZONE}", type="A", values=("127.0.0.8", "127.0.0.9"), ttl=10),
            Record(name=f"api.{ZONE}", type="AAAA", values=("::1",), ttl=10),
            Record(name=f"many.{ZONE}", type="A", values=many, ttl=5),
            Record(name=f"_etcd-client._tcp.{ZONE}", type="SRV", values=(f"0 0 1 etcd-a.internal.{ZONE}.",), ttl=5),
        ]

    def save(self, changes: object) -> None:
        """Its SOA and NS are made anew each time."""


def main(work: Path, etcdctl: str) -> None:
    with socket.socket() as any_socket:
        fcntl.ioctl(any_socket, SET_FLAGS, struct.pack("16sH14x", b"lo", UP_AND_RUNNING))
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    for name, text in (
        ("resolv.conf", "nameserver 127.0.0.1\noptions timeout:2 attempts:1\n"),
        ("nsswitch.conf", "hosts: files dns\n"),
        ("hosts", "127.0.0.1 localhost\n"),
    ):
        (work / name).write_text(text)
        subprocess.run(["mount", "--bind", work / name, f"/etc/{name}"], check=True)
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.bind(("127.0.0.1", 53))
    server = DnsServer([ZONE], [], Fixed())
    with DnsThread(server, (udp, socket.create_server(("127.0.0.1", 53)))), ThreadPoolExecutor() as pool:
        asked: dict[str, Future[Any]] = {
            "one": pool.submit(getent, "hosts", f"etcd-a.internal.{ZONE}"),
            "several": pool.submit(getent, "ahosts", f"api.{ZONE}"),
            "many": pool.submit(getent, "ahosts", f"many.{ZONE}"),
            "any case": pool.submit(getent, "hosts", f"ETCD-A.Internal.{ZONE}"),
            "none": pool.submit(getent, "hosts", f"none.{ZONE}"),
            "inner": pool.submit(getent, "hosts", f"internal.{ZONE}"),
            "foreign": pool.submit(getent, "hosts", "example.org"),
            "go": pool.submit(go, etcdctl, "--endpoints", f"http://etcd-a.internal.{ZONE}:1"),
            "go many": pool.submit(go, etcdctl, "--endpoints", f"http://many.{ZONE}:1"),
            "go none": pool.submit(go, etcdctl, "--endpoints", f"http://none.{ZONE}:1"),
            "go srv": pool.submit(go, etcdctl, "--discovery-srv", ZONE, "--insecure-discovery"),
        }
        seen = {name: each.result() for name, each in asked.items()}
    sys.stdout.write(json.dumps(seen))


def getent(database: str, name: str) -> list[str]:
    """The addresses, each once; or how it ended."""
    ran = subprocess.run(["getent", database, name], capture_output=True, text=True, timeout=20, check=False)
    found = sorted({line.split()[0] for line in ran.stdout.splitlines()})
    return found if ran.returncode == 0 else [f"exit {ran.returncode}"]


def go(etcdctl: str, *arguments: str) -> str:
    """What a program with Go's own resolver says when it tries to connect."""
    environment = {"GODEBUG": "netdns=go", "ETCDCTL_API": "3", "PATH": os.environ["PATH"]}
    command = [etcdctl, "--command-timeout=1s", "--dial-timeout=1s", *arguments, "member", "list"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False, env=environment)
    return ran.stdout + ran.stderr


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
