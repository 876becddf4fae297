"""Agents that take a volume, one life after the other, on a real local cloud and real loop devices."""

from __future__ import annotations

import itertools
import json
import struct
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from clusters.disks import wait_until
from clusters.local import CloudWithoutHosts
from protokube.config.complete import complete
from protokube.launch import prepare
from protokube.launch.derive import from_config
from protokube.launch.machine import EtcdCluster, MasterConfig, to_tree
from protokube.local import bringup
from protokube.members.identity import FILE, Identity, decode
from protokube.providers.volumes import Volume
from protokube.providers.volumes.local import LocalVolumePool, decode_volume
from protokube.spec.parse import parse
from protokube.store.open import open_store

PROGRAM = Path(__file__).parents[1] / "host" / "killed_agent.py"
SIZE = 16 << 20
SECONDS = 40.0
SPEC = """
apiVersion: protokube.io/v1alpha1
kind: Cluster
metadata: {name: steps}
spec: {cloud: local, masters: 1, etcdClusters: [{name: main}]}
"""


@dataclass(frozen=True)
class Life:
    """What became of one agent."""

    code: int
    steps: list[str]
    told: dict[str, Any]
    """Its last round; nothing, if it was killed."""

    @property
    def formats(self) -> int:
        return self.steps.count("Format ended: Done")

    @property
    def person(self) -> str:
        return "; ".join(f"{note['text']} ({note.get('hint', '')})" for note in self.told["report"]["needsAPerson"])

    @property
    def waits(self) -> str:
        return "; ".join(note["text"] for note in self.told["report"]["waiting"])


class Place:
    """A real local cloud, and one mount namespace that is the machine for whoever the cloud takes for one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cloud = CloudWithoutHosts(folder / "cloud")
        self.store = open_store(f"file://{self.cloud.paths.store}")
        self.wanted = from_config(complete(parse([("spec.yaml", SPEC)])), kubernetes=False)
        self.numbers = itertools.count(1)
        command = ["unshare", "--mount", "--propagation", "private", sys.executable, str(PROGRAM)]
        self.program = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def new_volume(self, *, recorded: bool = True) -> Task:
        """The only founder of an etcd cluster of its own."""
        etcd = self.wanted.etcd[0]
        member = replace(etcd.members[0], size=SIZE)
        own = replace(etcd, key=f"main-{next(self.numbers)}", members=(member,))
        wanted = replace(self.wanted, etcd=(own,))
        (volume,) = prepare.create_founders(LocalVolumePool(self.cloud.admin), wanted, bringup.ZONE)
        if recorded:
            prepare.record_generation(self.store, wanted.cluster, own, [volume])
        return Task(self, self.cloud.add_machine(), own, wanted, volume)

    def run(self, order: dict[str, Any]) -> int:
        assert self.program.stdin is not None
        assert self.program.stdout is not None
        self.program.stdin.write(json.dumps(order) + "\n")
        self.program.stdin.flush()
        return int(self.program.stdout.readline())

    def close(self) -> None:
        """With the program goes its mount namespace, and with that every mount."""
        for stream in (self.program.stdin, self.program.stdout):
            assert stream is not None
            stream.close()
        self.program.kill()
        self.program.wait()


@dataclass(frozen=True)
class Task:
    """A volume that agents are to take, one after the other, on one machine."""

    place: Place
    name: str
    """Of the machine."""
    etcd: EtcdCluster
    wanted: MasterConfig
    volume: Volume

    @property
    def image(self) -> Path:
        return self.place.cloud.paths.image(self.volume.id)

    @property
    def root(self) -> Path:
        """One for each task, so that links of others are not in the way."""
        return self.place.folder / "roots" / self.etcd.key

    @property
    def point(self) -> Path:
        return self.root / "mnt" / f"master-{self.volume.id}"

    def agent(self, seconds: float = SECONDS, **more: Any) -> Life:
        """One life, to its end."""
        self.root.mkdir(parents=True, exist_ok=True)
        log, result = (self.place.folder / f"{self.etcd.key}.{name}" for name in ("steps", "result"))
        for file in (log, result):
            file.unlink(missing_ok=True)
        cloud = self.place.cloud
        code = self.place.run(
            {
                "master": to_tree(self.wanted), "socket": str(cloud.paths.host_socket(self.name)),
                "store": f"file://{cloud.paths.store}", "images": str(cloud.paths.disks), "root": str(self.root),
                "zone": "steps", "log": str(log), "result": str(result), "seconds": seconds, **more,
            }
        )  # fmt: skip
        told = json.loads(result.read_text()) if result.exists() else {}
        return Life(code, log.read_text().splitlines(), told)

    def listed(self) -> Volume:
        (found,) = [told for told in self.place.cloud.admin.call("volumes") if told["id"] == self.volume.id]
        return decode_volume({name: value for name, value in found.items() if name not in ("image", "device")})

    def identity(self) -> Identity:
        """As it lies on the disk, seen through the machine's own mount."""
        found = decode(Path(f"/proc/{self.place.program.pid}/root{self.point}/{FILE}").read_bytes())
        assert isinstance(found, Identity)
        return found

    def until_idle(self) -> None:
        """Whatever a dead agent's children still do to the disk is over."""

        def working() -> bool:
            return any(self.volume.id in words(process) for process in Path("/proc").glob("[0-9]*/cmdline"))

        wait_until(lambda: not working(), "a child of a dead agent does not end")


def words(file: Path) -> str:
    try:
        return file.read_bytes().decode(errors="replace")
    except OSError:
        return ""


def made_by(image: Path) -> bytes | None:
    """What tells one mkfs from the next, in the superblock: its random seed for hashes. None without an ext4."""
    with image.open("rb") as file:
        file.seek(1024)
        superblock = file.read(1024)
    magic: int = struct.unpack_from("<H", superblock, 56)[0]
    return superblock[236:252] if magic == 0xEF53 else None
