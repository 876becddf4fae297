"""What a user without rights can do to a cluster: everything there is of it is tried, and every secret looked for."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from builders.command import environment
from builders.secrets import secrets_of, texts
from clusters.machine_census import Census
from clusters.real import RealCluster
from protokube.config.dnscontroller import KEY_SECRET
from protokube.local.bringup import dns_address
from protokube.providers.dns.keys import new_key
from protokube.store import layout
from protokube.store.open import open_store

PROGRAM = Path(__file__).parents[1] / "host" / "stranger.py"
TOPS = ("/run", "/var", "/etc", "/root", "/tmp", "/dev/shm", "/home", "/opt", "/srv", "/mnt")
"""Where programs write; whatever the stranger finds there by itself is read."""
OF_A_PROCESS = ("environ", "maps", "mem", "root", "cwd", "fd", "root/srv", "root/etc/protokube/agent.json")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the stranger could do."""

    could: dict[str, list[str]]
    """By path: of what the cluster consists of."""
    secrets: list[str]
    """Files and command lines anywhere on the machine that it could read, with a secret of the cluster in them."""
    updates: dict[str, str]
    """The answers to updates of names, by how they were signed."""
    tried: int

    def inside(self, folder: Path) -> dict[str, list[str]]:
        return {path: done for path, done in self.could.items() if Path(path).is_relative_to(folder)}


def everything(top: Path) -> Iterator[tuple[str, int]]:
    """Every path below a folder with its kind, as root finds it; the folder itself is the first."""
    yield str(top), top.lstat().st_mode
    for folder, folders, names in os.walk(top):
        for name in (*folders, *names):
            with suppress(OSError):  # gone meanwhile
                yield f"{folder}/{name}", Path(folder, name).lstat().st_mode


def all_secrets(cluster: RealCluster) -> set[str]:
    """Texts of which none may be read: from the store, and from every key on hosts and of the operator."""
    store = open_store(f"file://{cluster.paths.store}")
    known = {text for found in secrets_of(store, cluster.name).values() for text in found}
    for file in cluster.paths.root.rglob("*.key"):
        with suppress(OSError, UnicodeDecodeError):
            if file.is_file():
                known |= texts(file.read_bytes())
    return known


def update_key(cluster: RealCluster) -> dict[str, str]:
    """Name and secret of the key by which names are written."""
    store = open_store(f"file://{cluster.paths.store}")
    found: dict[str, str] = json.loads(store.read(layout.secret(cluster.name, KEY_SECRET)).data)
    return found


def try_everything(
    cluster: RealCluster, since: float, *elsewhere: Path, known: Collection[str] | None = None
) -> Verdict:
    """Have a stranger at all of a cluster that runs, and at what was written elsewhere.

    `known` are the secrets to look for, by default those that are in the store and on hosts.
    """
    folders = (cluster.paths.root, *(each for each in elsewhere if each.exists()))
    paths = [found for folder in folders for found in everything(folder)]
    for pid, _ in Census.of(cluster.paths).processes:
        for name in OF_A_PROCESS:
            with suppress(OSError):
                paths.append((f"/proc/{pid}/{name}", Path(f"/proc/{pid}/{name}").stat().st_mode))
    host, _, port = dns_address(cluster.admin).rpartition(":")
    key = update_key(cluster)
    dns = {"host": host, "port": int(port), "zone": cluster.name, "key": key["name"], "secret": new_key("x").secret}
    texts_of_all = sorted(all_secrets(cluster) if known is None else known)
    answer = ask({"paths": paths, "secrets": texts_of_all, "tops": TOPS, "newer": since, "dns": dns})
    assert (answer["user"], answer["groups"]) == (65534, [])
    return Verdict(answer["could"], answer["secrets"], answer["updates"], len(paths))


def ask(order: dict[str, Any]) -> dict[str, Any]:
    ran = subprocess.run(
        [sys.executable, str(PROGRAM)],
        input=json.dumps(order), capture_output=True, text=True, timeout=300, env=environment(), cwd="/",
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    reply: dict[str, Any] = json.loads(ran.stdout)
    return reply


def an_open_file(folder: Path, content: Iterable[str]) -> Path:
    """What a stranger must be able to read, or the test would prove nothing."""
    file = folder / f"open-{secrets.token_hex(4)}"
    file.write_text("\n".join(content))
    file.chmod(0o644)
    return file


def just_now() -> float:
    """Before what is about to be written; clocks of file systems are coarse."""
    return time.time() - 2
