"""Import stored archives on every running host, on all hosts concurrently.

The caller stores the archives first, so a host that starts later imports them by itself. A host that is just starting
writes a marker file when its own import is done. We wait for it: two concurrent imports could leave the older content.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from protokube.errors import Refused, TryLater
from protokube.images.ctr import Ctr, await_notice, digests, import_archive
from protokube.local.base.paths import LOADED, RUNTIME_CONFIG, Paths
from protokube.local.host import hosts
from protokube.local.loading.image_store import Kept
from protokube.providers.clients.local import LocalClient

State = Literal["imported", "unchanged", "gone", "refused", "failed"]
"""`refused`: containerd works and rejects the image, so a retry does not help. `failed`: a retry may help."""
EVERY = 0.2
SECONDS_TO_ANSWER = 10.0
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result for one host."""

    host: str
    state: State
    why: str = ""


class Gone(Exception):
    """The host is dead; its replacement imports the images when it starts."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """Imports archives on the hosts of one cluster."""

    paths: Paths
    admin: LocalClient
    program: Path
    """The path of `ctr`, which is the same inside the hosts."""
    archives: Sequence[Kept]
    ends: float
    """The deadline, on the monotonic clock."""
    only_missing: bool = False
    """Whether a host that has all names of an archive keeps its images; else they are replaced."""

    def to_all(self) -> list[Outcome]:
        """Import on all current hosts; sorted by host name."""
        names = sorted(str(row["name"]) for row in with_kubelet(self.paths, living(self.admin)))
        with ThreadPoolExecutor(max(len(names), 1), thread_name_prefix="load") as pool:
            return list(pool.map(self.to_one, names))

    def to_one(self, host: str) -> Outcome:
        """Refused is what fails twice: the first time, containerd may have ended, and started again by now."""
        failed = False
        try:
            while True:
                with self._entered(host) as ctr:
                    try:
                        return Outcome(host, "imported" if self._import(ctr) else "unchanged")
                    except subprocess.CalledProcessError as why:
                        words, answers = last_line(why.stderr) or str(why), self._answers(ctr)
                if answers and failed:
                    return Outcome(host, "refused", words)
                failed = answers
                self._pause(host, words if answers else "its containerd does not answer")
        except Gone:
            return Outcome(host, "gone")
        except (TryLater, OSError, subprocess.SubprocessError) as why:
            return Outcome(host, "failed", getattr(why, "message", "") or str(why))

    def _import(self, ctr: Ctr) -> bool:
        """Import all archives; return whether any image changed."""
        changed = False
        for each in self.archives:
            names = list(each.names)
            before = digests(ctr, names, self._left())
            if self.only_missing and before.keys() >= set(names):
                continue
            import_archive(ctr, self.paths.images / each.file, each.names, self._left())
            await_notice(ctr, names)
            changed |= digests(ctr, names, self._left()) != before
        return changed

    @contextmanager
    def _entered(self, host: str) -> Iterator[Ctr]:
        """Wait until the host has imported its own images, and enter its mount namespace.

        The namespace is held open: a pid may be reused, an open namespace stays the same.
        """
        while True:
            row = next((row for row in living(self.admin) if row["name"] == host), None)
            if row is None or (row["pid"] and not row["running"]):
                raise Gone
            if row["pid"] and (self.paths.host(host) / str(LOADED).lstrip("/")).exists():
                break
            self._pause(host, f"its images are not ready; see {self.paths.host(host)}/var/log/containerd.service.log")
        try:
            namespace = os.open(f"/proc/{row['pid']}/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            raise Gone from None
        try:
            if not hosts.alive(row["pid"], row["started"]):
                raise Gone
            yield Ctr(("nsenter", f"--mount=/proc/self/fd/{namespace}", "--", str(self.program)), (namespace,))
        except subprocess.SubprocessError:
            if not hosts.alive(row["pid"], row["started"]):
                raise Gone from None
            raise
        finally:
            os.close(namespace)

    def _answers(self, ctr: Ctr) -> bool:
        try:
            ctr("images", "list", "--quiet", seconds=SECONDS_TO_ANSWER)
        except (OSError, subprocess.SubprocessError):
            return False
        return True

    def _left(self) -> float:
        return max(self.ends - time.monotonic(), 1.0)

    def _pause(self, host: str, why: str) -> None:
        if time.monotonic() > self.ends:
            raise TryLater(f"{host}: {why}")
        time.sleep(EVERY)


def living(admin: LocalClient) -> list[Row]:
    return [row for row in admin.call("hosts") if not row["dead"]]


def with_kubelet(paths: Paths, rows: Sequence[Row]) -> list[Row]:
    """The hosts that run containerd. Refused if none does."""
    found = [row for row in rows if (paths.host(row["name"]) / str(RUNTIME_CONFIG).lstrip("/")).exists()]
    if not rows:
        raise TryLater(f"no host of {paths.cluster} runs yet", hint="protokube status")
    if not found:
        raise Refused(
            f"{paths.cluster} does not run the real kubelet, and has no images",
            saw="the built-in runner, which starts programs of this machine",
            hint=f"`protokube down --cluster {paths.cluster}`, then `protokube up --cluster {paths.cluster} --kubelet`",
        )
    return found


def last_line(text: str | None) -> str:
    return ((text or "").strip().splitlines() or [""])[-1]
