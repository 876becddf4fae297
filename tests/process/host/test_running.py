"""Real processes: which of them runs as its manifest says, and which is still the one of before."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fakes.watch_server import until
from protokube.host.running import SLACK, Command, HostProcesses, Runs

SLEEP = "import time; time.sleep(600)"
PROGRAM = "protokube-test-program"
"""A base name that nothing else on the machine has."""


class Child:
    """Starts processes of this test, and ends them."""

    def __init__(self, folder: Path) -> None:
        self.manifest, self.program = folder / "x.manifest", folder / PROGRAM
        self.manifest.write_text("kind: Pod")
        self.program.symlink_to(sys.executable)
        self.started: list[subprocess.Popen[bytes]] = []

    def start(self, *arguments: str, **environment: str) -> subprocess.Popen[bytes]:
        """As a static pod does: by the path of its program."""
        code = [str(self.program), "-c", SLEEP, *arguments]
        child = subprocess.Popen(code, env={**os.environ, **environment})
        self.started.append(child)
        place = Path(f"/proc/{child.pid}/cmdline")
        until(lambda: PROGRAM in place.read_text(), "it is executed")
        return child

    def runs(self, *arguments: str, program: str = PROGRAM, **environment: str) -> Runs:
        command = Command(program=program, arguments=arguments, environment=environment, manifest=self.manifest)
        return HostProcesses().runs(command)

    def written(self, seconds: float) -> None:
        """The manifest was written so many seconds from now."""
        at = time.time() + seconds
        os.utime(self.manifest, (at, at))


@pytest.fixture
def child(tmp_path: Path) -> Iterator[Child]:
    made = Child(tmp_path)
    yield made
    for each in made.started:
        each.kill()
        each.wait()


def test_what_does_not_run_does_not_run(child: Child) -> None:
    assert child.runs() is Runs.NOT


def test_without_a_manifest_nothing_runs_as_it_says(child: Child) -> None:
    child.start()
    child.manifest.unlink()

    assert child.runs() is Runs.NOT


def test_a_process_with_the_arguments_of_its_manifest_is_current(child: Child) -> None:
    child.start("--quota=4", "--name=a b", "")

    assert child.runs("--quota=4", "--name=a b", "") is Runs.CURRENT
    assert child.runs() is Runs.CURRENT


@pytest.mark.parametrize("arguments", [("--quota=8",), ("--quota=4", "--new"), ("--new", "--quota=4"), ("--quota=",)])
def test_a_process_with_other_arguments_is_old(child: Child, arguments: tuple[str, ...]) -> None:
    child.start("--quota=4")

    assert child.runs(*arguments) is Runs.OLD


def test_a_process_that_started_before_its_manifest_was_written_is_old(child: Child) -> None:
    child.start("--quota=4")
    time.sleep(2 * SLACK)
    child.written(0.0)

    assert child.runs("--quota=4") is Runs.OLD
    child.written(-60.0)
    assert child.runs("--quota=4") is Runs.CURRENT


def test_a_process_started_right_after_its_manifest_was_written_is_current(child: Child) -> None:
    child.written(0.0)
    child.start()

    assert child.runs() is Runs.CURRENT


def test_a_manifest_of_the_future_says_nothing_because_the_clock_was_set_back(child: Child) -> None:
    """It has not changed since, so nothing restarts: a process that looks old for an hour would fail a rollout."""
    child.start("--quota=4")
    child.written(3600.0)

    assert child.runs("--quota=4") is Runs.CURRENT
    assert child.runs("--quota=8") is Runs.OLD


def test_of_the_old_and_the_new_process_the_new_one_counts(child: Child) -> None:
    child.start("--quota=4")
    child.start("--quota=8")

    assert child.runs("--quota=8") is Runs.CURRENT


def test_only_a_process_with_this_environment_is_meant(child: Child) -> None:
    child.start(ETCD_CONFIG_FILE="/etc/etcd/main.yaml")

    assert child.runs(ETCD_CONFIG_FILE="/etc/etcd/main.yaml") is Runs.CURRENT
    assert child.runs(ETCD_CONFIG_FILE="/etc/etcd/events.yaml") is Runs.NOT
    assert child.runs(ETCD_CONFIG_FILE="/etc/etcd/main.yam") is Runs.NOT
    assert child.runs(NO_SUCH_VARIABLE="") is Runs.NOT


def test_a_program_is_told_by_its_base_name_alone(child: Child) -> None:
    child.start("--name=etcd")

    assert child.runs(program=PROGRAM[:-1]) is Runs.NOT
    assert child.runs("--name=etcd", program="etcd") is not Runs.CURRENT


def test_a_program_of_an_interpreter_is_told_by_its_first_argument(child: Child) -> None:
    child.start("protokube-test-controller", "--dns=a")

    assert child.runs("protokube-test-controller", "--dns=a", program="") is Runs.CURRENT
    assert child.runs("protokube-test-controller", "--dns=b", program="") is Runs.OLD
    assert child.runs("protokube-test-agent", "--dns=a", program="") is Runs.NOT


def test_a_process_that_has_ended_and_waits_for_its_parent_does_not_run(child: Child) -> None:
    ended = child.start()
    ended.kill()
    stat = Path(f"/proc/{ended.pid}/stat")

    until(lambda: stat.read_text().rpartition(") ")[2].startswith("Z"), "it has ended")
    assert child.runs() is Runs.NOT


def test_a_process_whose_name_looks_like_fields_of_proc_is_read_right(child: Child, tmp_path: Path) -> None:
    """The kernel puts the name of a program between parentheses, whatever it contains."""
    odd = tmp_path / "a) Z 1 ("
    odd.symlink_to(sys.executable)
    started = subprocess.Popen([str(odd), "-c", SLEEP])
    child.started.append(started)

    until(lambda: child.runs(program=odd.name) is Runs.CURRENT, "it runs")


def test_processes_that_come_and_go_meanwhile_are_no_error(child: Child) -> None:
    child.start("--quota=4")
    passing = [subprocess.Popen(["true"]) for _ in range(20)]
    found = {child.runs("--quota=4") for _ in range(20)}
    for each in passing:
        each.wait()

    assert found == {Runs.CURRENT}
