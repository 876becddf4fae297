"""A thousand idle rounds of real agents: their CPU time and calls, and whether their memory grows.

Two hosts of one cluster are observed: one runs an unmodified agent, for memory and CPU time; the other one counts its
socket calls by Python's audit events, for the calls of an idle round to the provider and the DNS server.
"""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from clusters.real import RealCluster, until
from protokube.local.base.processes import processes
from soak.budget import Budget, Outcome, Section, say
from soak.chaos.field import is_agent

ROUNDS, WARM_UP, CONTROL = 1000, 100, 20.0
MOST_MEMORY, MOST_GROWTH, MOST_CPU = 64 << 20, 2 << 20, 0.005
"""Bytes, bytes over all rounds, seconds for one round."""

COUNTING = """
import json, os, runpy, sys, threading, time
calls = {"provider": 0, "names": 0}

def hear(event, arguments):
    if event in ("socket.connect", "socket.sendto"):
        address = arguments[1]
        if isinstance(address, (str, bytes)) and "cloud.sock" in os.fsdecode(address):
            calls["provider"] += 1
        elif isinstance(address, tuple) and address[1] == 53:
            calls["names"] += 1

def tell():
    while True:
        with open("/run/protokube/.calls", "w") as file:
            json.dump(calls, file)
        os.replace("/run/protokube/.calls", "/run/protokube/calls.json")
        time.sleep(0.5)

sys.addaudithook(hear)
threading.Thread(target=tell, daemon=True).start()
sys.argv = ["protokube", "agent"]
runpy.run_module("protokube", run_name="__main__")
"""


@dataclass(frozen=True)
class Agent:
    """The agent of one host, observed from outside."""

    cluster: RealCluster
    host: str
    pid: int

    @staticmethod
    def of(cluster: RealCluster, member: str) -> Agent:
        host = cluster.host_of(member)
        init = next(each["pid"] for each in cluster.hosts() if each["name"] == host)
        (pid,) = (pid for pid in processes(init) if is_agent(pid))
        return Agent(cluster, host, pid)

    @property
    def _run(self) -> Path:
        return self.cluster.paths.host(self.host) / "run/protokube"

    @property
    def round(self) -> int:
        return int(json.loads((self._run / "status.json").read_text())["round"])

    @property
    def memory(self) -> int:
        (line,) = (x for x in Path(f"/proc/{self.pid}/status").read_text().splitlines() if x.startswith("VmRSS"))
        return int(line.split()[1]) << 10

    @property
    def cpu(self) -> float:
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def calls(self) -> dict[str, int]:
        time.sleep(1.1)  # written twice a second
        counts: dict[str, int] = json.loads((self._run / "calls.json").read_text())
        return counts


def next_round(cluster: RealCluster, *agents: Agent) -> None:
    """Trigger a round: the cloud sends a change event to all watchers although nothing changed."""
    before = {each: each.round for each in agents}
    cluster.admin.call("api_down", seconds=0)
    for each in agents:
        until(lambda each=each: each.round > before[each], "the next round", every=0.01)  # type: ignore[misc]


def run(budget: Budget) -> Outcome:
    outcome = Outcome(ROUNDS)
    with RealCluster() as cluster:
        cluster.up()
        units = {"protokube.service": [sys.executable, "-c", COUNTING]}
        cluster.set_group("master-b", 1, units=units)
        old = cluster.host_of("b")
        cluster.admin.call("kill_host", host=old)
        until(lambda: cluster.host_of("b") != old, "a successor")
        cluster.until_ready()
        until(lambda: not cluster.notes("waiting"), "nobody waits for anything")
        plain, counted = Agent.of(cluster, "a"), Agent.of(cluster, "b")
        for _ in range(WARM_UP):
            next_round(cluster, plain, counted)
        measure(budget, outcome, plain, counted)
    return outcome


def measure(budget: Budget, outcome: Outcome, plain: Agent, counted: Agent) -> None:
    began, cpu = time.monotonic(), plain.cpu
    time.sleep(CONTROL)
    background = (plain.cpu - cpu) / (time.monotonic() - began)  # leases, comparisons, and few rounds
    memory, cpu, began = plain.memory, plain.cpu, time.monotonic()
    calls, round_before = counted.calls(), counted.round
    while outcome.done < ROUNDS and not budget.over:
        next_round(plain.cluster, plain, counted)
        outcome.done += 1
        if outcome.done % 250 == 0:
            say(f"rss: {outcome.done} of {ROUNDS} rounds, {plain.memory / 2**20:.1f} MB")
    used, lasted = plain.cpu - cpu, time.monotonic() - began
    each = max(used - background * lasted, 0.0) / max(outcome.done, 1)
    after, rounds = counted.calls(), counted.round - round_before
    per_round = {name: (after[name] - calls[name]) / max(rounds, 1) for name in calls}
    growth = plain.memory - memory
    outcome.measured = [
        f"memory: {plain.memory / 2**20:.1f} MB, {growth / 2**10:+.0f} kB over {outcome.done} idle rounds",
        f"an idle round: {each * 1000:.2f} ms of CPU; beside the rounds {background * 1000:.1f} ms a second",
        f"an idle round: {per_round['provider']:.2f} calls to the provider, {per_round['names']:.2f} to DNS",
    ]
    promises = [
        (plain.memory <= MOST_MEMORY, f"the agent uses {plain.memory / 2**20:.1f} MB"),
        (growth <= MOST_GROWTH, f"its memory grew by {growth / 2**20:.1f} MB in {outcome.done} idle rounds"),
        (each <= MOST_CPU, f"an idle round takes {each * 1000:.1f} ms of CPU"),
        (per_round["provider"] <= 1.1, f"an idle round asks the provider {per_round['provider']:.2f} times"),
        (per_round["names"] <= 0.05, f"an idle round asks the name server {per_round['names']:.2f} times"),
    ]
    outcome.found = [text for kept, text in promises if not kept]


RSS = Section("rss", f"{ROUNDS} idle rounds of a real agent: memory, CPU, calls", run)
