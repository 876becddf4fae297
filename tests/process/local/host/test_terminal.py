"""The user's terminal, connected to that of a program, may end at any moment."""

from __future__ import annotations

import os
import select
import subprocess
import termios
import time

from protokube.local.host import terminal

SECONDS = 20.0


def test_a_window_that_is_closed_while_a_program_runs_is_no_error() -> None:
    user, source = os.openpty()
    ours, theirs = terminal.open_pair("/dev/ptmx")
    report, writer = os.pipe()
    with subprocess.Popen(["sleep", "1000"], stdin=theirs, stdout=theirs) as program:
        relaying = os.fork()
        if not relaying:
            try:
                for each in (user, theirs):
                    os.close(each)
                terminal.relay(ours, os.pidfd_open(program.pid), source, source)
                os.write(writer, b"ended")
            finally:
                os._exit(0)
        for each in (source, ours, theirs, writer):
            os.close(each)
        until_raw(user)

        os.close(user)
        program.kill()  # as SIGHUP does

        assert select.select([report], [], [], SECONDS)[0]
    assert os.read(report, 1 << 16) == b"ended"
    os.waitpid(relaying, 0)
    os.close(report)


def until_raw(terminal: int) -> None:
    end = time.monotonic() + SECONDS
    while termios.tcgetattr(terminal)[3] & termios.ECHO and time.monotonic() < end:
        time.sleep(0.01)
