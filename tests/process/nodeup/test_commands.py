"""Programs of the machine: their output, their deadline, and what outlives them."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from pathlib import Path

import pytest

from protokube.errors import Refused, TryLater
from protokube.nodeup.commands import MOST, MachineCommands
from protokube.nodeup.engine.leftovers import left_by_killed_runs, noted, start_of, wait_for


def alive(pid: int) -> bool:
    return start_of(pid) != ""


def number_in(file: Path) -> int:
    """What a child wrote, once it did."""
    while True:
        text = file.read_text() if file.exists() else ""
        if text.endswith("\n"):
            return int(text)
        time.sleep(0.01)


def until_gone(pid: int) -> None:
    while alive(pid):
        time.sleep(0.01)


def test_a_command_has_the_proxies_of_ours_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "http://proxy.example.com:3128")
    monkeypatch.setenv("PYTHONPATH", "/somewhere")

    ran = MachineCommands()(["env"], environment={"DEBIAN_FRONTEND": "noninteractive"})

    variables = set(ran.output.split())
    assert {"https_proxy=http://proxy.example.com:3128", "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C"} <= variables
    assert not any(each.startswith("PYTHONPATH") for each in variables)


def test_a_command_tells_how_it_ended_and_what_it_wrote() -> None:
    ran = MachineCommands()(["sh", "-c", "echo one; echo two >&2; exit 3"])

    assert (ran.code, ran.output) == (3, "one\ntwo\n")


def test_its_environment_is_ours_alone_and_more_if_it_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "x")
    monkeypatch.setenv("LANG", "de_DE.UTF-8")

    lines = set(MachineCommands()(["env"], environment={"DEBIAN_FRONTEND": "noninteractive"}).output.splitlines())

    assert {"LC_ALL=C", "HOME=/root", "DEBIAN_FRONTEND=noninteractive"} <= lines
    assert {line.partition("=")[0] for line in lines} <= {"LC_ALL", "HOME", "TERM", "PATH", "DEBIAN_FRONTEND", "PWD"}


def test_it_has_no_input_and_no_terminal_to_ask_at() -> None:
    ran = MachineCommands()(["sh", "-c", "cat; exec 3</dev/tty"])

    assert ran.code != 0
    assert "/dev/tty" in ran.output


def test_of_long_output_the_last_part_is_kept_and_lines_are_told_meanwhile() -> None:
    told: list[str] = []
    ran = MachineCommands()(
        ["sh", "-c", "yes 'a line' | head -c 1000000; printf '\\rlast\\033[0m\\n'"], say=told.append
    )

    assert len(ran.output) == MOST
    assert ran.output.endswith("last\033[0m\n")
    assert told[-1] == "last[0m"


def test_output_that_is_no_text_is_no_error() -> None:
    assert MachineCommands()(["printf", "\\377\\n"]).output == "�\n"


def test_a_command_that_does_not_end_is_ended_with_its_children(tmp_path: Path) -> None:
    script = f"sleep 1000 & echo $! > {tmp_path}/child; echo working; wait"

    with pytest.raises(TryLater, match=r"`sh` did not end in time and was stopped; it was given 0\.5 sec") as caught:
        MachineCommands()(["sh", "-c", script], seconds=0.5)

    assert caught.value.saw == "working"
    until_gone(number_in(tmp_path / "child"))


def test_one_that_ignores_the_polite_signal_is_ended_too(tmp_path: Path) -> None:
    script = f"trap '' TERM; echo $$ > {tmp_path}/pid; while :; do sleep 0.1; done"

    with pytest.raises(TryLater):
        MachineCommands(grace=0.2)(["sh", "-c", script], seconds=0.5)

    until_gone(number_in(tmp_path / "pid"))


def test_a_daemon_that_keeps_the_output_open_is_neither_waited_for_nor_ended(tmp_path: Path) -> None:
    ran = MachineCommands()(["sh", "-c", f"sleep 1000 & echo $! > {tmp_path}/child; echo done"], seconds=500)

    child = number_in(tmp_path / "child")
    assert ran.output == "done\n"
    assert alive(child)
    os.kill(child, 9)


def test_a_command_that_closes_its_output_is_waited_for() -> None:
    assert MachineCommands()(["sh", "-c", "exec >&- 2>&-; sleep 0.3; exit 4"]).code == 4


def test_all_commands_end_when_nodeup_is_stopped() -> None:
    stopping = threading.Event()

    def told(_: str) -> None:
        stopping.set()

    with pytest.raises(TryLater, match="`sh` was stopped, since nodeup is"):
        MachineCommands(stopping=stopping)(["sh", "-c", "echo began; sleep 1000"], say=told)
    with pytest.raises(TryLater, match="nodeup was stopped"):
        MachineCommands(stopping=stopping)(["true"])


def test_what_raises_while_it_is_told_ends_the_command(tmp_path: Path) -> None:
    def stop(_: str) -> None:
        raise TryLater("enough")

    with pytest.raises(TryLater, match="enough"):
        MachineCommands()(["sh", "-c", f"echo $$ > {tmp_path}/pid; echo x; sleep 1000"], say=stop)

    assert not alive(number_in(tmp_path / "pid"))


def test_a_program_that_is_missing_is_refused_by_name(tmp_path: Path) -> None:
    for commands in (MachineCommands(), MachineCommands(tmp_path)):
        with pytest.raises(Refused, match="there is no program no-such-program on this machine"):
            commands(["no-such-program"])
    with pytest.raises(Refused, match="there is no program /bin/none"):
        MachineCommands()(["/bin/none"])


def test_a_program_that_cannot_be_started_is_refused_with_the_reason(tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_bytes(b"\x7fELF")
    broken.chmod(0o755)

    with pytest.raises(Refused, match="cannot run") as caught:
        MachineCommands()([str(broken)])
    assert caught.value.saw == "Exec format error"


def test_the_next_run_waits_for_a_command_of_a_killed_one_and_ends_it_when_its_time_is_over(tmp_path: Path) -> None:
    """Written down are the process and when it began; a process that has got the same number meanwhile is not ours."""
    child = os.posix_spawn("/bin/sleep", ["sleep", "1000"], {}, setsid=True)
    waiting = threading.Thread(target=os.waitpid, args=(child, 0))
    waiting.start()
    told: list[str] = []
    note = tmp_path / str(child)
    with noted(tmp_path, child, "apt-get", 0.3):
        kept = note.read_text()
    note.write_text(kept)
    (tmp_path / "1").write_text('{"started": "not then", "command": "init", "deadline": 0}')
    (tmp_path / "2").write_text('{"start')

    assert [(each.pid, each.command) for each in left_by_killed_runs(tmp_path)] == [(child, "apt-get")]
    wait_for(tmp_path, told.append, lambda: False)

    waiting.join()
    assert told == [f"waiting for `apt-get` (process {child}), which an earlier run started"]
    assert list(tmp_path.iterdir()) == []


def test_a_note_is_there_while_a_command_runs_and_not_afterwards(tmp_path: Path) -> None:
    seen: list[Path] = []
    commands = MachineCommands(notes=tmp_path)
    commands(["sh", "-c", "echo x; sleep 0.1"], say=lambda _: seen.extend(tmp_path.iterdir()))

    assert len(seen) == 1
    assert list(tmp_path.iterdir()) == []


def test_a_command_whose_note_cannot_be_written_does_not_go_on_unseen(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("no folder")
    file = tmp_path / "pid"
    commands = MachineCommands(notes=tmp_path / "notes")

    with pytest.raises(FileExistsError):
        commands(["sh", "-c", f"echo $$ > {file}; exec sleep 1000"])

    if file.exists() and file.read_text().strip():
        assert not alive(int(file.read_text()))
    assert not [each for each in Path("/proc").glob("[0-9]*/cmdline") if str(file).encode() in contents(each)]


def contents(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError:  # it ended meanwhile
        return b""


def test_a_command_of_a_killed_run_that_cannot_be_ended_is_not_waited_for_without_end(tmp_path: Path) -> None:
    """As one that hangs in the kernel; here it is no group of its own."""
    with subprocess.Popen(["sleep", "1000"]) as stuck:
        with noted(tmp_path, stuck.pid, "mount", seconds=0), pytest.raises(TryLater) as raised:
            wait_for(tmp_path, lambda _: None, lambda: False, dying=0.0)
        stuck.kill()

    assert str(raised.value).splitlines() == [
        "`mount`, which an earlier run started, cannot be ended",
        f"  saw:  process {stuck.pid}",
        f"  hint: `cat /proc/{stuck.pid}/stack` shows where it hangs; a reboot ends it",
    ]
