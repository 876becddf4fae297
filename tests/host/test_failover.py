"""Clients of the API leave an API server that died, froze, vanished or is not ready: real hosts, real TLS."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from builders.certificates import write_certificates
from clusters.hosts import Cloud, Host, a_cloud, eventually
from protokube.local.host import network

HERE = Path(__file__).parent
NAME = "api.internal.dev"
PKI = "/srv/kubernetes"
PROXY = (str(Path(sys.executable).with_name("protokube")), "api-proxy", "--name", NAME)
BOUND = 20.0
"""Seconds within which every client is served again."""
CERTIFICATE = {
    "authority": "ca", "commonName": NAME, "organizations": [], "names": [NAME], "usages": ["server auth"],
}  # fmt: skip


@dataclass
class Hearing:
    """What the clients heard, as they tell it."""

    process: subprocess.Popen[str]
    lines: list[tuple[float, str, str]] = field(default_factory=list)

    def listen(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            at, kind, server = line.split()
            self.lines.append((float(at), kind, server))

    def watch_anew(self) -> None:
        assert self.process.stdin
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def last(self, kind: str) -> str:
        return next((server for _, each, server in reversed(self.lines) if each == kind), "")

    def since(self, when: float, kind: str) -> list[str]:
        return [server for at, each, server in list(self.lines) if each == kind and at > when]

    def longest_silence(self, when: float, kind: str) -> float:
        heard = [at for at, each, _ in list(self.lines) if each == kind]
        return max(after - before for before, after in pairwise(heard) if after > when)


@dataclass
class Field:
    """Three API servers and one node, with the proxy and its clients."""

    cloud: Cloud
    node: Host
    masters: dict[str, Host]
    servers: dict[str, subprocess.Popen[str]]
    proxy: subprocess.Popen[str]
    hearing: Hearing

    def status(self) -> dict[str, Any]:
        return status_on(self.node)

    def health(self, server: str) -> str:
        by_address = {each["address"]: each["health"] for each in self.status()["backends"]}
        return str(by_address[self.masters[server].spec.address])

    def signal(self, server: str, number: int) -> None:
        """To the process inside, which is the only one of that name."""
        (inside,) = children(self.servers[server].pid)
        subprocess.run(["kill", f"-{number}", str(inside)], check=True)

    def cable(self, server: str, state: str) -> None:
        subprocess.run(["ip", "-n", self.cloud.switch, "link", "set", network.port(server), state], check=True)

    def name(self, *servers: str) -> None:
        """What the name leads to from now on."""
        write_names(self.node, [self.masters[each] for each in servers])

    def settled_on(self) -> str:
        """The one that both clients are served by.

        One that stood still for a moment is passed by for good by what connects anew, and rightly keeps the watch. Then
        the watch has to connect anew as well.
        """
        hearing, parted = self.hearing, time.monotonic()

        def look() -> str:
            nonlocal parted
            watch, fresh = hearing.last("watch"), hearing.last("fresh")
            if watch and fresh and watch != fresh and time.monotonic() - parted > 2:
                hearing.watch_anew()
                parted = time.monotonic()
            return watch if watch == fresh else ""

        return eventually(look, 2 * BOUND)


def status_on(node: Host) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(node.outside("/run/protokube/api-proxy.json").read_text())
    return told


def children(pid: int) -> list[int]:
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def write_names(node: Host, masters: list[Host]) -> None:
    node.outside("/etc/host.conf").write_text("multi on\n")  # or a name has the first of its addresses only
    lines = [f"{each.spec.address} {NAME}" for each in masters]
    node.outside("/etc/hosts").write_text("\n".join(["127.0.0.1 localhost", *lines, ""]))


def program(host: Host, *command: str) -> subprocess.Popen[str]:
    return subprocess.Popen(host.enter(*command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def kill(process: subprocess.Popen[str]) -> None:
    for inside in children(process.pid) if process.poll() is None else ():
        subprocess.run(["kill", "-KILL", str(inside)], check=False)
    process.kill()  # nsenter stops together with what it runs


@contextmanager
def a_field(tmp_path: Path, *more: str) -> Iterator[Field]:
    write_certificates(tmp_path / "pki", {"api": CERTIFICATE})
    with a_cloud() as cloud, ExitStack() as ending:
        hosts = {name: cloud.start(name, number) for number, name in enumerate(("one", "two", "three", "node"), 11)}
        for host in hosts.values():
            host.outside(PKI).mkdir(parents=True, exist_ok=True)
            for file in (tmp_path / "pki").iterdir():
                (host.outside(PKI) / file.name).write_bytes(file.read_bytes())
        node = hosts.pop("node")
        keys = (f"{PKI}/api.crt", f"{PKI}/api.key")

        def started(host: Host, *command: str) -> subprocess.Popen[str]:
            process = ending.enter_context(program(host, *command))
            ending.callback(kill, process)
            return process

        server = (sys.executable, "-I", str(HERE / "failover_server.py"))
        servers = {name: started(host, *server, name, *keys) for name, host in hosts.items()}
        write_names(node, list(hosts.values()))
        proxy = started(node, *PROXY, *more)
        # before all are checked a watch may settle elsewhere than what comes after it, and rightly stay there
        eventually(lambda: [each["health"] for each in status_on(node)["backends"]] == ["good"] * 3, 30)
        hearing = Hearing(started(node, sys.executable, "-I", str(HERE / "failover_client.py"), f"{PKI}/ca.crt"))
        ear = threading.Thread(target=hearing.listen)
        ear.start()
        ending.callback(ear.join)
        ending.callback(kill, hearing.process)  # which ends the listening, before what it listens to is closed
        yield Field(cloud, node, hosts, servers, proxy, hearing)


@pytest.fixture
def ground(tmp_path: Path) -> Iterator[Field]:
    with a_field(tmp_path, "--ca", f"{PKI}/ca.crt") as made:
        yield made


FAULTS: dict[str, Callable[[Field, str], None]] = {
    "killed": lambda ground, server: ground.signal(server, signal.SIGKILL),
    "frozen": lambda ground, server: ground.signal(server, signal.SIGSTOP),
    "vanished": lambda ground, server: ground.cable(server, "down"),
    "not-ready": lambda ground, server: ground.signal(server, signal.SIGUSR1),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_clients_are_served_again_by_another_api_server(
    ground: Field, fault: str, capsys: pytest.CaptureFixture[str]
) -> None:
    lost = ground.settled_on()
    began = time.monotonic()

    FAULTS[fault](ground, lost)

    for kind in ("watch", "fresh"):
        eventually(lambda kind=kind: set(ground.hearing.since(began, kind)) - {lost}, BOUND)  # type: ignore[misc]
    eventually(lambda: ground.health(lost) == "bad", BOUND)
    elsewhere = ground.settled_on()
    assert elsewhere != lost
    with capsys.disabled():
        silences = {kind: f"{ground.hearing.longest_silence(began, kind):.1f} s" for kind in ("watch", "fresh")}
        print(f"\n{fault}: longest silence {silences}, RSS of the proxy {rss(ground) >> 20} MB")  # noqa: T201


def test_one_that_comes_back_is_good_again_and_takes_nobody_away(ground: Field) -> None:
    lost = ground.settled_on()
    ground.cable(lost, "down")
    eventually(lambda: ground.health(lost) == "bad", BOUND)
    elsewhere = eventually(lambda: (on := ground.settled_on()) != lost and on, BOUND)
    ground.cable(lost, "up")
    eventually(lambda: ground.health(lost) == "good", BOUND)

    began = time.monotonic()
    eventually(lambda: len(ground.hearing.since(began, "fresh")) > 10)
    assert set(ground.hearing.since(began, "fresh") + ground.hearing.since(began, "watch")) == {elsewhere}


def test_while_none_is_ready_the_connections_that_are_there_go_on(ground: Field) -> None:
    ground.settled_on()
    for server in ground.masters:
        ground.signal(server, signal.SIGUSR1)
    eventually(lambda: {ground.health(server) for server in ground.masters} == {"bad"}, BOUND)
    began = time.monotonic()
    before = eventually(lambda: steady(ground.hearing.since(began, "watch")))  # the last good one was left just now
    began = time.monotonic()
    eventually(lambda: len(ground.hearing.since(began, "watch")) > 20)
    assert set(ground.hearing.since(began, "watch")) == {before}
    eventually(lambda: set(ground.hearing.since(began, "fresh")) == set(ground.masters))  # each in its turn


def steady(heard: list[str]) -> str:
    """The one that was heard for a while, if it was the only one."""
    return heard[-1] if len(heard) > 20 and len(set(heard[-20:])) == 1 else ""


def test_one_that_the_name_left_keeps_its_connections_and_gets_no_new_ones(ground: Field) -> None:
    left = ground.settled_on()
    ground.name(*(each for each in ground.masters if each != left))
    eventually(lambda: ground.hearing.last("fresh") != left, BOUND)
    began = time.monotonic()
    eventually(lambda: len(ground.hearing.since(began, "watch")) > 20)
    assert set(ground.hearing.since(began, "watch")) == {left}
    assert left not in ground.hearing.since(began, "fresh")


def test_a_name_that_leads_nowhere_changes_nothing(ground: Field) -> None:
    serving = ground.settled_on()
    ground.name()
    eventually(lambda: ground.status()["unresolved"], BOUND)
    began = time.monotonic()
    eventually(lambda: len(ground.hearing.since(began, "fresh")) > 10)
    assert set(ground.hearing.since(began, "fresh") + ground.hearing.since(began, "watch")) == {serving}


def test_it_ends_when_it_is_told_to_and_starts_again_without_any_name(ground: Field) -> None:
    ground.settled_on()
    ground.name()
    (inside,) = children(ground.proxy.pid)
    subprocess.run(["kill", "-TERM", str(inside)], check=True)
    assert ground.proxy.wait(timeout=10) == 0

    again = program(ground.node, *PROXY)
    began = time.monotonic()
    try:
        for kind in ("watch", "fresh"):
            eventually(lambda kind=kind: ground.hearing.since(began, kind), BOUND)  # type: ignore[misc]
    finally:
        (inside,) = children(again.pid)
        subprocess.run(["kill", "-TERM", str(inside)], check=True)
        assert again.wait(timeout=10) == 0
        again.communicate()


def test_who_cannot_prove_to_be_the_api_server_is_no_api_server(tmp_path: Path) -> None:
    write_certificates(tmp_path / "other", {"api": CERTIFICATE})
    with a_field(tmp_path) as ground:
        server = ground.settled_on()
        eventually(lambda: ground.health(server) == "good", BOUND)
        (ground.node.outside(PKI) / "other.crt").write_bytes((tmp_path / "other/ca.crt").read_bytes())
        options = ("--listen", "127.0.0.1:3989", "--ca", f"{PKI}/other.crt", "--status", "/run/strict.json")
        strict = program(ground.node, *PROXY, *options)
        try:
            told = eventually(lambda: bad_ones(ground.node.outside("/run/strict.json")), BOUND)
        finally:
            (inside,) = children(strict.pid)
            subprocess.run(["kill", "-TERM", str(inside)], check=True)
            strict.communicate(timeout=10)
        assert [each["why"].split(":")[0] for each in told] == ["TLS fails"] * 3


def bad_ones(status: Path) -> list[dict[str, str]]:
    """All of them, once all are bad."""
    told: list[dict[str, str]] = json.loads(status.read_text())["backends"]
    return told if all(each["health"] == "bad" for each in told) else []


FLOOD = """
import socket, ssl, sys, time
context = ssl.create_default_context(cafile=sys.argv[1])
held = []
for _ in range(40):
    held.append(context.wrap_socket(socket.create_connection(("127.0.0.1", 3988)), server_hostname="api.internal.dev"))
    held[-1].sendall(b"GET /flood HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n")
    held[-1].recv(1)
print("flooded", flush=True)
sys.stdin.read()
"""


def rss(ground: Field) -> int:
    (inside,) = children(ground.proxy.pid)
    fields = dict(line.split(":", 1) for line in Path(f"/proc/{inside}/status").read_text().splitlines())
    return int(fields["VmRSS"].split()[0]) << 10


def test_clients_that_do_not_read_cost_a_bounded_amount_of_memory(
    ground: Field, capsys: pytest.CaptureFixture[str]
) -> None:
    before = rss(ground)
    flood = program(ground.node, sys.executable, "-I", "-c", FLOOD, f"{PKI}/ca.crt")
    assert flood.stdout
    assert flood.stdout.readline() == "flooded\n"
    began = time.monotonic()
    eventually(lambda: len(ground.hearing.since(began, "fresh")) > 10)  # the others are served meanwhile
    after = rss(ground)
    flood.communicate("")
    with capsys.disabled():
        print(f"\n40 clients that do not read: RSS {before >> 20} -> {after >> 20} MB")  # noqa: T201
    assert after - before < 40 * (1 << 20)
