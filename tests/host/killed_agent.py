"""Agents that die at a step of their own choosing, one after the other, on one machine.

This is a program of its own, started in a mount namespace that is the machine: what an agent mounted stays mounted when
it dies. It reads orders, one JSON object a line, and for each of them forks an agent that does real rounds against real
edges. The edges are only listened to: every step is written down before it is taken and after it was, and so is every
file below the machine's root that is about to be written. At the step that the order names, the agent kills itself.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from protokube.agent.edges import Edges, NoAgreementWatch
from protokube.agent.status import snapshot
from protokube.agent.sync import run_round
from protokube.etcd.client import GatewayEtcd
from protokube.host import Device, Job
from protokube.host.disks import HostDisks
from protokube.host.superblock import ext4_uuid
from protokube.launch.machine import from_tree
from protokube.local.disk import loops
from protokube.providers.clients.local import LocalClient
from protokube.providers.dns.memory import MemoryDns
from protokube.providers.machines.local import LocalMachines
from protokube.providers.volumes.local import LocalVolumes
from protokube.store.open import open_store

Step = Callable[[str], None]
CHANGES = ("attach", "write_mark", "write_epoch", "create_volume", "replace", "create", "apply")
"""Calls of edges that change something; the others are not steps."""


class Steps:
    """Writes down each step, and kills the agent at the one that was ordered."""

    def __init__(self, order: dict[str, Any]) -> None:
        self._log = os.open(order["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._order = order
        self._root = f"{order['root']}/"

    def __call__(self, name: str) -> None:
        os.write(self._log, f"{name}\n".encode())
        if name == self._order.get("kill"):
            time.sleep(self._order.get("delay", 0))
            if self._order.get("children"):
                end_children()
            os.kill(os.getpid(), signal.SIGKILL)

    def listen(self, event: str, arguments: tuple[Any, ...]) -> None:
        """What Python is about to do to files of the machine."""
        if event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR):
            self._about("write", arguments[0])
        elif event in ("os.rename", "os.symlink"):
            self._about(event.removeprefix("os."), arguments[1])

    def _about(self, what: str, path: object) -> None:
        name = os.fsdecode(path) if isinstance(path, str | bytes | os.PathLike) else ""
        if name.startswith(self._root):
            file = re.sub(r"^\.(.*)\.[0-9a-f]{16}$", r"draft of \1", Path(name).name)
            if "/run/protokube/verified/" in name:  # named after the volume, whose name nobody knows before
                file = re.sub(r"vol-[0-9a-f]+$", "the note that it is verified", file)
            self(f"{what} {file}{' on the volume' if '/mnt/' in name else ''}")


def end_children() -> None:
    """As when the power fails: whatever works for the agent dies with it."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if int((folder / "stat").read_text().rpartition(")")[2].split()[1]) == os.getpid():
                os.killpg(int(folder.name), signal.SIGKILL)
        except (OSError, IndexError):
            continue


class Listened:
    """An edge as it is, with a step before and after whatever changes something."""

    def __init__(self, edge: Any, step: Step) -> None:
        self._edge, self._step = edge, step

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._edge, name)
        if name not in CHANGES:
            return found

        def call(*arguments: Any, **named: Any) -> Any:
            about = f"{name} {arguments[1].partition(':')[0]}" if name == "write_mark" else name
            self._step(f"before {about}")
            result = found(*arguments, **named)
            self._step(f"after {about}")
            return result

        return call


class Volumes(LocalVolumes):
    """The provider as it is; its hosts are this machine, which knows disks by other names."""

    def __init__(self, client: LocalClient, images: Path, told: dict[str, str] | None) -> None:
        super().__init__(client)
        self.images, self.told = images, told

    def device(self, volume: str) -> Device:
        device = super().device(volume)
        if self.told is not None:
            return Device(path=Path(self.told["path"]), serial=self.told.get("serial"))
        bound = loops.bound(self.images / f"{volume}.img")
        return replace(device, path=bound[0].path if bound else device.path)


class Disks(HostDisks):
    """With a step when a job has begun, and when its end is known."""

    def __init__(self, step: Step, on_done: Callable[[], None]) -> None:
        super().__init__(on_done=on_done)
        self._step = step

    def run(self, job: Job) -> Any:
        known = any(job == each for each, _ in self.running())
        result = super().run(job)
        if result is not None:
            self._step(f"{type(job).__name__} ended: {type(result).__name__}")
        elif not known:
            self._step(f"{type(job).__name__} begun")
        return result


class SystemClock:
    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()


class Nothing:
    """Keys, units and presence of a machine on which nothing but disks is of interest."""

    def sync(self, names: Sequence[str]) -> Sequence[str]:
        return ()

    def sync_shared(self) -> Sequence[str]:
        return ()

    def give(self, component: str, names: Sequence[str]) -> Sequence[str]:
        return ()

    def ensure_started(self, unit: str) -> bool:
        return False

    def running_for(self, unit: str) -> None:
        return None

    def restart(self, unit: str) -> None:
        return None

    def live(self) -> None:
        return None

    def read_at(self) -> None:
        return None

    def addresses(self) -> None:
        return None

    def serving(self) -> None:
        return None

    def revisions(self) -> None:
        return None

    def rollout_hint(self) -> None:
        return None

    def elected(self) -> bool:
        return False

    def may_restart_api_server(self) -> bool:
        return False

    def retire(self) -> None:
        return None


def live(order: dict[str, Any]) -> dict[str, Any]:
    """Rounds until the manifest is linked, a person is wanted, or the time is up; the last one, as data."""
    wanted, wake = from_tree(order["master"]), threading.Event()
    steps = Steps(order)
    sys.addaudithook(steps.listen)
    client, nothing = LocalClient(Path(order["socket"])), Nothing()
    nobody = {each.key: GatewayEtcd({m.name: "http://127.0.0.1:1" for m in each.members}) for each in wanted.etcd}
    edges = Edges(
        me=LocalMachines(client).me(), clock=SystemClock(), machines=LocalMachines(client),
        volumes=Listened(Volumes(client, Path(order["images"]), order.get("device")), steps),
        dns=Listened(MemoryDns(order["zone"]), steps), disks=Disks(steps, wake.set), units=nothing,
        store=Listened(open_store(order["store"]), steps), etcd=nobody, keys=nothing, presence=nothing,
        root=Path(order["root"]), uuid_of=lambda block: ext4_uuid(block.number), new_nonce=new_nonce,
        agreement=NoAgreementWatch(),
    )  # fmt: skip
    end = time.monotonic() + order["seconds"]
    number = 0
    while True:
        wake.clear()
        number += 1
        told = snapshot(run_round(edges, wanted), number=number, took=0, pause=0)
        linked = any(member["linked"] for member in told["members"])
        if linked or told["report"]["needsAPerson"] or time.monotonic() > end:
            return told
        wake.wait(0.2)


def new_nonce() -> str:
    import uuid

    return str(uuid.uuid4())


def main() -> None:
    for line in sys.stdin:
        order = json.loads(line)
        child = os.fork()
        if child == 0:
            Path(order["result"]).write_text(json.dumps(live(order)))
            os._exit(0)
        _, status = os.waitpid(child, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
