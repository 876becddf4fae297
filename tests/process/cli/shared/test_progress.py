"""Progress as a reader of stderr sees it, in a pipe and on a terminal, while a step takes long."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from contextlib import suppress

from builders.command import environment

SCRIPT = """
import sys, time
from protokube.cli.shared.progress import Progress
progress = Progress(quiet="quiet" in sys.argv)
with progress.step("first") as step:
    time.sleep({first})
    progress.say("now something else")
    time.sleep({first})
    step.text = "first is done"
with progress.step("second"):
    pass
"""


def said(first: float, *words: str) -> list[str]:
    ran = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(first=first), *words], capture_output=True, text=True, env=environment()
    )
    assert (ran.returncode, ran.stdout) == (0, "")
    return ran.stderr.splitlines()


def test_a_short_step_is_one_line_in_a_pipe() -> None:
    assert [re.sub(r" +[\d.]+ s$", "", each) for each in said(0.01)] == ["  ✓  first is done", "  ✓  second"]


def test_a_long_step_is_told_in_a_pipe_while_it_runs_with_what_was_said_last() -> None:
    lines = said(2.2)
    waiting = [each for each in lines if each.startswith("  …  ")]

    assert re.match(r"  …  first  \(\d+ s\)$", waiting[0])
    assert re.match(r"  …  now something else  \(\d+ s\)$", waiting[-1])
    assert [each for each in lines if each not in waiting] == lines[-2:]


def test_who_wants_no_progress_gets_none() -> None:
    assert said(1.8, "quiet") == []


def test_on_a_terminal_the_line_of_a_long_step_counts_its_seconds_in_place() -> None:
    master, slave = pty.openpty()
    try:
        command = [sys.executable, "-c", SCRIPT.format(first=1.9)]
        ran = subprocess.run(command, stderr=slave, env=environment(TERM="xterm"), check=True)
        os.close(slave)
        slave = -1
        shown = b""
        with suppress(OSError):  # all of it is read
            while data := os.read(master, 65536):
                shown += data
    finally:
        os.close(master)
        if slave >= 0:
            os.close(slave)
    assert ran.returncode == 0
    text = shown.decode()
    assert re.search(r"\r\x1b\[K  …  first  \(\d+ s\)", text)
    assert re.search(r"\x1b\[32m  ✓\x1b\[0m  first is done +\d+\.\d\d s", text)
