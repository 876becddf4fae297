"""A first `up` that is killed on its way, as soon as it has said that a step is done, or a moment later."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress

from builders.command import COMMAND, environment
from clusters.machine_census import Census
from clusters.real import RealCluster

OPTIONS = ("--kubernetes", "none")
STEPS = (
    "this machine has", "no Kubernetes", "etcd ", "complete configuration", "state in", "the local cloud", "hosts are",
    "3 disks", "3 hosts", "quorum",
)  # fmt: skip
"""A word of the line of each step, in their order; `ready` is the last one, and the end."""


def command_alone(_: RealCluster, up: subprocess.Popen[str]) -> None:
    """As by Ctrl-C twice, or a terminal that is closed."""
    os.killpg(up.pid, signal.SIGKILL)


def with_daemon(cluster: RealCluster, up: subprocess.Popen[str]) -> None:
    """And the daemon, while it starts hosts; those that run go on."""
    os.killpg(up.pid, signal.SIGKILL)
    with suppress(OSError, ValueError):
        os.kill(int(cluster.paths.pid_file.read_text()), signal.SIGKILL)


def everything(cluster: RealCluster, up: subprocess.Popen[str]) -> None:
    """As a power loss does."""
    os.killpg(up.pid, signal.SIGKILL)
    for pid, _ in Census.of(cluster.paths).processes:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


Kill = Callable[[RealCluster, "subprocess.Popen[str]"], None]
KILLS: dict[str, Kill] = {"command": command_alone, "daemon": with_daemon, "everything": everything}


def interrupted_up(cluster: RealCluster, step: str, delay: float, kill: Kill, *options: str) -> bool:
    """Begin the first `up`, and kill it `delay` seconds after this step; whether it had not come to its end before."""
    command = [*COMMAND, "up", "--cluster", cluster.name, *OPTIONS, *options]
    env = environment(PROTOKUBE_STATE=str(cluster.state))
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=env, text=True, start_new_session=True
    ) as up:
        assert up.stderr is not None
        said = ""
        for line in up.stderr:
            said += line
            if step in line:
                break
        else:
            raise AssertionError(f"it never came to {step!r}: {said}")
        time.sleep(delay)
        kill(cluster, up)
    return up.returncode == -signal.SIGKILL


def goes_on(cluster: RealCluster, *options: str) -> None:
    """The next `up` works, and everything it says is there is there."""
    said = cluster.run("up", "--cluster", cluster.name, "--timeout", "3m", *OPTIONS, *options)
    assert said.code == 0, said.err
    cluster.until_ready()


def goes_away(cluster: RealCluster) -> None:
    """The next `down` works, or has nothing to do, and nothing is left."""
    census = Census.of(cluster.paths)
    said = cluster.run("down", "--cluster", cluster.name)
    assert said.code == 0 or "there is no local cluster" in said.err, said.err
    census.nothing_is_left()
