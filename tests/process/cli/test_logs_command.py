"""`protokube logs` as a process: what it shows, what it follows, and how it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from builders.command import COMMAND, Answer, environment, process
from builders.local_state import LocalState
from protokube.errors import ExitCode

SECONDS = 20.0
AGENT, API = "protokube.service.log", "pods/kube-system_kube-apiserver/kube-apiserver.log"
ETCD = "pods/kube-system_etcd-server/etcd-container.log"
A, B = "master-a-1x2y", "master-b-3z4w"


@pytest.fixture
def state(tmp_path: Path) -> LocalState:
    made = LocalState(tmp_path)
    for number, host in enumerate((A, B)):
        made.host(host)
        made.log(host, AGENT, f"2026-11-19T06:00:0{number}Z first", f"2026-11-19T06:00:0{number + 2}Z second", "  more")
        made.log(host, ETCD, f'{{"ts":"2026-11-19T06:00:0{number}.5Z","msg":"etcd"}}')
        made.volume("ab"[number], host)
    return made


def logs(state: LocalState, *words: str) -> Answer:
    return process("logs", *words, env={"PROTOKUBE_STATE": str(state.paths.root.parent)})


class Running:
    """`logs -f` as a process, and what it has written so far."""

    def __init__(self, command: subprocess.Popen[bytes], folder: Path) -> None:
        self.command, self.out, self.err = command, folder / "out", folder / "err"

    def until(self, seen: str, where: Callable[[Running], Path] = lambda running: running.out) -> None:
        end = time.monotonic() + SECONDS
        while seen not in where(self).read_text():
            assert time.monotonic() < end, f"{seen!r} not in {self.out.read_text()!r} {self.err.read_text()!r}"
            assert self.command.poll() is None, self.err.read_text()
            time.sleep(0.02)

    def told(self, seen: str) -> None:
        self.until(seen, lambda running: running.err)


@contextmanager
def following(state: LocalState, folder: Path, *words: str) -> Iterator[Running]:
    env = environment(PROTOKUBE_STATE=str(state.paths.root.parent))
    with (folder / "out").open("wb") as out, (folder / "err").open("wb") as err:
        command = subprocess.Popen([*COMMAND, "logs", "-f", *words], stdout=out, stderr=err, env=env)
    try:
        yield Running(command, folder)
    finally:
        command.kill()
        command.wait(SECONDS)


def test_without_a_name_it_lists_which_logs_there_are(state: LocalState) -> None:
    text, data = logs(state), logs(state, "-o", "json")

    assert (text.code, text.err) == (ExitCode.OK, "")
    assert [line.split()[0] for line in text.out.splitlines()[:5]] == ["LOG", "agent", "etcd", "main/a", "main/b"]
    tree = json.loads(data.out)
    assert {each["name"]: each["hosts"] for each in tree["logs"]} == {
        "agent": [A, B], "etcd": [A, B], "main/a": [A], "main/b": [B],
    }  # fmt: skip
    assert tree["hosts"] == [A, B]


def test_a_component_of_all_hosts_is_merged_by_time_and_continuations_stay_with_their_line(state: LocalState) -> None:
    answer = logs(state, "agent")

    assert answer.out.splitlines() == [
        f"{A} | 2026-11-19T06:00:00Z first",
        f"{B} | 2026-11-19T06:00:01Z first",
        f"{A} | 2026-11-19T06:00:02Z second",
        f"{A} |   more",
        f"{B} | 2026-11-19T06:00:03Z second",
        f"{B} |   more",
    ]
    assert (answer.code, answer.err) == (ExitCode.OK, "")


def test_a_host_is_its_agent_and_a_member_its_etcd_without_a_prefix(state: LocalState) -> None:
    assert logs(state, A).out.splitlines()[0] == "2026-11-19T06:00:00Z first"
    assert logs(state, "main/b").out == '{"ts":"2026-11-19T06:00:01.5Z","msg":"etcd"}\n'
    assert logs(state, f"{B}/etcd").out == logs(state, "etcd-b").out == logs(state, "main/b").out
    assert logs(state, "main/a", A).out.splitlines()[1].startswith(f"{A}/etcd ")


def test_tail_counts_the_lines_that_are_shown_and_since_looks_at_their_times(state: LocalState) -> None:
    now = datetime.now(UTC)
    state.log(B, AGENT, f"{now - timedelta(minutes=2):%FT%TZ} recent", f"{now:%FT%TZ} newest")

    assert [line.rpartition(" ")[2] for line in logs(state, "agent", "--tail", "3").out.splitlines()] == [
        "more", "recent", "newest",
    ]  # fmt: skip
    assert len(logs(state, "agent", "--since", "10m").out.splitlines()) == 2
    assert len(logs(state, "agent", "--since", "1m").out.splitlines()) == 1
    assert logs(state, "agent", "-n", "0") == Answer(0, "", "")


def test_as_data_each_line_is_one_object(state: LocalState) -> None:
    found = [json.loads(line) for line in logs(state, "agent", "main/a", "-o", "json").out.splitlines()]

    assert [(each["host"], each["log"]) for each in found[:2]] == [(A, "agent"), (A, "etcd")]
    assert found[0]["time"] == "2026-11-19T06:00:00.000000+00:00"


def test_bytes_that_are_no_utf8_do_not_end_it(state: LocalState) -> None:
    with (state.paths.host(A) / "var/log" / AGENT).open("ab") as file:
        file.write(b"caf\xe9\nhalf a line")

    assert logs(state, A).out.splitlines()[-2:] == ["caf\ufffd", "half a line"]


def test_a_cluster_whose_hosts_are_all_dead_still_shows_what_they_logged(state: LocalState) -> None:
    for host in (A, B):
        state.kill(host)

    assert len(logs(state, "agent").out.splitlines()) == 6
    gone = logs(state, A, "-n", "1")
    assert (gone.out, gone.err) == ("  more\n", f"--- {A} is gone\n")
    assert logs(state, "main/a").err == f"--- nobody holds main/a now; it was on {A}\n"


@pytest.mark.parametrize(
    ("words", "code", "hint"),
    [
        (("kube-apisrver",), "not-found", "did you mean `kube-apiserver`?"),
        ((f"{A}/etc",), "not-found", "did you mean `etcd`?"),
        (("-f",), "invalid-request", "protokube logs -f agent"),
        (("--tail", "3"), "invalid-request", "protokube logs -f agent"),
        (("agent", "--since", "yesterday"), "usage", "protokube logs --help"),
        (("agent", "--tail", "-1"), "usage", "protokube logs --help"),
    ],
)
def test_a_wrong_call_is_one_error_with_a_code_and_a_hint(
    state: LocalState, words: tuple[str, ...], code: str, hint: str
) -> None:
    state.log(A, API, "x")
    answer = logs(state, *words, "-o", "json")

    assert (answer.code, answer.out) == (ExitCode.INVALID, "")
    assert (json.loads(answer.err)["code"], json.loads(answer.err)["hint"]) == (code, hint)


@pytest.mark.parametrize(("variables", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_on_a_terminal_hosts_have_colours_unless_they_are_not_wanted(
    state: LocalState, variables: dict[str, str], coloured: bool
) -> None:
    state.log(A, AGENT, "2026-11-19T06:00:09Z \x1b[31mred")
    env = environment(PROTOKUBE_STATE=str(state.paths.root.parent), **variables)
    ours, theirs = os.openpty()
    with subprocess.Popen([*COMMAND, "logs", "agent"], stdout=theirs, stderr=theirs, env=env) as command:
        assert command.wait(SECONDS) == ExitCode.OK
    shown = os.read(ours, 65536).decode()
    os.close(theirs)
    os.close(ours)

    assert (f"\x1b[36m{A} | \x1b[0m" in shown) is coloured
    assert "\ufffd[31mred" in shown
    assert ("\x1b" in shown) is coloured


def test_a_host_that_dies_is_told_and_its_replacement_is_followed_until_ctrl_c(
    state: LocalState, tmp_path: Path
) -> None:
    with following(state, tmp_path, A, "--tail", "1") as running:
        running.until("more")
        state.log(A, AGENT, "last words")
        running.until("last words")
        state.kill(A)
        running.told(f"--- {A} is gone")
        successor = state.host("master-a-9new")
        state.log(successor, AGENT, "hello")
        running.told(f"--- {successor} replaces {A}")
        running.until("hello")
        running.command.send_signal(signal.SIGINT)

        assert running.command.wait(SECONDS) == ExitCode.STOPPED
        assert running.out.read_text() == "  more\nlast words\nhello\n"
        assert running.err.read_text().split() == f"--- {A} is gone --- {successor} replaces {A} stopped".split()


def test_a_member_that_moves_and_comes_back_is_followed_without_a_line_twice(state: LocalState, tmp_path: Path) -> None:
    now = f"{datetime.now(UTC) + timedelta(minutes=5):%FT%TZ}"  # later than any step, however busy the machine is
    with following(state, tmp_path, "main/a") as running:
        running.until("etcd")
        state.volume("a", B)
        running.told(f"--- main/a is on {B} now")
        state.log(B, ETCD, f"{now} on b")
        running.until("on b")
        state.volume("a", A)
        running.told(f"--- main/a is on {A} now")
        state.log(A, ETCD, f"{now} on a again")
        running.until("on a again")

        assert running.out.read_text().count("\n") == 3


def test_a_reader_that_goes_away_ends_it_though_nothing_more_is_logged(state: LocalState) -> None:
    env = environment(PROTOKUBE_STATE=str(state.paths.root.parent))
    reader, writer = os.pipe()
    with subprocess.Popen([*COMMAND, "logs", "-f", "agent"], stdout=writer, stderr=subprocess.PIPE, env=env) as command:
        os.close(writer)
        assert os.read(reader, 20)
        os.close(reader)

        assert command.wait(SECONDS) == ExitCode.OK
        assert command.stderr is not None
        assert command.stderr.read() == b""


def test_a_cluster_that_is_taken_down_ends_it(state: LocalState, tmp_path: Path) -> None:
    with following(state, tmp_path, "agent") as running:
        running.until("second")
        state.paths.database.unlink()

        assert running.command.wait(SECONDS) == ExitCode.OK
        assert running.err.read_text() == "--- one was taken down\n"
