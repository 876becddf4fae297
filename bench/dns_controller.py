"""The dns-controller on a real API server with many pods, beside the Go original, which it came from.

Both publish the same thousand records, in turn, several times: seconds belong to the machine and its load, ratios do
not. Pods without annotations must not use memory: the zone gets the same records at 2,000 and at 10,000 pods.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import dns_original
from dns_world import ASKING, NODES, ZONE, Filler, Route53, has_account, token

from e2e.real_api import RealApi, real_api, until
from fakes.route53 import ENVIRONMENT
from protokube.binaries.kubernetes import find
from protokube.manifests import kubeconfig

SIZES = ((NODES, 2_000), (1_000, 10_000))
RECORDS = 2 * ASKING
ROUNDS = int(os.environ.get("PROTOKUBE_BENCH_ROUNDS", "3"))
SECONDS, MEGABYTES, GROWTH, CHANGE_SECONDS, PROCESSOR = 3.0, 50.0, 5.0, 1.0, 1.2
TIME_RATIO = 0.5
MEMORY_RATIOS = {2_000: 1.0, 10_000: 0.5}
"""The most that we take, as parts of what the original takes."""
PATIENCE = 60.0
OURS, ORIGINAL = "ours", "the original"


@dataclass(frozen=True, slots=True, kw_only=True)
class Contestant:
    command: Sequence[str]
    environment: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    seconds: float
    """From its start to the last record."""
    far_seconds: float
    processor: float
    """Seconds of CPU until a second after the last record."""
    megabytes: float
    reads: int
    writes: int
    change: float
    change_writes: int


def measure(far: Route53, filler: Filler, contestant: Contestant, log: Path, number: int) -> Measured:
    """Run one process until all records are there, then change the address of one pod."""
    far.empty()
    filler.address(number, 1)
    with log.open("wb") as file:
        began = time.perf_counter()
        process = subprocess.Popen(
            contestant.command, stdout=file, stderr=file, env={**os.environ, **ENVIRONMENT, **contestant.environment}
        )
    try:
        wait(far, lambda: far.names() >= RECORDS, process, log)
        took = time.perf_counter() - began
        writes, far_seconds = far.requests["change"], far.seconds
        reads = far.requests.total() - writes
        time.sleep(1)  # work after the last record counts as well
        processor = processor_seconds(process.pid)
        began = time.perf_counter()
        filler.address(number, 2)
        wait(far, lambda: f"10.0.{number}.2" in far.answers(f"internal-{number}"), process, log)
        change = time.perf_counter() - began
        time.sleep(1)
        return Measured(
            seconds=took, far_seconds=far_seconds, reads=reads, writes=writes, processor=processor,
            megabytes=peak(process.pid), change=change, change_writes=far.requests["change"] - writes,
        )  # fmt: skip
    finally:
        process.terminate()
        process.wait(20)


def wait(far: Route53, so: Callable[[], bool], process: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + PATIENCE
    while not far.wait(so, 0.5):
        if process.poll() is not None or time.monotonic() > end:
            raise RuntimeError(f"the expected state was not reached:\n{log.read_text()[-2000:]}")


def peak(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise AssertionError("no VmHWM")


def processor_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def contestants(work: Path, real: RealApi, far: Route53, program: Path | None) -> dict[str, Contestant]:
    login = work / "kubeconfig"
    keys = {"ca": "ca.crt", "certificate": "protokube.crt", "key": "protokube.key"}
    paths = {name: str(real.keys / key) for name, key in keys.items()}
    login.write_text(kubeconfig.by_files("bench", real.server, "protokube", **paths))
    words = ["--dns=route53", f"--endpoint={far.url}", f"--zone={ZONE}", f"--kubeconfig={login}", "--metrics="]
    # an installed package is compiled, a checkout need not be: ours keeps what its first start compiles
    compiled = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(work / "compiled")}
    command = [sys.executable, "-m", "protokube", "dns-controller", *words]
    found = {OURS: Contestant(command=command, environment=compiled)}
    if program is None:
        return found
    account = dns_original.account(work / "account", real.keys / "ca.crt", token(real))
    found[ORIGINAL] = Contestant(
        command=dns_original.command(program, account, ZONE), environment=dns_original.environment(real.server, far.url)
    )
    return found


def run(work: Path) -> bool:
    results: list[bool] = []
    ours: dict[int, Measured] = {}
    program, why = dns_original.program()  # it may take minutes, and an API server hangs up on idle clients
    if program is None:
        print(f"dns-controller: the original is not measured: {why}")
    with real_api(work, controllers=False) as real, Route53() as far:
        until(lambda: has_account(real), "the namespace is there, with an account for its pods")
        every = contestants(work, real, far, program)
        filler, nodes_before, pods_before = Filler(real), 0, 0
        for nodes, pods in SIZES:
            filler.fill(range(nodes_before, nodes), range(pods_before, pods))
            nodes_before, pods_before = nodes, pods
            runs: dict[str, list[Measured]] = {name: [] for name in every}
            for number in range(1 + ROUNDS):
                for name, contestant in every.items():
                    runs[name].append(measure(far, filler, contestant, work / "log", number))
            runs = {name: found[1:] for name, found in runs.items()}  # in the first, files are read from disk
            found = {name: merged(each) for name, each in runs.items()}
            print(f"dns-controller, {nodes} nodes and {pods} pods, {RECORDS} records, medians of {ROUNDS}:")
            for name in every:
                print(summary(name, found[name], runs[name]))
            results.append(judge(pods, found))
            ours[pods] = found[OURS]
    return all([*results, grows_little(ours)])


def merged(runs: Sequence[Measured]) -> Measured:
    """Medians, but the worst memory and write counts: only times suffer from other load on the machine."""
    middle = sorted(runs, key=lambda each: each.seconds)[len(runs) // 2]
    return Measured(
        seconds=middle.seconds, far_seconds=middle.far_seconds, reads=middle.reads, writes=middle.writes,
        processor=statistics.median(each.processor for each in runs),
        megabytes=max(each.megabytes for each in runs),
        change=statistics.median(each.change for each in runs),
        change_writes=max(each.change_writes for each in runs),
    )  # fmt: skip


def summary(name: str, found: Measured, runs: Sequence[Measured]) -> str:
    quick, slow = min(each.seconds for each in runs), max(each.seconds for each in runs)
    return (
        f"  {name + ':':14}{found.seconds:.2f} s after its start ({quick:.2f} to {slow:.2f}, "
        f"{found.far_seconds:.2f} inside moto), {found.processor:.2f} s of CPU, peak {found.megabytes:.1f} MB; "
        f"{found.reads} reads, {found.writes} writes; one pod moves: {found.change:.2f} s, {found.change_writes} write"
    )


def judge(pods: int, found: Mapping[str, Measured]) -> bool:
    """By ratios where the original is here; else by budgets, for two otherwise idle cores."""
    ours, original = found[OURS], found.get(ORIGINAL)
    if original is None:
        print(f"  budgets: {SECONDS:g} s, {MEGABYTES:g} MB, {PROCESSOR:g} s of CPU; {CHANGE_SECONDS:g} s and 1 write")
        good = ours.seconds <= SECONDS and ours.megabytes <= MEGABYTES
    else:
        time_ratio, memory_ratio = ours.seconds / original.seconds, ours.megabytes / original.megabytes
        print(
            f"  ratios: time {time_ratio:.2f}, budget {TIME_RATIO:g}; memory {memory_ratio:.2f}, budget "
            f"{MEMORY_RATIOS[pods]:g}; CPU {ours.processor / original.processor:.1f}, and {ours.processor:.2f} s of "
            f"{PROCESSOR:g}; one move {ours.change / original.change:.2f} (load {os.getloadavg()[0]:.1f})"
        )
        good = time_ratio <= TIME_RATIO and memory_ratio <= MEMORY_RATIOS[pods]
    return good and ours.processor <= PROCESSOR and ours.change <= CHANGE_SECONDS and ours.change_writes == 1


def grows_little(ours: Mapping[int, Measured]) -> bool:
    (_, fewest), (_, most) = SIZES
    growth = ours[most].megabytes - ours[fewest].megabytes
    print(f"  from {fewest} to {most} pods our peak grows by {growth:.1f} MB, budget {GROWTH:g}", end="; ")
    print(f"our time by {ours[most].seconds / ours[fewest].seconds:.2f} x")
    return growth <= GROWTH


def main() -> bool:
    if find(None) is None:
        print("dns-controller: not measured, there is no Kubernetes on this machine")
        return True
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        return run(Path(folder))


if __name__ == "__main__":
    raise SystemExit(0 if main() else 1)
