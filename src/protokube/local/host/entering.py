"""Run a program in a host: in its namespaces, with its root, its environment and its processes around it.

The namespaces are those of a pidfd, so no other process can take the place of a host that ends meanwhile. The program
is a child of ours that ends with us, and with the host.
"""

from __future__ import annotations

import os
import select
import signal
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import NamedTuple

from protokube.errors import Refused
from protokube.local.base import syscalls
from protokube.local.base.processes import GONE, alive
from protokube.local.host import terminal

NAMESPACES = syscalls.CLONE_NEWNS | syscalls.CLONE_NEWNET | syscalls.CLONE_NEWUTS
SHELLS = (("/bin/bash", "--noprofile", "--norc"), ("/bin/sh",))
NOT_FOUND, NOT_EXECUTABLE, BY_SIGNAL = 127, 126, 128
"""Exit codes as a shell has them."""
IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)
RESTORED = (*IGNORED_BY_PYTHON, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP, signal.SIGWINCH)
OF_THE_USER = ("TERM", "COLORTERM")
ERROR = struct.Struct("i")
SECONDS_TO_END = 2.0
Handler = Callable[[int, FrameType | None], None] | signal.Handlers


class CannotRun(Refused):
    """The program cannot be started in the host; `status` is what a shell would exit with."""

    def __init__(self, program: str, host: str, why: OSError) -> None:
        super().__init__(f"{program} cannot be started in {host}", saw=why.strerror or str(why))
        self.status = NOT_FOUND if isinstance(why, FileNotFoundError | NotADirectoryError) else NOT_EXECUTABLE


class Ended(NamedTuple):
    """How a program ended."""

    code: int
    """Its exit code, or 128 more than the signal that ended it."""
    host_is_gone: bool


def run_inside(host: str, pid: int, started: int, words: Sequence[str], *, with_terminal: bool) -> Ended:
    """Run a program until it ends; without words, a shell. Refused if the host does not run."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        raise not_running(host) from None
    pair = None
    try:
        if not alive(pid, started):
            raise not_running(host)
        try:
            environment = environment_of(pid, host)
            pair = terminal.open_pair(f"/proc/{pid}/root/dev/pts/ptmx") if with_terminal else None
        except GONE as gone:
            raise not_running(host) from gone
        code = _run(host, handle, _programs(words), environment, pair)
        # the kernel kills the other processes of a host before its first one counts as ended
        killed = code == BY_SIGNAL + signal.SIGKILL
        return Ended(code, killed and bool(select.select([handle], [], [], SECONDS_TO_END)[0]))
    finally:
        os.close(handle)
        for end in pair or ():
            with suppress(OSError):  # closed already
                os.close(end)


def not_running(host: str) -> Refused:
    return Refused(f"{host} does not run", hint="protokube status", code="not-running")


def environment_of(pid: int, host: str) -> dict[str, str]:
    """The environment of the host's first process, with a prompt, and what describes the user's terminal."""
    words = os.fsdecode(Path(f"/proc/{pid}/environ").read_bytes()).split("\0")
    own = dict(word.partition("=")[::2] for word in words if "=" in word)
    more = {name: os.environ[name] for name in OF_THE_USER if name in os.environ}
    return {**own, **more, "PS1": f"[{host}] $PWD # ", "HISTFILE": "/dev/null"}


def _programs(words: Sequence[str]) -> list[list[str]]:
    """The first of these that is there is started."""
    return [list(words)] if words else [list(shell) for shell in SHELLS]


def _run(
    host: str, handle: int, programs: Sequence[list[str]], environment: Mapping[str, str], pair: tuple[int, int] | None
) -> int:
    report, writer = os.pipe2(os.O_CLOEXEC)
    syscalls.setns(handle, syscalls.CLONE_NEWPID)  # for children only
    child = os.fork()
    if not child:
        _become(handle, programs, environment, pair, writer)
    os.close(writer)
    if pair:
        os.close(pair[1])
    ended = os.pidfd_open(child)
    try:
        with _passing_on(child, signal.SIGHUP if pair else signal.SIGTERM):
            failed = os.read(report, ERROR.size)
            if pair and not failed:
                terminal.relay(pair[0], ended)
                os.close(pair[0])  # what still uses it is told to end
            _, status = os.waitpid(child, 0)
    finally:
        os.close(report)
        os.close(ended)
    if failed:
        (number,) = ERROR.unpack(failed)
        raise CannotRun(programs[-1][0], host, OSError(number, os.strerror(number)))
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else BY_SIGNAL - code


def _become(
    handle: int,
    programs: Sequence[list[str]],
    environment: Mapping[str, str],
    pair: tuple[int, int] | None,
    report: int,
) -> None:
    """Never returns. Nothing is imported here: the files of the modules may not be in the host."""
    try:
        syscalls.die_with_parent()
        for number in RESTORED:
            signal.signal(number, signal.SIG_DFL)
        errors_too = os.isatty(2)
        syscalls.setns(handle, NAMESPACES)
        os.chdir("/")
        os.umask(0o022)
        if pair:
            terminal.take(pair[1])
            for target in (0, 1, *([2] if errors_too else [])):
                os.dup2(pair[1], target)
        failed: OSError = FileNotFoundError()
        for words in programs:
            try:
                os.execvpe(words[0], words, dict(environment))  # noqa: S606
            except OSError as why:
                failed = why
        os.write(report, ERROR.pack(failed.errno or 2))
    except OSError as why:
        os.write(report, ERROR.pack(why.errno or 5))
    finally:
        os._exit(NOT_FOUND)


@contextmanager
def _passing_on(child: int, end: signal.Signals) -> Iterator[None]:
    """Pass signals on that end us alone; Ctrl-C and Ctrl-\\ come from a terminal, which sends them to the child too.

    `end` is what ends the child: a shell at a terminal ignores SIGTERM.
    """

    def pass_on(number: int, _frame: FrameType | None) -> None:
        with suppress(ProcessLookupError):
            os.kill(child, end if number == signal.SIGTERM else number)

    handlers: dict[signal.Signals, Handler] = {
        signal.SIGINT: signal.SIG_IGN,
        signal.SIGQUIT: signal.SIG_IGN,
        signal.SIGTERM: pass_on,
        signal.SIGHUP: pass_on,
    }
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
