"""The whole dns-controller, a process of its own, under every fault: nothing right is ever lost, and it recovers.

Each row breaks something for a while over real wires: an API server over TLS, and a DNS server that remembers every
change it was asked for. Before, during and after, `web`, `db` and the two addresses of `both` are asked for: not one
change may take one of them away.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

import pytest

from builders.dns_objects import a_node, a_pod, a_service
from clusters.dns_world import Triple, values_of
from clusters.etcd import own_address
from fakes.api_server import ApiServer, api_server, until
from fakes.dns_thread import DnsThread
from fakes.name_servers import LOOPBACK, ZONE, Kept, bind
from fakes.route53 import ENVIRONMENT, Route53Server
from protokube.agent.cluster import names_lease
from protokube.host.files import write_atomic
from protokube.local.dns.nameserver import DnsServer
from protokube.providers.dns.keys import TsigKey, new_key
from protokube.providers.dns.rfc2136 import Rfc2136Dns
from protokube.records import Change, Record

GRACE, SILENCE, LEASE = 0.5, 2.0, 5.0
"""A leader that stands still for less than the Lease stays the leader."""
PORT = 5300
"""Of an address that no other test has, and none that the system hands out: free again after the server was away."""
RIGHT = {
    (f"web.{ZONE}", "A", "10.0.0.1"),
    (f"db.{ZONE}", "CNAME", "lb.example.net"),
    (f"both.{ZONE}", "A", "10.0.0.1"),
    (f"both.{ZONE}", "A", "10.0.0.2"),
}


@dataclass
class Process:
    """One replica."""

    popen: subprocess.Popen[bytes]
    log: Path

    def stop(self) -> None:
        self.popen.send_signal(signal.SIGCONT)
        self.popen.terminate()
        assert self.popen.wait(20) == 0, self.log.read_text()

    def said(self, words: str) -> bool:
        return words in self.log.read_text()


@dataclass
class Stage:
    """The API server, a DNS server with its memory, and replicas."""

    work: Path
    api: ApiServer
    stack: ExitStack
    kept: Kept = field(default_factory=Kept)
    key: TsigKey = field(default_factory=lambda: new_key("protokube"))
    dns: DnsThread | None = None
    started: int = 0

    @property
    def clock(self) -> Path:
        return self.work / "clock"

    def serve(self) -> None:
        self.dns = DnsThread(DnsServer([ZONE], [self.key], self.kept, address=LOOPBACK), _sockets())
        self.stack.callback(self.dns.close)

    def reached(self, key: TsigKey | None = None, server: str = "") -> list[str]:
        """The options that lead to the DNS server."""
        file, key = self.work / "key", key or self.key
        file.write_text(f'key "{key.name}" {{ algorithm hmac-sha256; secret "{key.secret}"; }};\n')
        return ["--dns", "rfc2136", "--server", server or f"{own_address()}:{PORT}", "--key-file", str(file)]

    def start(
        self, *options: str, program: Sequence[str] = ("-m", "protokube"), environment: Mapping[str, str] | None = None
    ) -> Process:
        self.started += 1
        command = [sys.executable, *program, "dns-controller", "--zone", ZONE, *(options or self.reached())]
        command += ["--kubeconfig", str(self.api.kubeconfig(self.work / "kubeconfig")), "--metrics", ""]
        command += ["--grace", str(GRACE), "--silence", str(SILENCE), "--lease-seconds", str(LEASE)]
        log = self.work / f"log{self.started}"
        with log.open("wb") as output:
            popen = subprocess.Popen(command, stderr=output, stdout=output, env={**os.environ, **(environment or {})})
        self.stack.callback(_end, popen)
        return Process(popen, log)

    def values(self) -> set[Triple]:
        return asked_for(list(self.kept.records.values()))

    def reaches(self, wanted: set[Triple], what: str, values: Callable[[], set[Triple]] | None = None) -> None:
        seen = values or self.values
        try:
            until(lambda: seen() == wanted, what)
        except AssertionError:
            logs = "\n".join(file.read_text()[-3000:] for file in sorted(self.work.glob("log*")))
            raise AssertionError(f"{what}: {seen() ^ wanted}\n{logs}") from None

    def lost(self) -> set[Triple]:
        """Everything that any change ever took away."""
        lost: set[Triple] = set()
        for batch in list(self.kept.saves):
            before = asked_for([change.before for change in batch if change.before])
            lost |= before - asked_for([change.after for change in batch if change.after])
        return lost


def asked_for(records: Sequence[Record]) -> set[Triple]:
    """Without what a server needs for itself."""
    found = {(name, kind, value.removesuffix(".")) for name, kind, value in values_of(records)}
    return {each for each in found if each[1] in ("A", "CNAME") and each[0] != f"ns.{ZONE}"}


def _end(popen: subprocess.Popen[bytes]) -> None:
    popen.kill()
    popen.wait()


def _sockets() -> tuple[socket.socket, socket.socket]:
    tcp = socket.create_server((own_address(), PORT))
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.bind((own_address(), PORT))
    return udp, tcp


def objects(api: ApiServer) -> None:
    api.put(a_node("n1", internal=["10.0.0.1"], external=["10.0.0.1"], external_names=f"both.{ZONE}"))
    api.put(a_node("n2", internal=["10.0.0.2"], external=["10.0.0.2"], external_names=f"both.{ZONE}"))
    api.put(a_pod("web", addresses=["10.0.0.1"], node="n1", internal_names=f"web.{ZONE}"))
    api.put(a_service("db", "LoadBalancer", {"hostname": "lb.example.net"}, external_names=f"db.{ZONE}"))


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with ExitStack() as stack:
        api = stack.enter_context(api_server(tmp_path))
        objects(api)
        found = Stage(tmp_path, api, stack)
        found.serve()
        yield found


def new(stage: Stage, name: str, address: str = "10.0.0.3") -> Triple:
    """Somebody asks for one more name."""
    stage.api.put(a_pod(name, addresses=[address], node="n3", internal_names=f"{name}.{ZONE}"))
    return f"{name}.{ZONE}", "A", address


def lasting(seconds: float) -> None:
    """The fault lasts: what must not happen is given the time to happen."""
    time.sleep(seconds)


def api_away(stage: Stage) -> None:
    stage.api.fault("away")
    lasting(3 * GRACE + SILENCE)


def storm_of_410(stage: Stage) -> None:
    lists = stage.api.count("list", "pods")
    stage.api.fault("gone")
    until(lambda: stage.api.count("list", "pods") > lists + 2, "it lists again and again")
    lasting(2 * GRACE)


def empty_list(stage: Stage) -> None:
    listed_anew(stage, "empty")


def half_list(stage: Stage) -> None:
    listed_anew(stage, "half")


def listed_anew(stage: Stage, fault: str) -> None:
    """Everybody has to list again, and gets a list that lacks objects; single ones can be asked for."""
    stage.api.fault(fault)
    lists = stage.api.count("list", "pods")
    stage.api.forget_history()
    until(lambda: stage.api.count("list", "pods") > lists, "it lists again")
    until(lambda: ("GET", ("pods", "default", "web"), "") in stage.api.requests or fault == "half", "it asks for a pod")
    lasting(3 * GRACE)


def empty_list_and_no_objects(stage: Stage) -> None:
    stage.api.fault("empty", "blind")
    lists = stage.api.count("list", "pods")
    stage.api.forget_history()
    until(lambda: stage.api.count("list", "pods") > lists, "it lists again")
    lasting(4 * GRACE)


def page_fails(stage: Stage) -> None:
    stage.api.page = 1
    stage.api.fault("page")
    lists = stage.api.count("list", "pods")
    stage.api.forget_history()
    until(lambda: stage.api.count("list", "pods") > lists + 1, "it asks for the second page")
    lasting(3 * GRACE)


def silent_watch(stage: Stage) -> None:
    watches = stage.api.count("watch", "pods")
    stage.api.fault("silent")
    until(lambda: stage.api.count("watch", "pods") > watches, "it does not believe in a watch that is silent")


def dns_away(stage: Stage) -> None:
    assert stage.dns is not None
    stage.dns.close()
    new(stage, "meanwhile")
    lasting(2.0)
    stage.serve()


def dns_fails(stage: Stage) -> None:
    stage.kept.fault = OSError("the disk is full")
    new(stage, "meanwhile")
    lasting(1.5)
    stage.kept.fault = None


ANOTHER_TIME = """
import runpy, sys, time
real, file = time.time, sys.argv.pop(1)

def now():
    with open(file) as opened:
        return real() + float(opened.read())

time.time = now
runpy.run_module("protokube", run_name="__main__")
"""
"""The controller as it is, with a time of day that we set. What only counts seconds goes on as it did, as on a machine
that is set right."""


def told_by_a_clock(stage: Stage) -> Sequence[str]:
    turn_clock(stage, 0)
    return ("-c", ANOTHER_TIME, str(stage.clock))


def turn_clock(stage: Stage, hours: int) -> None:
    write_atomic(stage.clock, f"{hours * 3600}\n".encode())


def clock_jumps(stage: Stage) -> None:
    """Far ahead, then far back: keys for DNS are good for minutes around the time of day, so nothing can be written."""
    stands, before = stage.values(), "gone"
    for name, hours in (("ahead", 20), ("back", -20)):
        # an answer that is looked at with another time than it was asked for with is not believed, and told once only
        until(partial(_is_logged, stage, before), f"it knows that {before} was written")
        turn_clock(stage, hours)
        before = name
        stands.add(new(stage, name))
        until(partial(_says_a_time, stage, hours), f"its clock is {hours} hours off")
        lasting(LEASE)
        turn_clock(stage, 0)
        stage.reaches(stands, "it writes as soon as its clock is right")


def _is_logged(stage: Stage, name: str) -> bool:
    return f"{name}.{ZONE} " in stage.work.joinpath("log1").read_text()


def _says_a_time(stage: Stage, hours: int) -> bool:
    """Whether a line of the log was written at about that time, by its own word."""
    there = datetime.now() + timedelta(hours=hours)  # noqa: DTZ005  # as the log has it
    lines = stage.work.joinpath("log1").read_text().splitlines()
    times = [datetime.fromisoformat(line[:19]) for line in lines if re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", line)]
    return any(abs(there - time) < timedelta(hours=1) for time in times)


def lease_tells_other_times(stage: Stage) -> None:
    """Whatever the Lease says about the time of day, nobody compares it with a clock."""
    held = next(tree for key, tree in stage.api.objects.items() if key[0] == "leases")
    for year in ("1999", "2099"):
        spec = {**held["spec"], "renewTime": f"{year}-01-01T00:00:00.000000Z"}
        with stage.api.lock:
            there = stage.api.objects["leases", "kube-system", held["metadata"]["name"]]
            stage.api.put({**there, "spec": spec})
        lasting(LEASE / 2)


ROWS: dict[str, Callable[[Stage], None]] = {
    "the API server is away": api_away,
    "every watch is told that its version is too old": storm_of_410,
    "lists are empty": empty_list,
    "lists lack every other object, and look complete": half_list,
    "lists are empty, and objects cannot be asked for": empty_list_and_no_objects,
    "lists break in the middle": page_fails,
    "watches are open and tell nothing": silent_watch,
    "the DNS server is away": dns_away,
    "the DNS server cannot write": dns_fails,
    "the times in the Lease are far off": lease_tells_other_times,
    "its own clock jumps ahead and back": clock_jumps,
}


@pytest.mark.parametrize("row", ROWS.values(), ids=list(ROWS))
def test_nothing_right_is_lost_and_all_is_well_afterwards_if(row: Callable[[Stage], None], stage: Stage) -> None:
    process = stage.start(program=told_by_a_clock(stage)) if row is clock_jumps else stage.start()
    wrong = new(stage, "gone")
    stage.reaches(RIGHT | {wrong}, "all stand")
    row(stage)
    stage.api.remove("pods", "gone")
    more = {new(stage, "later")}
    meanwhile = [name for name in ("meanwhile", "ahead", "back") if ("pods", "default", name) in stage.api.objects]
    more |= {new(stage, name) for name in meanwhile}
    assert not stage.lost() & RIGHT
    stage.api.fault()
    stage.api.page = 500
    stage.reaches(RIGHT | more, "what came stands, what went is gone")
    process.stop()
    assert stage.lost() == {wrong}


API = f"api.{ZONE}"
MASTERS = {number: (API, "A", f"10.0.1.{number}") for number in (1, 2, 3)}


def agents_left(stage: Stage) -> None:
    """The names of the API as the masters' agents left them: written, and a Lease that nobody renews."""
    zone = Rfc2136Dns(ZONE, own_address(), stage.key, port=PORT, read_seconds=20)
    addresses = tuple(address for _, _, address in MASTERS.values())
    zone.apply([Change(before=None, after=Record(name=API, type="A", values=addresses, ttl=10), why="agents")])
    for number, (_, _, address) in MASTERS.items():
        stage.api.put(a_pod(f"kube-apiserver-m{number}", addresses=[address], node=f"m{number}", internal_names=API))
    lease = names_lease.lease((API,), "m1", 1.0)
    stage.api.put({**lease, "spec": {**lease["spec"], "leaseDurationSeconds": 1}})
    serving(stage, *addresses)


def serving(stage: Stage, *addresses: str) -> None:
    meta = {"name": "kubernetes", "namespace": "default"}
    subsets = [{"addresses": [{"ip": address} for address in addresses]}]
    stage.api.put({"kind": "Endpoints", "metadata": meta, "subsets": subsets}, plural="endpoints")


def test_half_a_list_takes_no_api_server_out_of_the_name_that_the_agents_left(stage: Stage) -> None:
    agents_left(stage)
    stage.api.fault("half")
    process = stage.start()
    until(lambda: process.said("keeps 10.0.1.2: an API server is there"), "it wants to know more")
    lasting(3 * GRACE)
    assert not stage.lost()
    stage.api.fault()
    stage.api.forget_history()
    stage.api.remove("pods", "kube-apiserver-m3")
    serving(stage, "10.0.1.1", "10.0.1.2")
    stage.reaches(RIGHT | {MASTERS[1], MASTERS[2]}, "what really went is gone")
    process.stop()
    assert stage.lost() == {MASTERS[3]}


def test_a_leader_that_was_frozen_finds_another_one_and_writes_nothing(stage: Stage) -> None:
    """Each writes records of a time to live of its own, by which its writes are known."""
    first = stage.start(*stage.reached(), "--ttl", "61")
    stage.reaches(RIGHT, "the first one leads")
    second = stage.start(*stage.reached(), "--ttl", "62")
    until(lambda: stage.api.count("list", "pods") >= 2, "the second one has seen everything")
    first.popen.send_signal(signal.SIGSTOP)
    more = new(stage, "later")
    stage.reaches({*RIGHT, more}, "the second one takes over")
    before = len(stage.kept.saves)
    first.popen.send_signal(signal.SIGCONT)
    until(lambda: first.said("we no longer lead"), "the first one has noticed")
    another = new(stage, "last")
    stage.reaches({*RIGHT, more, another}, "the second one goes on")
    lasting(1.0)
    written = [change.after for batch in stage.kept.saves[before:] for change in batch if change.after]
    assert {record.ttl for record in written if asked_for([record])} == {62}
    first.stop()
    second.stop()
    assert not stage.lost()


def test_a_restart_with_an_empty_memory_loses_nothing_right_and_removes_what_nobody_asks_for(stage: Stage) -> None:
    first = stage.start()
    wrong = new(stage, "gone")
    stage.reaches(RIGHT | {wrong}, "all stand")
    first.popen.kill()
    first.popen.wait()
    stage.api.remove("pods", "gone")
    stage.api.put(a_pod("web", addresses=["10.0.0.1"], node="n1", internal_names=f"web.{ZONE},new.{ZONE}"))
    second = stage.start()
    stage.reaches(RIGHT | {(f"new.{ZONE}", "A", "10.0.0.1")}, "right is what stands")
    second.stop()
    assert stage.lost() == {wrong}


def test_a_record_that_the_server_turns_away_stops_no_other_one(stage: Stage) -> None:
    """BIND takes at most a hundred values in one record."""
    folder = stage.work / "bind"
    folder.mkdir()
    running = stage.stack.enter_context(bind(folder))
    zone = Rfc2136Dns(ZONE, LOOPBACK, running.key, port=running.port)
    crowd = [f"10.1.0.{number}" for number in range(1, 102)]
    for number, address in enumerate(crowd):
        stage.api.put(a_node(f"c{number}", internal=[], external=[address]))
    stage.api.put(a_service("crowd", "NodePort", external_names=f"crowd.{ZONE}"))
    process = stage.start(*stage.reached(running.key, f"{LOOPBACK}:{running.port}"))

    def values() -> set[Triple]:
        return asked_for(zone.list_records())

    stage.reaches(RIGHT, "all others stand", values)
    until(lambda: process.said("was turned away"), "it is told")
    for number, _ in enumerate(crowd[50:], 50):
        stage.api.remove("nodes", f"c{number}")
    few = {(f"crowd.{ZONE}", "A", address) for address in (*crowd[:50], "10.0.0.1", "10.0.0.2")}
    stage.reaches(RIGHT | few, "it stands as soon as it can", values)
    process.stop()


@pytest.mark.parametrize("fault", ["turns many requests away", "carries out a change and does not say so"])
def test_all_is_well_in_the_end_with_a_provider_that(fault: str, stage: Stage) -> None:
    with Route53Server() as far:
        zone = far.zone(ZONE)

        def values() -> set[Triple]:
            return {
                (each.name.removesuffix("."), each.type or "", value.removesuffix("."))
                for each in far.sets(zone) if each.type in ("A", "CNAME") for value in each.records
            }  # fmt: skip

        process = stage.start("--dns", "aws-route53", "--endpoint", far.url, environment=ENVIRONMENT)
        stage.reaches(RIGHT, "all stand", values)
        far.refusals.extend([(400, "Throttling")] * (6 if "turns" in fault else 0))
        far.answers_lost = 0 if "turns" in fault else 1
        changes = far.requests["change"]
        more = {new(stage, "later")}
        stage.reaches(RIGHT | more, "what came stands", values)
        stage.api.remove("pods", "later")
        stage.reaches(RIGHT, "what went is gone, and nothing else", values)
        process.stop()
        assert far.requests["change"] > changes
