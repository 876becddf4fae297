"""Start a disk job in its own child process, and collect its result without ever waiting.

A child that is stuck in the kernel cannot be killed; it costs one sleeping thread and nothing else. The child's output
pipe stays open until the child and every program it started have exited, so at its end all of them are gone.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from protokube.host import (
    Content,
    Done,
    Failed,
    Format,
    Job,
    MountVolume,
    Probe,
    Probed,
    Result,
    Unmount,
    Unwritable,
    WriteTest,
)
from protokube.host.child import run as program
from protokube.host.child.tools import ENVIRONMENT

log = logging.getLogger("protokube.host")
COMMAND = (sys.executable, "-I", "-S", str(Path(program.__file__)))
MOST = 65536
"""Bytes of a child's output to keep."""


def request(job: Job) -> dict[str, Any]:
    """The request for the child, as JSON fields."""
    match job:
        case Unmount(point=point, number=number):
            return {"job": "unmount", "point": str(point), "number": number}
        case WriteTest(point=point, number=number):
            return {"job": "write", "point": str(point), "number": number}
        case Probe():
            own: dict[str, Any] = {"job": "probe"}
        case Format(uuid=uuid, again=again):
            own = {"job": "format", "uuid": uuid, "again": again}
        case MountVolume(point=point):
            own = {"job": "mount", "point": str(point)}
    block = job.block
    about = {"path": str(block.path), "number": block.number, "size": block.size, "serial": block.serial}
    return {**own, **about, "parent": os.getpid()}


def result(output: str, status: int) -> Result:
    """The result in the output of a child that has exited; without a valid result the job has failed."""
    try:
        answer = json.loads(output.splitlines()[-1])
        if status == 0 and "failed" in answer:
            return Failed(str(answer["failed"]), damaged=bool(answer.get("damaged")))
        if status == 0 and "unwritable" in answer:
            return Unwritable(why=str(answer["unwritable"]), full=bool(answer["full"]))
        if status == 0 and "done" in answer:
            return Done()
        if status == 0:
            return Probed(content=Content(answer["content"]), description=str(answer["told"]), uuid=answer["uuid"])
    except (ValueError, IndexError, KeyError, TypeError):
        pass  # reported below, with its status
    return Failed(f"the child {ended(status)}: {output.strip() or 'it said nothing'}")


def ended(status: int) -> str:
    return f"was killed by signal {-status}" if status < 0 else f"ended with {status}"


class Child:
    """One running job."""

    def __init__(
        self,
        job: Job,
        *,
        clock: Callable[[], float],
        on_done: Callable[[], None] | None = None,
        command: Sequence[str] = COMMAND,
    ) -> None:
        self.began = clock()
        self.killed: float | None = None
        self.ended: float | None = None
        self.result: Result | None = None
        self.reported_stuck = False
        self._clock = clock
        self._job, self._on_done = job, on_done
        self._lock = threading.Lock()
        self._process = subprocess.Popen(  # noqa: S603 (our own program)
            [*command, json.dumps(request(job))],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=ENVIRONMENT,
            cwd="/",
            start_new_session=True,
        )
        self.pid = self._process.pid
        threading.Thread(target=self._follow, name=f"disk job {self.pid}", daemon=True).start()

    def kill(self) -> None:
        """Kill the child and all its processes. They may exit late, or never, if they are stuck in the kernel."""
        with self._lock:
            if self.result is None:  # until then its process id is not reused
                os.killpg(self.pid, signal.SIGKILL)
                self.killed = self.killed or self._clock()

    def _follow(self) -> None:
        try:
            self._collect()
        except Exception:  # without a result the job would only become overdue, and the lost thread go unnoticed
            log.exception("cannot read the output of disk job %d: it is killed", self.pid)
            self.kill()
            self._process.wait()
            with self._lock:
                self.ended = self._clock()
                self.result = Failed("its result is unknown: reading its output failed")
        if self._on_done and (self.result is None or is_news(self._job, self.result)):
            self._on_done()

    def _collect(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as pipe:
            output = b""
            while piece := os.read(pipe.fileno(), MOST):
                output = (output + piece)[-MOST:]
        os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
        with self._lock:
            status = self._process.wait()
            self.ended = self._clock()
            self.result = result(output.decode(errors="replace"), status)


def is_news(job: Job, result: Result) -> bool:
    """Whether to collect it at once: the result of a successful write test can wait for the next round."""
    return not (isinstance(job, WriteTest) and isinstance(result, Done))
