"""One container of a pod: a process in its own mount and PID namespaces; restarted, probed, and killed after its grace.

The PID namespace makes its end reliable: when PID 1 is gone, so is everything it ever started, and nothing keeps a
volume busy. PID 1 dies with the runner.
"""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path

from protokube.local.base import programs, syscalls
from protokube.local.base.backoff import next_wait
from protokube.local.base.logs import open_log
from protokube.local.base.reactor import Reactor, Timer
from protokube.local.pods.children import Child
from protokube.local.pods.mounts import mount_all
from protokube.local.pods.pods import ContainerSpec, Pod
from protokube.local.pods.probers import Probers


class Container:
    """Calls `changed` whenever its status changes; after `stop`, `gone` becomes true for good."""

    def __init__(self, pod: Pod, spec: ContainerSpec, log: Path, reactor: Reactor, changed: Callable[[], None]) -> None:
        self._pod, self._spec, self._log = pod, spec, log
        self._reactor, self._changed = reactor, changed
        self._child: Child | None = None
        self._timer: Timer | None = None  # until it is started again, or killed
        self._probers: Probers | None = None
        self._since = self._wait = 0.0
        self._stopping = False
        self._restarts = -1
        self._state = "waiting"
        self._started = ""
        self._last_exit: dict[str, object] | None = None
        self._reason = ""
        self.gone = False

    def start(self) -> None:
        self._restarts += 1
        self._since, self._started = self._reactor.now(), _clock()
        self._reason = ""
        try:
            self._child = self._run()
        except OSError as why:
            self._ended(127, f"cannot be started: {why.strerror}")
            return
        self._state = "running"
        self._probers = Probers(self._spec, self._child.pid, self._reactor, self._restart, self._changed)
        self._changed()

    def stop(self, why: str) -> None:
        """Terminate it for good."""
        self._stopping = True
        if self._child is None:
            self._finish(why)
        else:
            self._end(why)

    def status(self) -> dict[str, object]:
        return {
            "state": self._state,
            "pid": self._child.pid if self._child else None,
            "started": self._started,
            "restarts": max(self._restarts, 0),
            "ready": self._probers.ready if self._probers else False,
            "last_exit": self._last_exit,
            "reason": self._reason,
        }

    def _run(self) -> Child:
        log = open_log(self._log)
        own = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
        try:
            # The next child is PID 1 of a new namespace; setns makes later children start in ours again.
            syscalls.unshare(syscalls.CLONE_NEWPID)
            try:
                return Child(lambda: self._become_container(log), self._ended, self._reactor)
            finally:
                syscalls.setns(own, syscalls.CLONE_NEWPID)
        finally:
            os.close(own)
            os.close(log)

    def _become_container(self, log: int) -> None:
        """Runs in the child: set up mounts, working directory and output, then exec the program."""
        spec = self._spec
        syscalls.unshare(syscalls.CLONE_NEWNS)
        mount_all(spec.mounts)
        Path(spec.working_dir).mkdir(parents=True, exist_ok=True)
        os.chdir(spec.working_dir)
        nothing = os.open("/dev/null", os.O_RDONLY)
        for source, target in ((nothing, 0), (log, 1), (log, 2)):
            os.dup2(source, target)
        inherited = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        environment = {**inherited, "HOSTNAME": os.uname().nodename, **dict(spec.environment)}
        os.execve(find_program(spec.command[0], spec.image), spec.command, environment)  # noqa: S606

    def _restart(self, why: str) -> None:
        """A probe demands a restart."""
        if self._child is not None and not self._stopping:
            self._end(why)

    def _end(self, why: str) -> None:
        """Send SIGTERM, and SIGKILL after the pod's grace period."""
        assert self._child is not None
        self._reason = why
        if self._probers:
            self._probers.stop()
        if self._timer:
            self._timer.cancel()
        child = self._child
        child.signal(signal.SIGTERM if self._pod.grace else signal.SIGKILL)
        self._timer = self._reactor.after(self._pod.grace, lambda: child.signal(signal.SIGKILL))
        self._changed()

    def _ended(self, code: int, report: str) -> None:
        lived = self._reactor.now() - self._since
        self._child = None
        if self._timer:
            self._timer.cancel()
        if self._probers:
            self._probers.stop()
            self._probers = None
        killed_by = signal.Signals(-code).name if code < 0 else ""
        why = report or self._reason or (f"killed by {killed_by}" if killed_by else f"exit code {code}")
        self._last_exit = {"code": max(code, 0), "signal": killed_by, "at": _clock(), "why": why}
        if self._stopping:
            self._finish(why)
        elif wants_restart(self._pod.restart_policy, code):
            # kubelet waits 10 s and more, for busy nodes with many pods; here a member would be missing
            self._wait = next_wait(self._wait, lived, first=0.2, most=30.0, reset=60.0)
            self._state, self._reason = "waiting", f"{why}; starts again in {self._wait:g} s"
            self._timer = self._reactor.after(self._wait, self.start)
            self._changed()
        else:
            self._state, self._reason = "terminated", why
            self._changed()

    def _finish(self, why: str) -> None:
        if self._timer:
            self._timer.cancel()
        self._state, self._reason = "terminated", why
        self.gone = True
        self._changed()


def wants_restart(policy: str, code: int) -> bool:
    return policy == "Always" or (policy == "OnFailure" and code != 0)


def find_program(command: str, image: str = "") -> str:
    """The program of the image, if the cluster's folder of programs has it; else the path itself if it exists, else the
    program of that name in PATH: images are not pulled."""
    folder = os.environ.get(programs.VARIABLE)
    if folder and image and (kept := programs.find_only(Path(folder), image, Path(command).name)):
        return str(kept)
    if command.startswith("/") and Path(command).exists():
        return command
    name = Path(command).name
    found = shutil.which(name)
    if found is None:
        raise FileNotFoundError(0, f"there is no {command} here, and no {name} in PATH", os.environ.get("PATH", ""))
    return found


def _clock() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
