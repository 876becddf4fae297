"""`protokube drill`: how a verdict is told, as text and as data, and what the shell learns."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from builders.command import Call, environment
from builders.view import FakeCloud, ShortFolder, a_view, cloud_rows, write_state
from protokube.errors import ExitCode
from protokube.local.drill.ground import LocalGround


@pytest.fixture
def state(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with ShortFolder() as folder:
        monkeypatch.setenv("PROTOKUBE_STATE", str(folder))
        yield folder


@pytest.mark.parametrize("output", [(), ("-o", "json")])
def test_a_cluster_that_is_not_ready_is_left_alone(call: Call, state: Path, output: tuple[str, ...]) -> None:
    view = a_view()
    paths = write_state(state, view)
    with FakeCloud(paths.admin_socket, cloud_rows(view)) as cloud:
        answer = call("drill", "power-off", *output)

    assert (answer.code, answer.out) == (ExitCode.TRY_LATER, "")
    assert "a drill needs a ready cluster, and this one is not ready" in answer.err
    assert "power_off" not in {each["call"] for each in cloud.asked}


def test_one_drill_at_a_time(call: Call, state: Path) -> None:
    paths = write_state(state, a_view())
    with FakeCloud(paths.admin_socket, cloud_rows(a_view())):
        first = LocalGround(paths)
        try:
            answer = call("drill", "kill-master")
        finally:
            first.close()

    assert answer.code == ExitCode.TRY_LATER
    assert "another drill is under way in this cluster" in answer.err
    assert "another drill" not in call("drill", "kill-master").err


CUT_OFF = """
import time
from clusters.drill import PretendGround
from protokube.cli.drill import carry_out

class Ground(PretendGround):
    def sleep(self, seconds):
        if self.calls:
            print("cut", flush=True)
            time.sleep(600)
        super().sleep(seconds)

ground = Ground()
try:
    carry_out("partition", ground, "a", 600, quiet=True)
finally:
    print([(call, arguments["down"]) for call, arguments in ground.calls], flush=True)
"""


def test_a_drill_that_is_ended_politely_puts_the_cable_back() -> None:
    command, env = [sys.executable, "-c", CUT_OFF], environment(PYTHONPATH=str(Path(__file__).parents[2]))
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=env) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "cut\n"
        running.send_signal(signal.SIGTERM)
        try:
            output, _ = running.communicate(timeout=60)
        finally:
            running.kill()

    assert output == "[('cut_host', True), ('cut_host', False)]\n"
    assert running.returncode != 0
