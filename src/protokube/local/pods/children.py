"""Child processes of the pod runner: each dies with it, and is watched through a pidfd, not through SIGCHLD.

The runner has one thread, so it may fork and prepare the child in Python. Between fork and exec the child has a copy
of all state: it reports a failure through a pipe, and exits without running any cleanup of the parent.
"""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Callable
from contextlib import suppress

from protokube.local.base import syscalls
from protokube.local.base.reactor import Reactor

LONGEST_REPORT = 4096


class Child:
    """A running child. `ended` is called once: with its exit code (or minus a signal) and what it reported."""

    def __init__(self, work: Callable[[], None], ended: Callable[[int, str], None], reactor: Reactor) -> None:
        self._ended, self._reactor = ended, reactor
        self._report, writer = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            self.pid = os.fork()
        except OSError:
            os.close(self._report)
            os.close(writer)
            raise
        if not self.pid:
            os.close(self._report)
            _be_child(work, writer)
        os.close(writer)
        self._handle = os.pidfd_open(self.pid)
        reactor.watch(self._handle, self._reap)

    def signal(self, number: signal.Signals) -> None:
        signal.pidfd_send_signal(self._handle, number)

    def kill_group(self) -> None:
        """Kill it and its process group."""
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self.signal(signal.SIGKILL)

    def _reap(self) -> None:
        _, status = os.waitpid(self.pid, 0)
        self._reactor.forget(self._handle)
        os.close(self._handle)
        try:
            report = os.read(self._report, LONGEST_REPORT).decode(errors="replace")
        except BlockingIOError:  # a descendant still has the other end
            report = ""
        os.close(self._report)
        self._ended(os.waitstatus_to_exitcode(status), report)


def _be_child(work: Callable[[], None], writer: int) -> None:
    """Never returns: the code after the fork belongs to the parent."""
    try:
        syscalls.die_with_parent()
        if not _is_heard(writer):  # the parent ended before die_with_parent took effect
            os._exit(1)
        os.setsid()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGPIPE, signal.SIGXFSZ, signal.SIGIO):
            signal.signal(number, signal.SIG_DFL)
        signal.set_wakeup_fd(-1)
        work()
    except BaseException as why:  # noqa: BLE001  the report is all that is left of it
        text = f"{why.strerror}: {why.filename}" if isinstance(why, OSError) and why.filename else str(why) or repr(why)
        os.write(writer, text.encode()[:LONGEST_REPORT])
        os._exit(127)
    os._exit(0)


def _is_heard(writer: int) -> bool:
    """Whether a process has the other end of a pipe."""
    poll = select.poll()
    poll.register(writer, select.POLLOUT)
    return not any(events & select.POLLERR for _, events in poll.poll(0))
