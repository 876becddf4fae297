"""From `up` to three Ready nodes: beside a script that starts the same processes, and beside hosts without kubelets.

The script (`byhand/nodes.sh`) has the same containerd, kubelets and static pods, from the same unpacked images
and waits for the same ranges of pod addresses. It has no agents, names, disks or replacements.

Seconds belong to the machine and to what else runs on it; judge by the ratios and by the processor time. Programs and
images are in the cache: the first `up` of a version prepares the images, and is printed apart.
"""

from __future__ import annotations

import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from protokube.binaries import executables
from protokube.binaries.etcd import ETCD
from protokube.binaries.kubernetes import find
from protokube.local.base.paths import Paths
from protokube.local.bringup import CACHE
from protokube.local.host import leftovers
from protokube.local.node import imported, prepared

HERE = Path(__file__).resolve().parent
ROUNDS = int(os.environ.get("PROTOKUBE_BENCH_ROUNDS", "3"))
COMMAND = [sys.executable, "-m", "protokube"]
NAME = "first-run"
RATIO = 2.0
BUDGET = {"quorum": 10.0, "ready": 30.0, "healed": 8.0}
"""Seconds on two cores that have nothing else to do."""
STEP = re.compile(r"^ *\u2713 +(.*\S) +([0-9.]+) s$", re.MULTILINE)
PROGRAMS = {
    "RUNTIME": {"containerd": "usr/bin", "runc": "usr/sbin"},
    "PLUGINS": {"containernetworking-plugins": "usr/lib/cni"},
}
IMAGES = {
    "PAUSE": "pause", "ETCD": "etcd", "APISERVER": "kube-apiserver", "MANAGER": "kube-controller-manager",
    "SCHEDULER": "kube-scheduler", "PROXY": "kube-proxy",
}  # fmt: skip
PUBLISHED = {"minikube 1.26.1": (29.5, 56.8), "kind 0.14.0": (21.0, 46.6), "k3d 5.4.4": (14.7, 33.2)}
"""Seconds that the time-to-k8s benchmark of minikube publishes: the command; all, until an app and DNS answer."""
Times = Mapping[str, float]


def byhand(kubernetes: Path, etcd: Path) -> Times:
    """Seconds until etcd's members answer and until three nodes are Ready, and the processor time of all of it."""
    folders = {
        name: os.pathsep.join(str(executables.unpack(package, CACHE) / inside) for package, inside in packages.items())
        for name, packages in PROGRAMS.items()
    }
    # the root that the last `up` has used; on the same file system, since the script makes hard links to it
    root = max((CACHE / "images" / imported.FOLDER).glob("[!.]*"), key=lambda each: each.stat().st_mtime)
    names = {
        f"IMAGE_{variable}": next(each for each in prepared.images(root) if f"/{name}:" in each)
        for variable, name in IMAGES.items()
    }
    with tempfile.TemporaryDirectory(dir=CACHE) as folder:
        environment = {**os.environ, "KUBERNETES": str(kubernetes), "ETCD": str(etcd), "IMAGES": str(root)}
        environment |= folders | names
        began = time.time()
        subprocess.run([HERE / "byhand" / "nodes.sh", folder], check=True, env=environment, timeout=300)
        at = {name: float((Path(folder) / name).read_text()) - began for name in ("quorum", "ready")}
        ticks = int((Path(folder) / "ticks").read_text())
    return {**at, "cpu": ticks / os.sysconf("SC_CLK_TCK")}


@contextmanager
def cluster(options: Sequence[str]) -> Iterator[tuple[Paths, dict[str, str], dict[str, float]]]:
    """A new cluster, its environment, and by step the seconds since `up` began."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        environment = {**os.environ, "PROTOKUBE_STATE": folder, "PROTOKUBE_ISOLATED": "1", "PROTOKUBE_KUBECONFIG": "0"}
        command = [*COMMAND, "up", "--cluster", NAME, *options, "--timeout", "400s"]
        try:
            ran = subprocess.run(command, env=environment, capture_output=True, text=True)
            assert ran.returncode == 0, ran.stderr
            yield Paths.at(Path(folder) / NAME), environment, steps(ran.stdout + ran.stderr)
        finally:
            subprocess.run([*COMMAND, "down", "--cluster", NAME], check=True, env=environment, capture_output=True)


def steps(said: str) -> dict[str, float]:
    """When each step of `up` was done."""
    found: dict[str, float] = {}
    total = 0.0
    for what, seconds in STEP.findall(said):
        total += float(seconds)
        found[next((name for name in ("quorum", "healthy members", "nodes ready") if name in what), what)] = total
    return found


def ours(options: Sequence[str]) -> Times:
    """Seconds of `up` and of a healed member, and the processor time of all processes of the hosts until `up` ended."""
    with cluster(options) as (paths, environment, at):
        used = sum(tree(pid) for pid in leftovers.inits(paths).values())
        command = [*COMMAND, "drill", "kill-master", "--cluster", NAME, "--timeout", "300s", "-o", "json"]
        ran = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert ran.returncode == 0, ran.stderr + ran.stdout
        told = json.loads(ran.stdout)["steps"]
    healed = next(float(each["seconds"]) for each in told if " is healthy on " in each["text"])
    ready = at.get("nodes ready", at["healthy members"])
    return {"quorum": at["quorum"], "ready": ready, "healed": healed, "cpu": used}


def tree(pid: int) -> float:
    """Processor time of a process and of its descendants, those that ended included."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        inside = [file.read_text().split() for file in Path(f"/proc/{pid}/task").glob("*/children")]
    except OSError:  # it has ended
        return 0.0
    own = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    return own + sum(tree(int(child)) for each in inside for child in each)


def median(runs: Sequence[Times], what: str) -> float:
    return statistics.median(each[what] for each in runs)


def report(scripts: Sequence[Times], nodes: Sequence[Times], plain: Sequence[Times]) -> bool:
    ratio = median(nodes, "ready") / median(scripts, "ready")
    print(
        f"up to three Ready nodes: {median(nodes, 'ready'):.1f} s, by hand {median(scripts, 'ready'):.1f} s", end="; "
    )
    print(f"ratio {ratio:.2f}, budget {RATIO:g} (medians of {ROUNDS})")
    print(f"  processor time: {median(nodes, 'cpu'):.1f} s, by hand {median(scripts, 'cpu'):.1f} s")
    for name, (command, whole) in PUBLISHED.items():
        print(f"  published: {name}, one node: {command:g} s, {whole:g} s until an app runs and DNS answers")
    fine = ratio <= RATIO
    for what, told in (("quorum", "quorum"), ("ready", "all ready"), ("healed", "member healthy after a kill")):
        real, without, budget = median(nodes, what), median(plain, what), BUDGET[what]
        print(f"  {told}: {real:.1f} s, without kubelets {without:.1f} s; ratio {real / without:.2f}", end="; ")
        print(f"budget {budget:g} s on two quiet cores")
        fine &= real <= budget
    print(f"  processor time of the hosts: {median(nodes, 'cpu'):.1f} s, without kubelets {median(plain, 'cpu'):.1f} s")
    return fine


def main() -> bool:
    kubernetes, etcd = find(None, CACHE), ETCD.find(None, CACHE)
    if os.geteuid() != 0 or kubernetes is None or etcd is None or "kubelet" not in kubernetes.programs:
        print("first run: not measured, needs root, and Kubernetes and etcd in the cache")
        return True
    usage = subprocess.run([*COMMAND, "up", "--help"], capture_output=True, text=True, check=True).stdout
    release = ["--kubernetes", kubernetes.version]
    kubelets, without = [*release, "--kubelet"], [*release, *(["--no-kubelet"] if "--no-kubelet" in usage else [])]
    with cluster(kubelets) as (_, _, at):
        print(f"first run: {at['nodes ready']:.1f} s with the images to prepare, if the cache did not have them")
    scripts, nodes, plain = [], [], []
    for _ in range(ROUNDS):  # alternating, so that all see the same load on the machine
        scripts.append(byhand(kubernetes.folder, etcd.folder))
        nodes.append(ours(kubelets))
        plain.append(ours(without))
    return report(scripts, nodes, plain)


if __name__ == "__main__":
    raise SystemExit(0 if main() else 1)
