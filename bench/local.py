"""The local cloud beside the same thing done by hand: up to quorum, a killed master, an idle agent."""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests"))

from helpers_dns import debian_environment, debian_program  # noqa: E402
from host.debian import unpacked  # noqa: E402
from protokube.local.paths import Paths  # noqa: E402
from protokube.providers.clients.local import LocalClient  # noqa: E402

ROUNDS = int(os.environ.get("PROTOKUBE_BENCH_ROUNDS", "10"))
COMMAND = [sys.executable, "-m", "protokube"]
RATIO = 2.0


def byhand() -> float:
    """Seconds until three members answer, for the shell script."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        environment = {
            **os.environ,
            "ETCD": str(unpacked("etcd-server") / "usr/bin/etcd"),
            "ETCDCTL": str(unpacked("etcd-client") / "usr/bin/etcdctl"),
            "KNOTD": debian_program("knot", "usr/sbin/knotd"),
            "KNOT_LIBRARIES": debian_environment()["LD_LIBRARY_PATH"],
        }
        began = time.time()
        subprocess.run([HERE / "byhand" / "up.sh", folder], check=True, env=environment, timeout=120)
        return float((Path(folder) / "quorum").read_text()) - began


@contextmanager
def cluster() -> Iterator[tuple[Paths, float]]:
    """A cluster of our own, and the seconds it took."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        environment = {
            **os.environ,
            "PROTOKUBE_STATE": folder,
            "PATH": f"{unpacked('etcd-client')}/usr/bin:{unpacked('etcd-server')}/usr/bin:{os.environ['PATH']}",
        }
        began = time.perf_counter()
        up = subprocess.run(
            [*COMMAND, "up", "--cluster", "bench", "-o", "json"], check=True, env=environment, capture_output=True
        )
        took = time.perf_counter() - began
        json.loads(up.stdout)
        try:
            yield Paths.at(Path(folder) / "bench"), took
        finally:
            subprocess.run([*COMMAND, "down", "--cluster", "bench"], check=True, env=environment, capture_output=True)
            shutil.rmtree(folder, ignore_errors=True)


def measure_up() -> bool:
    ours, theirs = [], []
    for _ in range(ROUNDS):
        theirs.append(byhand())
        with cluster() as (_, took):
            ours.append(took)
    ratio = statistics.median(ours) / statistics.median(theirs)
    print(f"up to quorum: {statistics.median(ours):.2f} s, by hand {statistics.median(theirs):.2f} s", end="; ")
    print(f"ratio {ratio:.2f}, budget {RATIO} (median of {ROUNDS})")
    return ratio <= RATIO


def measure_healing() -> bool:
    """A killed master, as the drill tells it, from the moment its volume can be attached again."""
    with cluster() as (paths, _):
        environment = {**os.environ, "PROTOKUBE_STATE": str(paths.root.parent)}
        command = [*COMMAND, "drill", "kill-master", "-o", "json"]
        told = [
            json.loads(subprocess.run(command, env=environment, capture_output=True, check=True).stdout)
            for _ in range(ROUNDS)
        ]
    dead, attached, healthy, connected = (
        statistics.median(_at(each, words) for each in told)
        for words in (" is dead", " is attached to ", " is healthy on ", "peers are connected")
    )
    gap = statistics.median(each["writes"]["longestGap"] for each in told)
    print(
        f"killed master: dead {dead:.2f} s, volume attached {attached:.2f} s, member healthy {healthy:.2f} s", end=", "
    )
    print(f"peers connected {connected:.2f} s after the kill; longest write gap {gap:.2f} s (medians of {ROUNDS})")
    print(f"  from attached to healthy {healthy - attached:.2f} s; budget 3 s in all, with the boot of the new host")
    return healthy <= 3


def _at(verdict: dict[str, Any], words: str) -> float:
    return next(float(step["seconds"]) for step in verdict["steps"] if words in step["text"])


def measure_idle() -> bool:
    """An agent that has nothing to do: CPU of a round, memory, calls to the provider."""
    with cluster() as (paths, _):
        admin = LocalClient(paths.admin_socket)
        (host, *_) = admin.call("hosts")
        time.sleep(15)
        status = paths.hosts / host["name"] / "run" / "protokube" / "status.json"
        pid = _agent(host["pid"])
        before, rounds = _cpu(pid), json.loads(status.read_text())["round"]
        time.sleep(60)
        after, then = _cpu(pid), json.loads(status.read_text())["round"]
        memory = _rss(pid)
    each = (after - before) / max(then - rounds, 1)
    print(f"idle: {then - rounds} rounds in 60 s, {each * 1000:.1f} ms CPU for each with its threads, {memory:.1f} MB")
    return memory <= 64


def _agent(init: int) -> int:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
                parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
            except OSError:
                continue
            if parent == init and b"agent" in words:
                return int(entry.name)
    raise LookupError("no agent runs")


def _cpu(pid: int) -> float:
    told = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(told[11]) + int(told[12])) / os.sysconf("SC_CLK_TCK")


def _rss(pid: int) -> float:
    line = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


def main() -> bool:
    if os.geteuid() != 0:
        print("local: not measured, needs root")
        return True
    return all([measure_up(), measure_healing(), measure_idle()])


if __name__ == "__main__":
    raise SystemExit(0 if main() else 1)
