"""Progress while a step lasts: nothing is silent for long, and what is printed stays readable."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys

PROGRAM = """
import sys
from protokube.cli.shared.progress import Progress
progress = Progress(quiet={quiet})
with progress.step("at once"):
    pass
with progress.step("slow"):
    sys.stdin.read(1)
    progress.say("waiting for etcd")
    sys.stdin.read(1)
    progress.note("a line that stays")
"""
"""It goes on when it is told to."""


class Shown:
    """What the program has printed, until something was seen of it."""

    def __init__(self, process: subprocess.Popen[bytes], output: int) -> None:
        self.process, self._output, self.text = process, output, ""
        self._raw = b""

    def until(self, pattern: str) -> None:
        while not re.search(pattern, self.text, re.DOTALL):
            self._raw += os.read(self._output, 1000)
            self.text = self._raw.decode(errors="ignore")

    def go_on(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(b"x")
        self.process.stdin.flush()


def program(*, quiet: bool = False) -> list[str]:
    return [sys.executable, "-c", PROGRAM.format(quiet=quiet)]


def test_in_a_pipe_a_step_that_lasts_gets_dots_and_its_own_line_at_the_end() -> None:
    with subprocess.Popen(program(), stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        shown = Shown(process, process.stderr.fileno())
        shown.until(r"slow \.\.")
        shown.go_on()
        shown.until(r"etcd \.")
        shown.go_on()
        shown.until(r"✓  slow.*\n")

    lines = [re.sub(r" +[\d.]+ s$", "", line) for line in shown.text.splitlines()]
    assert [re.sub(r"\.+$", "..", line) for line in lines] == [
        "  ✓  at once", "  …  slow ..", "  …  waiting for etcd ..", "     a line that stays", "  ✓  slow",
    ]  # fmt: skip


def test_on_a_terminal_one_line_counts_the_seconds() -> None:
    leader, follower = pty.openpty()
    with subprocess.Popen(program(), stdin=subprocess.PIPE, stderr=follower) as process:
        os.close(follower)
        shown = Shown(process, leader)
        shown.until(r"slow, \d+ s.*slow, \d+ s")
        shown.go_on()
        shown.until(r"etcd, \d+ s")
        shown.go_on()
        shown.until(r"✓.*  slow .*\n")
    os.close(leader)

    assert "\r\x1b[K  …  waiting for etcd\r" in shown.text
    assert shown.text.count("\n") == 3


NESTED = """
import sys
from protokube.cli.shared.progress import Progress
progress = Progress()
with progress.step("outer"):
    sys.stdin.read(1)
    with progress.step("inner"):
        sys.stdin.read(1)
    sys.stdin.read(1)
"""


def test_a_step_in_another_one_counts_its_own_seconds_and_then_the_other_one_goes_on() -> None:
    leader, follower = pty.openpty()
    with subprocess.Popen([sys.executable, "-c", NESTED], stdin=subprocess.PIPE, stderr=follower) as process:
        os.close(follower)
        shown = Shown(process, leader)
        shown.until(r"outer, 2 s")
        shown.go_on()
        shown.until(r"inner, 2 s")
        shown.go_on()
        shown.until(r"✓.*  inner .*outer, \d+ s")
        shown.go_on()
        shown.until(r"✓.*  outer .*\n")
    os.close(leader)

    inner = [int(each) for each in re.findall(r"inner, (\d+) s", shown.text)]
    assert inner == sorted(set(inner))
    assert inner[0] <= 2


def test_a_program_that_reads_the_result_as_data_is_not_told() -> None:
    assert subprocess.run(program(quiet=True), input=b"xx", stderr=subprocess.PIPE, check=True).stderr == b""
