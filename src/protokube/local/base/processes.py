"""The processes of a host, from outside: find them by PID namespace, stop, continue and kill them.

Pods have their own PID namespaces inside the host's, so the processes of a host are found by walking up from the
namespace of each process. A pid alone identifies nothing, since pids are reused; a pid with its start time does.
"""

from __future__ import annotations

import fcntl
import os
import select
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from protokube.errors import TryLater

NS_GET_PARENT = 0xB702  # linux/nsfs.h
SECONDS_TO_DIE = 15.0
SECONDS_TO_FREEZE = 10.0
GONE = (FileNotFoundError, ProcessLookupError, PermissionError)
"""Errors of /proc for a process that is ending: a zombie's namespaces cannot be read, not even by root."""


def started_at(pid: int) -> int:
    """The start time of a process, in clock ticks since boot."""
    return int(_fields(f"/proc/{pid}/stat")[19])


def alive(pid: int, started: int) -> bool:
    """Whether this very process runs; a zombie does not."""
    try:
        fields = _fields(f"/proc/{pid}/stat")
    except GONE:
        return False
    return int(fields[19]) == started and fields[0] not in "ZX"


def _fields(stat: str) -> list[str]:
    """The fields of a stat file from the third on: the second is a name that may contain any character."""
    return Path(stat).read_text(errors="replace").rpartition(") ")[2].split()


def processes(pid: int) -> Sequence[int]:
    """Every process in the PID namespace of this one, or in a namespace nested in it."""
    try:
        known = {_namespace(pid): True}
    except GONE:
        return ()
    found = []
    for number in [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]:
        with suppress(*GONE):
            if _lies_in(number, known) and _fields(f"/proc/{number}/stat")[0] not in "ZX":
                found.append(number)
    return tuple(sorted(found))


def _namespace(pid: int) -> int:
    return Path(f"/proc/{pid}/ns/pid").stat().st_ino


def _lies_in(pid: int, known: dict[int, bool]) -> bool:
    inner = _namespace(pid)
    if inner not in known:
        known[inner] = any(known.get(outer, False) for outer in _ancestors(pid))
    return known[inner]


def _ancestors(pid: int) -> list[int]:
    """The enclosing PID namespaces of a process, up to ours."""
    found: list[int] = []
    handle = os.open(f"/proc/{pid}/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
    try:
        while True:
            try:
                outer = fcntl.ioctl(handle, NS_GET_PARENT)
            except PermissionError:  # the parent of ours
                return found
            os.close(handle)
            handle = outer
            found.append(os.fstat(handle).st_ino)
    finally:
        os.close(handle)


def kill(pid: int) -> None:
    """Kill a host; return when none of its processes runs any more."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(handle, signal.SIGKILL)
        # The kernel kills every other process of the namespace before init counts as ended.
        if not select.select([handle], [], [], SECONDS_TO_DIE)[0]:
            raise TryLater(
                f"the host of pid {pid} is still dying after {SECONDS_TO_DIE:g} seconds",
                saw=f"processes {', '.join(map(str, processes(pid))) or pid}",
                hint="something in it waits for a disk; `dmesg` may say which",
            )
    finally:
        os.close(handle)


def freeze(pid: int) -> None:
    """Stop every process of a host until `thaw`; the host does not notice.

    By SIGSTOP: the cgroup freezer has no advantage here, and a host frozen by it could not be killed.
    """
    deadline = time.monotonic() + SECONDS_TO_FREEZE
    quiet = 0
    while quiet < 2:  # a process may have forked after the list was read
        running = [inside for inside in processes(pid) if not _is_still(inside)]
        quiet = 0 if running else quiet + 1
        if running and time.monotonic() > deadline:
            raise TryLater(f"the host of pid {pid} cannot be frozen", saw=f"processes {running} go on")
        _signal(running, signal.SIGSTOP)
        time.sleep(0.001)


def thaw(pid: int) -> None:
    """Continue a frozen host."""
    _signal(processes(pid), signal.SIGCONT)


def _is_still(pid: int) -> bool:
    """Whether every thread is stopped or dead, or in uninterruptible sleep with SIGSTOP pending."""
    try:
        for task in Path(f"/proc/{pid}/task").iterdir():
            state = _fields(f"{task}/stat")[0]
            if state not in "TtZX" and not (state == "D" and _will_stop(pid)):
                return False
    except GONE:
        return True
    return True


def _will_stop(pid: int) -> bool:
    """Whether SIGSTOP is pending for a process."""
    status = Path(f"/proc/{pid}/status").read_text()
    pending = next(line for line in status.splitlines() if line.startswith("ShdPnd:"))
    return bool(int(pending.split()[1], 16) & 1 << (signal.SIGSTOP - 1))


def _signal(pids: Sequence[int], number: signal.Signals) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)
