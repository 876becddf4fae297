"""Ctrl-C, SIGTERM and SIGKILL, as a shell or an init sends them; and two nodeups at one time."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from builders.nodeup import DEBIAN, OURS, Heard, a_root
from protokube.errors import Refused, TryLater
from protokube.nodeup.engine.control import Control
from protokube.nodeup.engine.leftovers import start_of
from protokube.nodeup.engine.lock import locked, place_for
from protokube.nodeup.facts import Facts
from protokube.nodeup.provision import Place, foresee, provision
from protokube.nodeup.run import RunControl
from protokube.nodeup.trace import FOLDER, read
from protokube.nodeup.values import File, Task

RUN = Path(__file__).parent / "stopped_run.py"
TESTS = Path(__file__).parents[2]
OWNER, GROUP = OURS


class Started:
    """A run, as a process of its own."""

    def __init__(self, folder: Path) -> None:
        self.root, self.run = folder / "root", folder / "run"
        self.process = subprocess.Popen(
            [sys.executable, str(RUN), str(self.root), str(self.run), OWNER, GROUP],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
            env={"PATH": os.defpath, "PYTHONPATH": f"{TESTS}:{TESTS.parent / 'src'}"},
        )  # fmt: skip

    def working(self) -> int:
        """Wait until the long command runs; its process."""
        file = self.root / "pid"
        while not (file.exists() and file.read_text().endswith("\n")):
            assert self.process.poll() is None, self.process.communicate()[0]
            time.sleep(0.01)
        return int(file.read_text())

    def ended(self) -> str:
        return self.process.communicate(timeout=60)[0]


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Started]:
    a_root(tmp_path / "root")
    each = Started(tmp_path)
    yield each
    if each.process.poll() is None:
        os.killpg(each.process.pid, signal.SIGKILL)
    each.process.communicate()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_run_with_its_commands_and_a_report(started: Started, number: int) -> None:
    command = started.working()
    os.kill(started.process.pid, number)

    lines = started.ended().splitlines()

    assert lines[0].startswith("changed  file /first: content: missing -> 1 bytes (")
    assert set(lines[1:3]) == {
        "stopped  file /last: nodeup was stopped",
        "stopped  command long: `sh` was stopped, since nodeup is (working)",
    }
    assert lines[3:] == ["end: stopped"]
    assert start_of(command) == ""
    _, trace = read(started.root / FOLDER[1:])
    assert trace.end == "stopped"
    assert [str(each.result) for each in trace.outcomes] == ["changed", "stopped", "stopped"]


def test_a_second_nodeup_says_who_holds_the_machine_and_a_killed_one_holds_nothing(started: Started) -> None:
    command = started.working()
    place = place_for(started.root, started.run)

    with pytest.raises(TryLater, match="another nodeup is at work on this machine") as caught, locked(place, "second"):
        pass
    assert caught.value.saw == f"process {started.process.pid}: protokube nodeup"

    os.kill(started.process.pid, signal.SIGKILL)
    started.process.wait()
    os.kill(command, signal.SIGKILL)
    with locked(place, "second"):
        pass


def test_roots_have_locks_of_their_own_also_under_another_name(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "other").symlink_to("one")

    assert place_for(tmp_path / "one", tmp_path) == place_for(tmp_path / "other", tmp_path)
    assert place_for(tmp_path / "one", tmp_path) != place_for(Path("/"), tmp_path)


def a_place(folder: Path) -> Place:
    return Place(root=a_root(folder / "root").root, run=folder / "run")


def test_a_run_that_cannot_begin_leaves_a_trace_that_says_why(tmp_path: Path) -> None:
    place = a_place(tmp_path)

    def prepare() -> Any:
        raise Refused("no setup", hint="give one")

    with pytest.raises(Refused, match="no setup"):
        provision(prepare, place, Heard(), Control())

    number, trace = read(place.inside(FOLDER))
    assert (number, trace.end, trace.error, trace.outcomes) == (1, "error", "no setup; give one", ())


def test_after_a_signal_before_the_first_task_nothing_begins(tmp_path: Path) -> None:
    place = a_place(tmp_path)
    control: RunControl = Control()

    def prepare() -> tuple[Facts, tuple[Task, ...]]:
        control.stop()
        return DEBIAN, (File(path="/x", content=b"", owner=OWNER, group=GROUP),)

    assert provision(prepare, place, Heard(), control).end == "stopped"
    assert not (place.root / "x").exists()


def test_a_list_of_tasks_that_is_wrong_changes_nothing(tmp_path: Path) -> None:
    place = a_place(tmp_path)
    twice: tuple[Task, ...] = (File(path="/x", content=b""), File(path="/x", content=b""))

    with pytest.raises(Refused, match="the tasks of this machine contradict each other: 1 problem"):
        provision(lambda: (DEBIAN, twice), place, Heard(), Control())

    assert not (place.root / "x").exists()


def test_a_plan_writes_nothing_at_all(tmp_path: Path) -> None:
    place = a_place(tmp_path)
    before = sorted(tmp_path.rglob("*"))

    outcomes = foresee(
        lambda: (DEBIAN, (File(path="/x", content=b"", owner=OWNER, group=GROUP),)), place, Heard(), Control()
    )

    assert [str(each.result) for each in outcomes] == ["changed"]
    assert sorted(tmp_path.rglob("*")) == before


def test_a_trace_has_no_secret_and_only_the_newest_are_kept(tmp_path: Path) -> None:
    place = a_place(tmp_path)
    for number in range(13):
        key = File(path="/key", content=b"SECRET%d" % number, mode=0o600, secret=True, owner=OWNER, group=GROUP)
        assert provision(lambda key=key: (DEBIAN, (key,)), place, Heard(), Control()).end == "done"  # type: ignore[misc]

    folder = place.inside(FOLDER)
    assert [each.name for each in sorted(folder.iterdir())] == [f"{number:06d}.json" for number in range(4, 14)]
    text = "".join(each.read_text() for each in folder.iterdir())
    assert "SECRET" not in text
    assert json.loads((folder / "000013.json").read_text())["tasks"][0]["changes"] == [
        {"what": "content", "saw": "(secret)", "want": "(secret)"}
    ]


def test_a_trace_that_cannot_be_written_is_told_and_the_run_counts(tmp_path: Path) -> None:
    place, heard = a_place(tmp_path), Heard()
    (place.root / "var").mkdir()
    (place.root / "var/log").write_bytes(b"a file")

    trace = provision(
        lambda: (DEBIAN, (File(path="/x", content=b"", owner=OWNER, group=GROUP),)), place, heard, Control()
    )

    assert trace.end == "done"
    assert any(line.startswith("trace: not written: ") for line in heard.lines)


def test_a_root_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="there is no directory"):
        provision(lambda: (DEBIAN, ()), Place(root=tmp_path / "none", run=tmp_path), Heard(), Control())
    assert not (tmp_path / "none").exists()
