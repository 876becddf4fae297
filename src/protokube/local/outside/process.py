"""One run of slirp4netns, the process that provides outbound network access."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Sequence

from protokube.errors import TryLater
from protokube.local.base import private
from protokube.local.base.paths import Paths
from protokube.local.outside import slirp
from protokube.local.outside.slirp import Program

READY_SECONDS = 10.0
LINES = 6


class OutsideProcess:
    """Started by the constructor; the caller must call `end` in any case."""

    def __init__(self, program: Program, paths: Paths) -> None:
        slirp.need_tun()  # for a better error message than that of slirp4netns
        self._log = paths.outside_log
        self._ready, ready = os.pipe()
        leave, self._leave = os.pipe()  # only the daemon has this end, so the kernel closes it when the daemon dies
        try:
            command = slirp.command(program, paths.switch, ready=ready, leave=leave)
            self._process = self._start(command, program, [ready, leave])
        except BaseException:
            self._close()
            raise
        finally:
            os.close(ready)
            os.close(leave)

    def _start(self, command: Sequence[str], program: Program, inherit: Sequence[int]) -> subprocess.Popen[bytes]:
        with os.fdopen(private.open_file(self._log, os.O_WRONLY | os.O_TRUNC), "wb") as log:
            return subprocess.Popen(  # noqa: S603
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, pass_fds=inherit, cwd="/",
                env=program.environment, start_new_session=True,
            )  # fmt: skip

    @property
    def pid(self) -> int:
        return self._process.pid

    async def until_ready(self) -> None:
        """Raises TimeoutError if it takes too long, TryLater if the process exits instead."""
        await asyncio.wait_for(_readable(self._ready), READY_SECONDS)
        if not os.read(self._ready, 1):
            raise TryLater("slirp4netns does not start", saw=self._last_log_lines())

    async def until_ended(self) -> str:
        """Wait for its end; return exit code and last log lines."""
        handle = os.pidfd_open(self._process.pid)
        try:
            await _readable(handle)
        finally:
            os.close(handle)
        return f"slirp4netns ended with {self._process.wait()}: {self._last_log_lines()}"

    def end(self) -> None:
        """Kill it, unless it has ended; the tap device goes with it."""
        self._close()
        self._process.kill()
        self._process.wait()

    def _close(self) -> None:
        for handle in (self._ready, self._leave):
            os.close(handle)

    def _last_log_lines(self) -> str:
        return " | ".join(self._log.read_text(errors="replace").splitlines()[-LINES:])


async def _readable(handle: int) -> None:
    loop, seen = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(handle, seen.set)
    try:
        await seen.wait()
    finally:
        loop.remove_reader(handle)
