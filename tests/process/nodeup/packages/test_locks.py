from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from protokube.errors import TryLater
from protokube.nodeup.facts import Facts
from protokube.nodeup.machine import Machine, Ran
from protokube.nodeup.packages import locks

HOLD = (
    "import fcntl, sys; f = open(sys.argv[1], 'w'); fcntl.lockf(f, fcntl.LOCK_EX); print(flush=True); sys.stdin.read()"
)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    for each in locks.LOCKS:
        (tmp_path / each.lstrip("/")).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / each.lstrip("/")).touch()
    facts = Facts(distribution="debian", distribution_version="12")
    return Machine(facts=facts, run=lambda *_, **__: Ran(0, ""), root=tmp_path)


@pytest.fixture(params=locks.LOCKS)
def holder(machine: Machine, request: pytest.FixtureRequest) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", HOLD, str(machine.path(request.param))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline()
        yield process


def test_a_holder_is_named_and_waited_for(machine: Machine, holder: subprocess.Popen[str]) -> None:
    said: list[str] = []

    def say(line: str) -> None:
        said.append(line)
        assert holder.stdin
        holder.stdin.close()

    locks.wait(machine, say)

    (told,) = said
    assert f"(pid {holder.pid}) to release the lock of the package manager" in told
    assert locks.holders(machine) == ()


def test_after_the_time_is_up_it_is_for_later_and_says_who(machine: Machine, holder: subprocess.Popen[str]) -> None:
    minutes = count(0.0, 300.0)

    with pytest.raises(TryLater, match="another program has worked on the packages for 600 s") as caught:
        locks.wait(machine, lambda _: None, clock=lambda: next(minutes))

    assert f"(pid {holder.pid})" in caught.value.saw


def test_without_lock_files_nobody_holds_them(machine: Machine) -> None:
    for each in locks.LOCKS:
        machine.path(each).unlink()

    assert locks.holders(machine) == ()
