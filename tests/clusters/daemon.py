"""A real local cloud in a folder of its own, with its daemon as a process; nothing of it outlives the test."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from builders.volumes import a_volume
from protokube.local.base.paths import Paths
from protokube.local.cloud import cleanup
from protokube.providers.clients.local import LocalClient

SECONDS = 20.0
LISTEN = (
    "import socket, os; s = socket.create_server(('0.0.0.0', 7000)); n = os.uname().nodename.encode()\n"
    "while True:\n"
    "    c, _ = s.accept(); c.sendall(n + b'\\n' + c.recv(1000)); c.close()"
)
"""A program for hosts: says who it is and what it heard, to everybody at port 7000."""


def until(true: Callable[[], Any], seconds: float = SECONDS) -> Any:
    """What it returned, once that is something."""
    end = time.monotonic() + seconds
    while not (found := true()):
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.01)
    return found


class RealCloud:
    """Its daemon, started and killed as a test likes."""

    def __init__(self, root: Path, within: Sequence[str] = ()) -> None:
        """`within`: the beginning of a command that runs the rest of it somewhere else, and becomes it."""
        self.within = within
        self.paths = Paths.at(root)
        self.admin = LocalClient(self.paths.admin_socket)
        self.daemon: subprocess.Popen[bytes] | None = None

    def start(self) -> RealCloud:
        """Until it says that it is ready."""
        command = [*self.within, sys.executable, "-m", "protokube.local.cloud.daemon", str(self.paths.root)]
        process = self.daemon = subprocess.Popen(command, start_new_session=True, stderr=subprocess.DEVNULL)
        until(lambda: process.poll() is not None or self.pid_said() == process.pid)
        assert process.poll() is None, "the daemon ended"
        return self

    def pid_said(self) -> int | None:
        try:
            return int(self.paths.pid_file.read_text())
        except FileNotFoundError:
            return None

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        assert self.daemon is not None
        self.daemon.send_signal(number)
        return self.daemon.wait(SECONDS)

    def group(self, *names: str, size: int = 1, **template: Any) -> list[dict[str, Any]]:
        """Groups of this many hosts each, and all hosts once they run."""
        for name in names:
            self.admin.call("set_group", name=name, size=size, template=template)
        return self.running(*names, count=len(names) * size)

    def running(self, *groups: str, count: int = 1) -> list[dict[str, Any]]:
        """The hosts of these groups, once there are so many and they run."""
        found: list[dict[str, Any]] = until(lambda: self._running(groups, count))
        return found

    def _running(self, groups: tuple[str, ...], count: int) -> list[dict[str, Any]] | None:
        found = [host for host in self.admin.call("hosts") if not host["dead"] and host["group"] in groups]
        return found if len(found) == count and all(host["running"] for host in found) else None

    def volume(self, volume: str) -> dict[str, Any]:
        found: dict[str, Any] = next(each for each in self.admin.call("volumes") if each["id"] == volume)
        return found

    def founder(self, member: str = "a") -> str:
        like = a_volume(member=member)
        told = {"zone": like.zone, "etcd_cluster": "main", "member": member, "members": ["a"], "size": like.size}
        made: str = self.admin.call("create_founders", volumes=[told])[0]["id"]
        return made

    def client(self, host: dict[str, Any]) -> LocalClient:
        return LocalClient(self.paths.host_socket(host["name"]))

    def inside(self, host: dict[str, Any], *command: str) -> subprocess.CompletedProcess[str]:
        """Run something in a host, as if its console had been used."""
        entered = ["nsenter", f"--target={host['pid']}", "--mount", "--net", "--uts", "--pid", "--", *command]
        return subprocess.run(entered, capture_output=True, text=True, cwd="/")

    def python(self, host: dict[str, Any], code: str) -> str:
        ran = self.inside(host, sys.executable, "-c", code)
        assert ran.returncode == 0, ran.stderr
        return ran.stdout.strip()

    def log(self) -> str:
        return self.paths.log.read_text()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if error is not None and self.paths.log.exists():
            sys.stderr.write(self.log())
        if self.daemon is not None and self.daemon.poll() is None and self.paths.root.exists():
            self.end()
        cleanup.remove(self.paths)
        if self.daemon is not None:
            self.daemon.wait(SECONDS)


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
