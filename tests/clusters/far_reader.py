"""A reader who has nothing of a cluster but its store: no sockets, no hosts, no disks, no network, no capabilities."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from builders.command import COMMAND, Answer, environment
from clusters.real import RealCluster
from protokube.store.file import FileStore
from protokube.view.cluster import ClusterView
from protokube.view.stored import StoredSource

PUBLISHED_EVERY = 2.0
SCRIPT = """
set -e
mount --bind "$1" "$2"
mount -o remount,bind,ro "$2"
mount -t tmpfs none "$3"
shift 3
exec setpriv --bounding-set=-all --inh-caps=-all --no-new-privs "$@"
"""
"""The state of all local clusters is covered by an empty folder; the store is left, at another place and read-only."""


class FarReader:
    """Reads one cluster. The agents of its hosts publish every few seconds, so that a test need not wait a minute."""

    def __init__(self, cluster: RealCluster) -> None:
        self.cluster = cluster

    def hurry(self) -> None:
        """From now on: also those of hosts that the groups will start."""
        for group in sorted({host["group"] for host in self.cluster.hosts()}):
            files = self.cluster.template(group)["files"]
            files["/etc/protokube/agent.json"] = _hurried(files["/etc/protokube/agent.json"])
            self.cluster.set_group(group, 1, files=files)
        for host in self.cluster.hosts():
            file = self.cluster.paths.host(host["name"]) / "etc/protokube/agent.json"
            file.write_text(_hurried(file.read_text()))
            self.cluster.inside(host["name"], "sh", "-c", "kill -9 $(pgrep -f 'protokube agent')")

    def look(self) -> ClusterView:
        """The same without a process of its own, for tests that wait."""
        return StoredSource(FileStore(self.cluster.paths.store), self.cluster.name).look()

    def run(self, *words: str) -> Answer:
        """One command in its own mount and network namespace."""
        with self.started(*words) as process:
            out, err = process.communicate(timeout=60)
        return Answer(process.returncode, out, err)

    @contextmanager
    def started(self, *words: str) -> Iterator[subprocess.Popen[str]]:
        """One that runs meanwhile."""
        with tempfile.TemporaryDirectory(prefix="pkc-far-", dir="/tmp") as point:
            inside = [*COMMAND, *words, "--store", f"file://{point}", "--cluster", self.cluster.name]
            enter = ["unshare", "--mount", "--net", "--propagation", "private", "sh", "-c", SCRIPT, "sh"]
            folders = [str(self.cluster.paths.store), point, str(self.cluster.state)]
            env = environment(PROTOKUBE_STATE=str(self.cluster.state))
            command, pipe = [*enter, *folders, *inside], subprocess.PIPE
            with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=env, cwd=Path("/")) as process:
                try:
                    yield process
                finally:
                    process.kill()

    def status(self) -> dict[str, Any]:
        said = self.run("status", "--output", "json")
        assert said.out, said.err
        told: dict[str, Any] = json.loads(said.out)
        return told


def _hurried(launch: str) -> str:
    return json.dumps({**json.loads(launch), "publishEvery": PUBLISHED_EVERY})
