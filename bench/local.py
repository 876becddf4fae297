"""The local cloud compared with a hand-written shell script: time to quorum, a killed master, an idle agent."""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "tests")]
os.environ["PROTOKUBE_KUBECONFIG"] = "0"  # no bench changes the kubeconfig of whoever runs it

from fakes.name_servers import debian_environment, debian_program  # noqa: E402
from host.debian import unpacked  # noqa: E402
from protokube.binaries.kubernetes import find  # noqa: E402
from protokube.local.base.paths import Paths  # noqa: E402
from soak import idling  # noqa: E402
from soak.budget import Budget  # noqa: E402

ROUNDS = int(os.environ.get("PROTOKUBE_BENCH_ROUNDS", "10"))
COMMAND = [sys.executable, "-m", "protokube"]
RATIO, GAP = 2.0, 5.0


def byhand() -> dict[str, float]:
    """Seconds that the shell script takes until three members answer, and until a killed one answers elsewhere."""
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
        names = ("quorum", "killed", "attachable", "healthy", "connected")
        at = {name: float((Path(folder) / name).read_text()) for name in names}
    return {
        "quorum": at["quorum"] - began,
        **{name: at[name] - at["killed"] for name in ("attachable", "healthy", "connected")},
    }


@contextmanager
def cluster(kubernetes: str = "none", spec: str = "", **variables: str) -> Iterator[tuple[Paths, float]]:
    """A new cluster, of a spec if there is one, and the seconds that `up` took."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        environment = {
            **os.environ,
            "PROTOKUBE_STATE": folder,
            "PROTOKUBE_ISOLATED": "1",
            "PATH": f"{unpacked('etcd-client')}/usr/bin:{unpacked('etcd-server')}/usr/bin:{os.environ['PATH']}",
            **variables,
        }
        file = Path(folder) / "spec.yaml"
        if spec:
            file.write_text(spec)
        given = [str(file)] if spec else ["--cluster", "bench"]
        began = time.perf_counter()
        up = subprocess.run(
            [*COMMAND, "up", *given, "--kubernetes", kubernetes, "--no-kubelet", "-o", "json"],
            check=True,
            env=environment,
            capture_output=True,
        )
        took = time.perf_counter() - began
        json.loads(up.stdout)
        try:
            yield Paths.at(Path(folder) / "bench"), took
        finally:
            subprocess.run([*COMMAND, "down", "--cluster", "bench"], check=True, env=environment, capture_output=True)
            shutil.rmtree(folder, ignore_errors=True)


def measure_up(byhands: Sequence[dict[str, float]], ours: Sequence[float]) -> bool:
    took, theirs = statistics.median(ours), _median(byhands, "quorum")
    print(f"up to quorum: {took:.2f} s, by hand {theirs:.2f} s; ratio {took / theirs:.2f}, budget {RATIO}", end=" ")
    print(f"(medians of {ROUNDS})")
    return took / theirs <= RATIO


def measure_healing(byhands: Sequence[dict[str, float]]) -> bool:
    """A killed master, measured by the drill, compared with the shell script."""
    with cluster() as (paths, _):
        environment = {**os.environ, "PROTOKUBE_STATE": str(paths.root.parent)}
        command = [*COMMAND, "drill", "kill-master", "-o", "json"]
        verdicts = [
            json.loads(subprocess.run(command, env=environment, capture_output=True, check=True).stdout)
            for _ in range(ROUNDS)
        ]
    dead, attached, healthy, connected = (
        statistics.median(_at(each, words) for each in verdicts)
        for words in (" is dead", " is attached to ", " is healthy on ", "peers are connected")
    )
    gap = statistics.median(each["writes"]["longestGap"] for each in verdicts)
    print(
        f"killed master: dead {dead:.2f} s, volume attached {attached:.2f} s, member healthy {healthy:.2f} s", end=", "
    )
    print(f"peers connected {connected:.2f} s after the kill; longest write gap {gap:.2f} s (medians of {ROUNDS})")
    attachable = _median(byhands, "attachable")
    for what, ours in (("healthy", healthy), ("connected", connected)):
        theirs = _median(byhands, what) - attachable
        print(f"  from attached to {what}: {ours - attached:.2f} s, by hand {theirs:.2f} s", end="; ")
        print(f"ratio {(ours - attached) / theirs:.2f}")
    print("  budgets: 1 s from attached to healthy, 3 s in all with the boot of the new host")
    return healthy <= 3 and healthy - attached <= 1


def measure_api() -> bool:
    """The Kubernetes API through its DNS name, ten requests a second, while a master is killed."""
    found = find(None)
    if found is None:
        print("API during a killed master: not measured, there is no Kubernetes on this machine")
        return True
    with cluster(found.version) as (paths, took):
        environment = {**os.environ, "PROTOKUBE_STATE": str(paths.root.parent)}
        command = [*COMMAND, "drill", "kill-master", "--timeout", "300s", "-o", "json"]
        gaps = [
            json.loads(subprocess.run(command, env=environment, capture_output=True, check=True).stdout)["apiWrites"]
            for _ in range(min(ROUNDS, 5))
        ]
    longest = [float(each["longestGap"]) for each in gaps]
    print(f"up to three API servers of Kubernetes {found.version}: {took:.1f} s")
    print(
        f"API during a killed master: longest gap {max(longest):.2f} s, mostly {statistics.median(longest):.2f} s",
        end="",
    )
    print(f" of {len(longest)} drills; budget {GAP} s; {sum(each['unanswered'] for each in gaps)} without an answer")
    return max(longest) <= GAP


def _median(runs: Sequence[dict[str, float]], what: str) -> float:
    return statistics.median(each[what] for each in runs)


def _at(verdict: dict[str, Any], words: str) -> float:
    return next(float(step["seconds"]) for step in verdict["steps"] if words in step["text"])


def measure_idle() -> bool:
    """An idle agent for a thousand rounds, as the soak measures it."""
    outcome = idling.run(Budget(None))
    for line in outcome.measured:
        print(f"idle: {line}")
    for line in outcome.found:
        print(f"idle: over budget: {line}")
    return not outcome.found


def main() -> bool:
    if os.geteuid() != 0:
        print("local: not measured, needs root")
        return True
    byhands, ours = [], []
    for _ in range(ROUNDS):  # alternating, so that both see the same load on the machine
        byhands.append(byhand())
        with cluster() as (_, took):
            ours.append(took)
    return all([measure_up(byhands, ours), measure_healing(byhands), measure_idle(), measure_api()])


if __name__ == "__main__":
    raise SystemExit(0 if main() else 1)
