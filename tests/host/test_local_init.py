"""The first process of a host, here as an ordinary process that adopts its orphans, and the client that talks to it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from clusters.hosts import eventually, fast_folder
from clusters.pod_runner import a_long_time, sleepers
from protokube.errors import Refused, TryLater
from protokube.host import Units
from protokube.local.host.units import LocalUnits

FOREVER = ("sleep", "1000")


class RunningInit:
    """Init over folders of its own."""

    def __init__(self, root: Path, process: subprocess.Popen[bytes], ready: int) -> None:
        self.root, self.process, self.ready = root, process, ready
        self.units = LocalUnits(root / "units.sock", seconds=20)

    def status(self, unit: str) -> dict[str, Any]:
        return self.units.status(unit)

    def log(self, unit: str) -> str:
        return (self.root / "log" / f"{unit}.log").read_text()

    def children(self) -> list[int]:
        listed = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
        return [int(pid) for pid in listed.split()]


@contextmanager
def an_init(
    units: Mapping[str, Sequence[str]] | None = None, startable: Mapping[str, Sequence[str]] | None = None
) -> Iterator[RunningInit]:
    root = Path(tempfile.mkdtemp(prefix="pk-init-", dir=fast_folder()))
    (root / "init.json").write_text(json.dumps({"units": units or {}, "startable": startable or {}}))
    reader, writer = os.pipe()
    with (root / "init.log").open("wb") as log:
        command = [sys.executable, "-m", "protokube.local.host.init", str(writer), str(root), str(root / "log")]
        process = subprocess.Popen(command, pass_fds=[writer], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    os.close(writer)
    try:
        assert os.read(reader, 99) == b'{"ready": true}\n', (root / "init.log").read_text()
        yield RunningInit(root, process, reader)
    finally:
        os.close(reader)
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        shutil.rmtree(root)


def test_units_run_from_the_start_and_others_when_asked() -> None:
    with an_init({"a.service": FOREVER}, {"b.service": FOREVER}) as init:
        assert os.read(init.ready, 1) == b""
        assert init.status("a.service")["state"] == "running"
        assert init.status("b.service")["state"] == "stopped"
        assert init.units.ensure_started("b.service") is True
        assert init.status("b.service")["state"] == "running"
        assert init.units.ensure_started("b.service") is False
        assert init.units.ensure_started("a.service") is False
        assert sorted(init.children()) == sorted(init.status(unit)["pid"] for unit in ("a.service", "b.service"))


def test_a_unit_that_nobody_knows_is_refused_by_name() -> None:
    with an_init({"a.service": FOREVER}) as init:
        with pytest.raises(Refused, match=r"no unit 'kubelet.service' here; there are a.service"):
            init.units.ensure_started("kubelet.service")
        with pytest.raises(Refused, match="no unit"):
            init.units.status("kubelet.service")


def test_the_client_is_what_the_agent_expects_of_a_service_manager() -> None:
    units: Units = LocalUnits(Path("/nowhere/units.sock"))
    with pytest.raises(TryLater, match="does not answer"):
        units.ensure_started("kubelet.service")


def test_a_first_process_that_is_silent_is_not_waited_for() -> None:
    with tempfile.TemporaryDirectory(prefix="pk-") as folder, socket.socket(socket.AF_UNIX) as silent:
        silent.bind(f"{folder}/units.sock")
        silent.listen()
        began = time.monotonic()
        with pytest.raises(TryLater, match="does not answer"):
            LocalUnits(Path(folder) / "units.sock", seconds=0.1).ensure_started("a.service")
        assert time.monotonic() - began < 10


@pytest.mark.parametrize("answer", [b"", b"nonsense\n", b'{"chan'])
def test_an_answer_that_is_none_is_for_later(answer: bytes) -> None:
    with tempfile.TemporaryDirectory(prefix="pk-") as folder, socket.socket(socket.AF_UNIX) as server:
        server.bind(f"{folder}/units.sock")
        server.listen()

        def reply() -> None:
            client, _ = server.accept()
            with client:
                client.recv(99)
                client.sendall(answer)

        thread = threading.Thread(target=reply)
        thread.start()
        with pytest.raises(TryLater):
            LocalUnits(Path(folder) / "units.sock").ensure_started("a.service")
        thread.join()


def test_a_unit_that_ends_is_started_again_later_and_later() -> None:
    began = time.monotonic()
    with an_init({"brief.service": ["sh", "-c", "echo life; exit 3"]}) as init:
        eventually(lambda: init.log("brief.service").count("life") >= 4)
        assert time.monotonic() - began >= 0.2 + 0.4 + 0.8
        status = eventually(lambda: seen if (seen := init.status("brief.service"))["restarts"] >= 3 else None)
        assert status["last_exit"] == "exit code 3"
        assert status["wait"] in (0.1 * 2 ** status["restarts"], 0.2 * 2 ** status["restarts"])
        assert "brief.service ended after" in (init.root / "init.log").read_text()


def test_a_unit_that_is_killed_comes_back() -> None:
    with an_init({"a.service": FOREVER}) as init:
        first = init.status("a.service")["pid"]
        os.kill(first, signal.SIGKILL)
        second = eventually(lambda: pid if (pid := init.status("a.service")["pid"]) not in (None, first) else None)
        assert second != first
        assert init.status("a.service")["last_exit"] == "killed by SIGKILL"
        assert init.status("a.service")["restarts"] == 1


def test_a_unit_is_started_anew_when_asked_and_says_for_how_long_it_has_been_running() -> None:
    with an_init({"a.service": FOREVER}, {"b.service": FOREVER}) as init:
        before = init.status("a.service")["pid"]
        eventually(lambda: (init.units.running_for("a.service") or 0) > 0.3)

        init.units.restart("a.service")

        eventually(lambda: init.status("a.service")["pid"] not in (before, None))
        assert not Path(f"/proc/{before}").exists()
        assert init.status("a.service")["last_exit"] == "killed by SIGTERM"
        again = init.units.running_for("a.service")
        assert again is not None
        assert eventually(lambda: (init.units.running_for("a.service") or 0) > again)

        init.units.restart("b.service")
        assert init.status("b.service")["state"] == "stopped", "what does not run is left alone"
        assert init.units.running_for("b.service") is None


def test_a_program_that_is_missing_is_told_and_found_once_it_is_there() -> None:
    with tempfile.TemporaryDirectory(prefix="pk-") as folder:
        program = Path(folder) / "late"
        with an_init({"late.service": [str(program)]}) as init:
            assert init.status("late.service")["state"] == "waiting"
            assert init.status("late.service")["last_exit"].startswith("cannot be started: No such file or directory")
            program.write_text("#!/bin/sh\nexec sleep 1000\n")
            program.chmod(0o755)
            eventually(lambda: init.status("late.service")["state"] == "running")


def test_orphans_are_adopted_and_reaped() -> None:
    leave = "(setsid sleep 1001 &); (setsid sleep 0.05 &); exec sleep 1000"
    with an_init({"parent.service": ["sh", "-c", leave]}) as init:
        parent = init.status("parent.service")["pid"]

        def adopted() -> list[int]:
            return [pid for pid in init.children() if Path(f"/proc/{pid}/cmdline").read_bytes() == b"sleep\0001001\0"]

        (orphan,) = eventually(adopted)
        os.kill(orphan, signal.SIGKILL)
        eventually(lambda: init.children() == [parent])
        assert init.status("parent.service")["restarts"] == 0


def test_what_a_unit_leaves_behind_ends_with_it() -> None:
    long = a_long_time(41)
    with an_init({"parent.service": ["sh", "-c", f"sleep {long} & sleep {long}"]}) as init:
        before = eventually(lambda: found if len(found := sleepers(long)) == 2 else None)
        os.kill(init.status("parent.service")["pid"], signal.SIGKILL)
        eventually(lambda: init.status("parent.service")["restarts"] == 1)
        eventually(lambda: len(after := sleepers(long)) == 2 and not set(before) & set(after))


def test_what_a_unit_says_about_itself_is_kept_until_it_starts_again(tmp_path: Path) -> None:
    say = (
        "import os, socket, sys, time\n"
        "if not os.path.exists(sys.argv[1]): time.sleep(1000)\n"
        "s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); s.connect(os.environ['NOTIFY_SOCKET'])\n"
        "s.send(b'READY=1\\nSTATUS=round 3\\nMAINPID=1\\nnonsense'); s.send(b'WATCHDOG=1'); time.sleep(1000)"
    )
    talkative = tmp_path / "talkative"
    talkative.touch()
    units = {"say.service": [sys.executable, "-I", "-c", say, str(talkative)], "mute.service": FOREVER}
    with an_init(units) as init:
        eventually(lambda: init.status("say.service")["watchdog_seconds"] is not None)
        told = init.status("say.service")
        assert (told["ready"], told["status"]) == (True, "round 3")
        assert 0 <= told["watchdog_seconds"] < 5
        assert init.status("mute.service")["ready"] is False
        talkative.unlink()
        os.kill(told["pid"], signal.SIGKILL)
        eventually(lambda: init.status("say.service")["restarts"] == 1)
        again = init.status("say.service")
        assert (again["ready"], again["status"], again["watchdog_seconds"]) == (False, "", None)


def test_output_goes_to_a_log_for_each_unit() -> None:
    with an_init({"loud.service": ["sh", "-c", "echo out; echo err >&2; exec sleep 1000"]}) as init:
        eventually(lambda: init.log("loud.service") == "out\nerr\n")


def test_a_unit_starts_with_a_clean_slate() -> None:
    show = "ls -l /proc/self/fd | wc -l; grep SigIgn /proc/self/status; ps -o sid= -p $$; echo $$; exec sleep 1000"
    with an_init({"show.service": ["sh", "-c", show]}) as init:
        lines = eventually(lambda: found if len(found := init.log("show.service").split("\n")) > 4 else None)
        assert int(lines[0]) <= 6  # a heading, the standard three, and the folder that `ls` reads
        assert int(lines[1].split()[1], 16) & 1 << (signal.SIGPIPE - 1) == 0
        assert lines[2].strip() == lines[3].strip()


def test_the_power_button_asks_every_unit_and_ends() -> None:
    gentle = "trap 'echo asked; exit 0' TERM; echo up; while :; do sleep 0.01; done"
    with an_init({"one.service": ["sh", "-c", gentle], "two.service": ["sh", "-c", gentle]}) as init:
        eventually(lambda: init.log("one.service") == init.log("two.service") == "up\n")
        init.process.send_signal(signal.SIGTERM)
        init.process.send_signal(signal.SIGTERM)
        assert init.process.wait(30) == 0
        assert init.log("one.service") == "up\nasked\n"
        assert init.log("two.service") == "up\nasked\n"


def test_the_power_button_does_not_wait_for_units_that_wait_to_be_started_again() -> None:
    with an_init({"broken.service": ["/nowhere/program"]}) as init:
        began = time.monotonic()
        init.process.send_signal(signal.SIGTERM)
        assert init.process.wait(30) == 0
        assert time.monotonic() - began < 10


def ask(init: RunningInit, request: bytes) -> bytes:
    with socket.socket(socket.AF_UNIX) as link:
        link.settimeout(5)
        link.connect(str(init.root / "units.sock"))
        link.sendall(request)
        return link.makefile("rb").readline()


@pytest.mark.parametrize(
    ("request_line", "told"),
    [
        (b"nonsense\n", "this is not JSON"),
        (b"[1, 2]\n", "ask with a JSON object"),
        (b"{}\n", "ask for start, restart or status"),
        (b'{"start": 7}\n', "no unit 7"),
        (b'{"start": ["a.service"]}\n', "no unit"),
        (b"\xff\xfe\n", "this is not JSON"),
        (b"[" * 60000 + b"\n", "this is not JSON"),
    ],
)
def test_a_client_that_talks_nonsense_is_told_so(shared: RunningInit, request_line: bytes, told: str) -> None:
    assert told in json.loads(ask(shared, request_line))["error"]
    assert shared.status("a.service")["state"] == "running"


@pytest.fixture(scope="module")
def shared() -> Iterator[RunningInit]:
    with an_init({"a.service": FOREVER}) as init:
        yield init


def test_many_requests_come_on_one_connection(shared: RunningInit) -> None:
    with socket.socket(socket.AF_UNIX) as link:
        link.settimeout(5)
        link.connect(str(shared.root / "units.sock"))
        link.sendall(b'{"status": "a.service"}\n{"start": "a.service"}\n{"sta')
        answers = link.makefile("rb")
        assert json.loads(answers.readline())["unit"] == "a.service"
        assert json.loads(answers.readline()) == {"changed": False}
        link.sendall(b'tus": "a.service"}\n')
        assert json.loads(answers.readline())["unit"] == "a.service"


def test_a_client_that_says_nothing_or_too_much_or_leaves_hinders_nobody(shared: RunningInit) -> None:
    silent, leaving, endless = (socket.socket(socket.AF_UNIX) for _ in range(3))
    for link in (silent, leaving, endless):
        link.connect(str(shared.root / "units.sock"))
    leaving.close()
    endless.settimeout(5)
    with pytest.raises((BrokenPipeError, ConnectionResetError)):
        endless.sendall(b"x" * (1 << 20))
    endless.close()
    assert shared.status("a.service")["state"] == "running"
    silent.close()


def test_the_sockets_are_for_root_alone(shared: RunningInit) -> None:
    assert (shared.root / "units.sock").stat().st_mode & 0o777 == 0o600
    assert (shared.root / "notify-a.service.sock").stat().st_mode & 0o777 == 0o600


def test_it_imports_little_since_each_host_starts_it() -> None:
    """Without `site`, as a host starts it. How long that takes is measured in bench/."""
    code = "import sys; sys.path[:0] = [sys.argv[1]]; import protokube.local.host.init; print(*sys.modules)"
    source = str(Path(__file__).resolve().parents[2] / "src")
    started = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code, source], capture_output=True, text=True, check=True
    )
    modules = set(started.stdout.split())
    assert "protokube.local.host.init" in modules
    assert modules & {"asyncio", "click", "dataclasses", "inspect", "ssl", "subprocess", "typing", "yaml"} == set()
    assert len(modules) < 130, sorted(modules)
