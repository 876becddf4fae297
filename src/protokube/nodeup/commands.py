"""Run programs of the machine: with a deadline, a clean environment, and nobody at the keyboard.

A command is the leader of a session of its own: it gets no Ctrl-C meant for us, asks nothing at a terminal, and is
ended together with its children. What it leaves behind on purpose, such as a daemon, is not waited for, even if that
keeps its output open.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from protokube.errors import Refused, TryLater
from protokube.nodeup.engine.leftovers import noted
from protokube.nodeup.machine import Ran, Say, within

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
ENVIRONMENT = {"PATH": PATH, "LC_ALL": "C", "HOME": "/root", "TERM": "dumb"}
PROXIES = ("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
"""Variables of ours that commands get, too: some of them download."""
MOST = 64 << 10
"""Bytes of output to keep."""
SLICE = 0.1
"""Seconds after which the process, the deadline and our own end are looked at again, while nothing is written."""
GRACE = 3.0
"""Seconds between the polite signal and the other one."""
EVERY = 0.02


class MachineCommands:
    """Implements Commands for a machine, or for the root of an image by chroot."""

    def __init__(
        self,
        root: Path = Path("/"),
        *,
        stopping: threading.Event | None = None,
        notes: Path | None = None,
        grace: float = GRACE,
    ) -> None:
        """`stopping`: once it is set, all commands are ended. `notes`: where they are written down while they run."""
        self._root, self._notes, self._grace = root, notes, grace
        self._stopping = stopping or threading.Event()

    def __call__(
        self,
        words: Sequence[str],
        *,
        seconds: float = 600.0,
        environment: dict[str, str] | None = None,
        say: Say | None = None,
    ) -> Ran:
        if self._stopping.is_set():
            raise TryLater("nodeup was stopped")
        deadline = time.monotonic() + seconds
        command = [*self._chroot(), self._program(words[0]), *words[1:]]
        proxies = {name: os.environ[name] for name in PROXIES if name in os.environ}
        try:
            process = subprocess.Popen(  # noqa: S603
                command, cwd="/", env={**ENVIRONMENT, **proxies, **(environment or {})}, stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            raise Refused(f"cannot run `{words[0]}`", saw=error.strerror or str(error)) from error
        try:
            with noted(self._notes, process.pid, words[0], seconds):
                try:
                    output, reason = self._follow(process, deadline, say)
                finally:
                    _end(process, self._grace)
        finally:
            _end(process, self._grace)  # where the note could not be written
        if reason:
            wait = "" if self._stopping.is_set() else f"; it was given {seconds:g} seconds"
            raise TryLater(f"`{words[0]}` {reason}{wait}", saw=_last_line(output))
        return Ran(process.returncode, output.decode(errors="replace"))

    def _chroot(self) -> list[str]:
        return [] if self._root == Path("/") else ["chroot", str(self._root)]

    def _program(self, name: str) -> str:
        """Its path on the machine; to be known before, since chroot does not tell its own failure from another."""
        places = [name] if name.startswith("/") else [f"{folder}/{name}" for folder in PATH.split(":")]
        for place in places:
            found = Path(place) if self._root == Path("/") else within(self._root, place)
            if found.is_file() and os.access(found, os.X_OK):
                return place
        raise Refused(f"there is no program {name} on this machine", hint="a package has it")

    def _follow(self, process: subprocess.Popen[bytes], deadline: float, say: Say | None) -> tuple[bytes, str]:
        """Its output and, if it had to be ended, the reason."""
        assert process.stdout is not None
        handle, output, more = process.stdout.fileno(), b"", True
        poller = select.poll()
        poller.register(handle, select.POLLIN)
        while True:
            exited, left = process.poll() is not None, max(deadline - time.monotonic(), 0.0)
            if more and poller.poll(0 if exited else min(SLICE, left) * 1000):
                piece = os.read(handle, MOST)  # all that a pipe can hold
                more = bool(piece)
                output = (output + piece)[-MOST:]
                if say is not None and (line := _last_line(piece)):
                    say(line)
            if exited:  # whoever else has the pipe open is not waited for
                return output, ""
            if left <= 0:
                return output, "did not end in time and was stopped"
            if self._stopping.is_set():
                return output, "was stopped, since nodeup is"
            if not more:
                with suppress(subprocess.TimeoutExpired):
                    process.wait(min(SLICE, left))


def _end(process: subprocess.Popen[bytes], grace: float) -> None:
    """End the whole group if the command itself still runs. One that is stuck in the kernel is left behind."""
    assert process.stdout is not None
    process.stdout.close()
    if process.poll() is not None:
        return
    os.killpg(process.pid, signal.SIGTERM)
    deadline = time.monotonic() + grace
    while time.monotonic() < deadline and not _exited(process.pid):
        time.sleep(EVERY)
    os.killpg(process.pid, signal.SIGKILL)  # also children that outlived it
    with suppress(subprocess.TimeoutExpired):
        process.wait(grace)


def _exited(pid: int) -> bool:
    """Without taking its exit code: until then, its id is the id of no other group."""
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _last_line(output: bytes) -> str:
    """The last line that says something, without what moves a cursor."""
    lines = output.decode(errors="replace").replace("\r", "\n").splitlines()
    shown = ("".join(each for each in line if each.isprintable()).strip() for line in reversed(lines))
    return next((line for line in shown if line), "")
