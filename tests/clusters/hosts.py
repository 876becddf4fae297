"""Real hosts for tests: a switch and folders of their own, gone afterwards whatever happened."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from protokube.local.host import hosts, network
from protokube.local.host.hosts import HostSpec

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
IDLE = ("sleep", "1000")
Seen = TypeVar("Seen")


def eventually(look: Callable[[], Seen | None], seconds: float = 30.0) -> Seen:
    """What `look` sees, once that is true; it may fail until then."""
    deadline = time.monotonic() + seconds
    while True:
        late = time.monotonic() > deadline
        try:
            if (seen := look()) or late:
                assert seen, f"not within {seconds} seconds"
                return seen
        except (OSError, ValueError, KeyError, IndexError, subprocess.SubprocessError):
            if late:
                raise
        time.sleep(0.005)


@dataclass
class Host:
    """A host that was started, seen from outside."""

    spec: HostSpec
    pid: int

    def run(self, *command: str, check: bool = True, **more: Any) -> subprocess.CompletedProcess[str]:
        """Run a command inside, to its end."""
        return subprocess.run(self.enter(*command), capture_output=True, text=True, timeout=20, check=check, **more)

    def enter(self, *command: str) -> list[str]:
        spaces = ["nsenter", f"--target={self.pid}", "--mount", "--uts", "--net", "--pid", "--root", "--wd=/"]
        return [*spaces, "env", f"PATH={PATH}", *command]

    def start(self, *command: str) -> subprocess.Popen[str]:
        return subprocess.Popen(self.enter(*command), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)

    def python(self, code: str, *arguments: str) -> str:
        """What a little program says that runs inside."""
        return self.run(sys.executable, "-I", "-c", code, *arguments).stdout.strip()

    def outside(self, path: str) -> Path:
        """Where a path of the host lies on the machine."""
        return self.spec.folder / path.lstrip("/")

    def pods(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.outside("/run/protokube/pods.json").read_text())
        return found

    def container(self, pod: str, name: str = "main") -> dict[str, Any]:
        found: dict[str, Any] = self.pods()["pods"][f"default/{pod}"]["containers"][name]
        return found

    def write_manifest(self, file: str, pod: Mapping[str, Any]) -> None:
        """Appear as a whole, as any careful writer has it."""
        folder = self.outside("/etc/kubernetes/manifests")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f".{file}").write_text(json.dumps(pod))
        (folder / f".{file}").rename(folder / file)


@dataclass
class Cloud:
    """A switch and the hosts on it."""

    root: Path
    switch: str
    hosts: list[Host] = field(default_factory=list)

    def spec(self, name: str, number: int, **more: Any) -> HostSpec:
        given: dict[str, Any] = {
            "name": name,
            "folder": self.root / "hosts" / name,
            "address": f"10.77.0.{number}",
            "switch": self.switch,
            "state": self.root,
            "store": self.root / "store",
            "units": {},
            "startable": {"kubelet.service": []},
            "path": PATH,
            "environment": {},
        }
        return HostSpec(**{**given, **more})

    def start(self, name: str, number: int, **more: Any) -> Host:
        spec = self.spec(name, number, **more)
        host = Host(spec, hosts.start(spec))
        self.hosts.append(host)
        return host


def fast_folder() -> str:
    """Where to keep what a test writes: in memory where there is enough, since other tests keep the disk busy."""
    memory = Path("/dev/shm")
    return str(memory) if memory.is_dir() and shutil.disk_usage(memory).free > 1 << 30 else tempfile.gettempdir()


@contextmanager
def a_cloud(parent: str = "") -> Iterator[Cloud]:
    """In a folder with a short name: the paths of sockets end at 108 characters."""
    root = Path(tempfile.mkdtemp(prefix="pk-", dir=parent or fast_folder()))
    (root / "store").mkdir()
    cloud = Cloud(root, f"pk-t{secrets.token_hex(4)}")
    try:
        network.make_switch(cloud.switch)
        yield cloud
    finally:
        for host in cloud.hosts:
            if hosts.running(host.spec.folder):
                hosts.kill(host.pid)
        network.remove_switch(cloud.switch)
        shutil.rmtree(root)


def a_pod(name: str, command: Sequence[str] = IDLE, **container: Any) -> dict[str, Any]:
    """A static pod; `spec` adds to the pod, anything else to its one container."""
    spec: dict[str, Any] = {"hostNetwork": True, "terminationGracePeriodSeconds": 0, **container.pop("spec", {})}
    main = {"name": "main", "command": list(command), **container}
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {**spec, "containers": [main]}}


def a_volume(path: str, kind: str = "") -> dict[str, Any]:
    return {"volumes": [{"name": "data", "hostPath": {"path": path, "type": kind}}]}


def at(path: str, **more: Any) -> list[dict[str, Any]]:
    return [{"name": "data", "mountPath": path, **more}]


@contextmanager
def a_loop_device(size: int = 16 << 20) -> Iterator[tuple[Path, tuple[int, int]]]:
    """A device over a file, and its number."""
    with tempfile.NamedTemporaryFile(prefix="pk-disk-", dir=fast_folder()) as image:
        image.truncate(size)
        found = subprocess.run(["losetup", "--find", "--show", image.name], capture_output=True, text=True, check=True)
        device = Path(found.stdout.strip())
        try:
            status = device.stat()
            yield device, (os.major(status.st_rdev), os.minor(status.st_rdev))
        finally:
            subprocess.run(["losetup", "--detach", device], capture_output=True, check=False)


def is_mounted_anywhere(number: tuple[int, int]) -> bool:
    """Whether the mount table of any process shows a device."""
    return _in_any_mount_table(f" {number[0]}:{number[1]} ")


def is_mounted_from(folder: Path) -> bool:
    """Whether the mount table of any process shows something of a host's folder; paths there begin at a file system."""
    return _in_any_mount_table(f"/{'/'.join(folder.parts[-3:])}/")


def _in_any_mount_table(wanted: str) -> bool:
    for table in Path("/proc").glob("[0-9]*/mountinfo"):
        try:
            if wanted in table.read_text():
                return True
        except OSError:
            continue
    return False


def can_connect(host: Host, address: str, port: int, seconds: float = 1.0) -> bool:
    code = "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), float(sys.argv[3]))"
    command = (sys.executable, "-I", "-c", code, address, str(port), str(seconds))
    return host.run(*command, check=False).returncode == 0


LISTEN = """
import socket
server = socket.create_server(("0.0.0.0", 7000))
while True:
    client, _ = server.accept()
    client.sendall(socket.gethostname().encode())
    client.close()
"""
LISTENING = (sys.executable, "-I", "-c", LISTEN)
"""A unit that tells everybody on port 7000 where it runs."""


def who_answers(host: Host, *addresses: str) -> str:
    """Who answers a host at each of these addresses."""
    code = "print(*(socket.create_connection((place, 7000), 5).recv(99).decode() for place in sys.argv[1:]))"
    return host.python(f"import socket, sys; {code}", *addresses)
