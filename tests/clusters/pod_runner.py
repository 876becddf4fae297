"""A pod runner as a process of this machine, over folders of its own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from clusters.hosts import a_pod, eventually, fast_folder


class Runner:
    """A pod runner over folders of its own."""

    def __init__(self, root: Path) -> None:
        self.root, self.manifests, self.logs = root, root / "manifests", root / "logs"
        self.manifests.mkdir()
        command = [sys.executable, "-m", "protokube.local.pods.runner"]
        command += [str(self.manifests), str(root / "pods.json"), str(self.logs)]
        with (root / "runner.log").open("wb") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def write(self, pod: Mapping[str, Any], file: str = "") -> None:
        name = file or f"{pod['metadata']['name']}.json"
        (self.manifests / f".{name}").write_text(json.dumps(pod))
        (self.manifests / f".{name}").rename(self.manifests / name)

    def told(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.root / "pods.json").read_text())
        return found

    def container(self, pod: str, name: str = "main") -> dict[str, Any]:
        found: dict[str, Any] = self.told()["pods"][f"default/{pod}"]["containers"][name]
        return found

    def log(self, pod: str, name: str = "main") -> str:
        return (self.logs / f"default_{pod}" / f"{name}.log").read_text()

    def runs(self, pod: str) -> dict[str, Any]:
        """The container, once it runs."""
        return eventually(lambda: seen if (seen := self.container(pod))["state"] == "running" else None)

    def gone(self, pod: str) -> bool:
        return f"default/{pod}" not in self.told()["pods"]

    def handles(self) -> int:
        return len(list(Path(f"/proc/{self.process.pid}/fd").iterdir()))


@contextmanager
def a_runner() -> Iterator[Runner]:
    root = Path(tempfile.mkdtemp(prefix="pk-pods-", dir=fast_folder()))
    made = Runner(root)
    try:
        yield made
    finally:
        made.process.terminate()
        made.process.wait(10)
        shutil.rmtree(root)


def show(runner: Runner, name: str, command: str, **container: Any) -> str:
    """What a container of this kind prints."""
    runner.write(a_pod(name, ["sh", "-c", f"{command}; echo end; exec sleep 1000"], **container))
    shown = eventually(lambda: log if (log := runner.log(name)).endswith("end\n") else None)
    (runner.manifests / f"{name}.json").unlink()
    return shown.removesuffix("end\n")


def a_long_time(number: int) -> str:
    """Seconds that no other `sleep` of this machine was told."""
    return f"{1_000_000 + os.getpid()}.{number}"


def sleepers(seconds: str) -> list[int]:
    """Every process that sleeps for exactly so long."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "cmdline").read_bytes() == f"sleep\0{seconds}\0".encode():
                found.append(int(process.name))
        except OSError:
            continue
    return found
