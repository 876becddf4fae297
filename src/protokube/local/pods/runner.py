"""Runs the static pods of a host without a kubelet: the built-in kubelet.service.

Reconciles the running pods with the manifest folder; the only state kept is the last valid content of each manifest.
It runs after every inotify event and once a second, since the target of a link is elsewhere and can go without an
event. Pods die with this process, and init restarts it.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

from protokube.local.base.logs import trim
from protokube.local.base.reactor import Reactor, Timer
from protokube.local.pods.containers import Container
from protokube.local.pods.manifestdir import ManifestDir
from protokube.local.pods.plan import Desired, choose, plan
from protokube.local.pods.pods import Pod

MANIFESTS = Path("/etc/kubernetes/manifests")
STATUS = Path("/run/protokube/pods.json")
LOGS = Path("/var/log/pods")
SECONDS_BETWEEN_LOOKS = 1.0
SECONDS_FOR_A_WRITER = 0.05
SECONDS_BETWEEN_TRIMS = 10.0


class RunningPod:
    """A pod's containers; `stopping` is the reason once the pod is being stopped."""

    def __init__(self, pod: Pod, containers: dict[str, Container]) -> None:
        self.pod, self.containers = pod, containers
        self.stopping = ""

    @property
    def gone(self) -> bool:
        return all(container.gone for container in self.containers.values())

    def stop(self, why: str) -> None:
        if not self.stopping:
            self.stopping = why
            for container in self.containers.values():
                container.stop(why)


class PodRunner:
    """`run` returns after SIGTERM or SIGINT, once every pod is gone."""

    def __init__(self, reactor: Reactor, manifests: Path, status: Path, logs: Path) -> None:
        self._reactor, self._status, self._logs = reactor, status, logs
        self._manifests = ManifestDir(manifests)
        self._desired = Desired({}, {})
        self._pods: dict[str, RunningPod] = {}
        self._ending = False
        self._flush: Timer | None = None
        self._soon: Timer | None = None
        self._written = ""

    def run(self) -> None:
        # A broken lease is announced by SIGIO, whose default action would end us.
        signal.signal(signal.SIGIO, signal.SIG_IGN)
        self._reactor.on_signals({signal.SIGTERM: self._end, signal.SIGINT: self._end})
        self._reactor.watch(self._manifests.handle, self._look_after_event)
        self._reactor.every(SECONDS_BETWEEN_LOOKS, self.look)
        self._reactor.every(SECONDS_BETWEEN_TRIMS, self._trim)
        self.look()
        self._changed()
        self._reactor.run()
        self._write_status()

    def _look_after_event(self) -> None:
        self._manifests.drain()
        self.look()

    def look(self) -> None:
        """List the manifests, and reconcile the running pods."""
        if self._ending:
            return
        try:
            readings = self._manifests.look()
        except OSError as why:  # the folder itself cannot be read; pods keep running
            self._log(f"cannot read the manifests: {why}")
            return
        if self._soon is not None:
            self._soon.cancel()
        self._soon = self._reactor.after(SECONDS_FOR_A_WRITER, self.look) if self._manifests.being_written else None
        desired = choose(readings, self._desired.pods)
        if desired != self._desired:
            self._changed()
        self._desired = desired
        self._reconcile()

    def _reconcile(self) -> None:
        chosen = plan({key: running.pod.digest for key, running in self._pods.items()}, self._desired.pods)
        for key, why in chosen.stop:
            if not self._pods[key].stopping:
                self._log(f"stop {key}: {why}")
            self._pods[key].stop(why)
        for pod in chosen.start:
            self._log(f"start {pod.key}")
            self._pods[pod.key] = self._make(pod)
            for container in self._pods[pod.key].containers.values():
                container.start()

    def _make(self, pod: Pod) -> RunningPod:
        folder = self._logs / f"{pod.namespace}_{pod.name}"
        return RunningPod(
            pod,
            {
                spec.name: Container(pod, spec, folder / f"{spec.name}.log", self._reactor, self._changed)
                for spec in pod.containers
            },
        )

    def _changed(self) -> None:
        """Schedule, after the current events: write the status, and start pods that waited for others to end."""
        if self._flush is None:
            self._flush = self._reactor.after(0, self._flush_changes)

    def _flush_changes(self) -> None:
        self._flush = None
        gone = [key for key, running in self._pods.items() if running.stopping and running.gone]
        for key in gone:
            del self._pods[key]
        if gone and not self._ending:
            self._reconcile()
        if self._ending and not self._pods:
            self._reactor.stop()
        self._write_status()

    def _write_status(self) -> None:
        text = json.dumps(self.status(), indent=1)
        if text == self._written:
            return
        draft = self._status.with_name(f".{self._status.name}.new")
        try:
            draft.write_text(text)
            draft.replace(self._status)
            self._written = text
        except OSError as why:  # a full disk must not end the pods
            self._log(f"cannot write {self._status}: {why.strerror}")

    def status(self) -> dict[str, object]:
        files = {pod.key: file for file, pod in self._desired.pods.items()}
        return {
            "runner": os.getpid(),
            "pods": {
                key: {
                    "file": files.get(key),
                    "digest": running.pod.digest,
                    "stopping": running.stopping,
                    "containers": {name: container.status() for name, container in running.containers.items()},
                }
                for key, running in sorted(self._pods.items())
            },
            "problems": dict(self._desired.problems),
        }

    def _end(self) -> None:
        self._ending = True
        for running in self._pods.values():
            running.stop("the host goes off")
        self._changed()

    def _trim(self) -> None:
        for running in self._pods.values():
            for name in running.containers:
                trim(self._logs / f"{running.pod.namespace}_{running.pod.name}" / f"{name}.log")

    def _log(self, line: str) -> None:
        os.write(2, f"{line}\n".encode())


def main() -> None:
    """Tests pass the three paths as arguments."""
    manifests, status, logs = map(Path, sys.argv[1:4]) if len(sys.argv) > 3 else (MANIFESTS, STATUS, LOGS)
    PodRunner(Reactor(), manifests, status, logs).run()


if __name__ == "__main__":
    main()
