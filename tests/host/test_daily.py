"""What a user does with a running cluster every day: look into a host, and read and follow its logs."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from fcntl import ioctl
from pathlib import Path

import pytest

from builders.command import COMMAND, Answer, environment
from clusters.real import RealCluster, until
from protokube.errors import ExitCode

SECONDS = 60.0


@pytest.fixture(scope="module")
def cluster() -> Iterator[RealCluster]:
    with RealCluster() as made:
        yield made.up()


def shell(cluster: RealCluster, *words: str, stdin: bytes = b"") -> Answer:
    env = environment(PROTOKUBE_STATE=str(cluster.state))
    done = subprocess.run([*COMMAND, "shell", *words], input=stdin, capture_output=True, timeout=SECONDS, env=env)
    return Answer(done.returncode, done.stdout.decode(), done.stderr.decode())


def test_a_command_runs_with_the_root_the_processes_the_network_and_the_environment_of_the_host(
    cluster: RealCluster,
) -> None:
    host = next(each for each in cluster.hosts() if each["name"] == cluster.host_of("b"))
    script = "hostname; cat /etc/hostname; cat /proc/1/comm; ls /run/protokube/units.sock; ip -4 -br a; echo $HOME $PWD"

    answer = shell(cluster, host["name"], "--", "sh", "-c", f"{script}; which protokube; umask; echo err >&2")

    name, etc, first, socket, *network, where, program, mask = answer.out.splitlines()
    assert (name, etc, where, mask) == (host["name"], host["name"], "/root /", "0022")
    assert first.startswith("python")
    assert socket == "/run/protokube/units.sock"
    assert any(host["address"] in line for line in network)
    assert program == f"{cluster.paths.root}/bin/protokube"
    assert (answer.code, answer.err) == (ExitCode.OK, "err\n")


def test_what_a_command_reads_writes_and_ends_with_is_passed_on(cluster: RealCluster) -> None:
    data = os.urandom(300_000).hex().encode()

    assert shell(cluster, "main/a", "--", "cat", stdin=data).out == data.decode()
    assert shell(cluster, "main/a", "--", "sh", "-c", "exit 7").code == 7
    assert shell(cluster, "main/a", "--", "sh", "-c", "kill -TERM $$").code == 128 + signal.SIGTERM
    assert shell(cluster, "main/a", "--", "test", "-t", "0").code == 1
    assert shell(cluster, "main/a", stdin=b"cd /etc && pwd; exit 3\n") == Answer(
        3, "/etc\n", f"--- in {cluster.host_of('a')}\n"
    )


def test_without_a_name_the_first_master_is_taken_and_said(cluster: RealCluster) -> None:
    first = min(str(each["name"]) for each in cluster.hosts())

    assert shell(cluster, "--", "hostname") == Answer(0, f"{first}\n", f"--- in {first}\n")


def test_a_program_that_is_not_there_is_told_as_a_shell_does(cluster: RealCluster) -> None:
    answer = shell(cluster, "main/a", "--", "no-such-program")

    assert answer.code == 127
    assert "error: no-such-program cannot be started in" in answer.err
    assert shell(cluster, "main/a", "--", "/etc/hostname").code == 126


def test_a_command_ends_with_whoever_started_it(cluster: RealCluster) -> None:
    host = cluster.host_of("c")
    env = environment(PROTOKUBE_STATE=str(cluster.state))
    for number, code in ((signal.SIGTERM, 128 + signal.SIGTERM), (signal.SIGKILL, -signal.SIGKILL)):
        marker = f"77{number:d}.5"
        with subprocess.Popen([*COMMAND, "shell", host, "--", "sleep", marker], env=env) as command:
            until(lambda marker=marker: runs(cluster, host, marker), "the command runs", SECONDS)  # type: ignore[misc]
            command.send_signal(number)
            assert command.wait(SECONDS) == code
        until(lambda marker=marker: not runs(cluster, host, marker), "nothing of it is left", SECONDS)  # type: ignore[misc]


def runs(cluster: RealCluster, host: str, word: str) -> bool:
    return cluster.inside(host, "pgrep", "-f", f"^sleep {word}").returncode == 0


class Terminal:
    """A user at a terminal."""

    def __init__(self, *words: str, **variables: str) -> None:
        self.seen = ""
        self._pid, self._terminal = pty.fork()
        if not self._pid:
            os.execve(COMMAND[0], [*COMMAND, *words], environment(**variables))
        ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 99, 0, 0))

    def write(self, text: str) -> None:
        self.seen = ""
        os.write(self._terminal, text.encode())

    def until(self, text: str) -> None:
        end = time.monotonic() + SECONDS
        while text not in self.seen:
            assert time.monotonic() < end, f"{text!r} is not in {self.seen!r}"
            if select.select([self._terminal], [], [], 0.1)[0]:
                self.seen += os.read(self._terminal, 65536).decode(errors="replace")

    def end(self) -> int:
        with suppress(OSError):  # the other side has closed it
            while os.read(self._terminal, 65536):
                pass
        os.close(self._terminal)
        return os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])


def test_a_shell_has_a_terminal_of_the_host_with_job_control_and_a_prompt_that_names_it(cluster: RealCluster) -> None:
    host = cluster.host_of("b")
    user = Terminal("shell", "main/b", PROTOKUBE_STATE=str(cluster.state), TERM="xterm")
    user.until(f"[{host}] / # ")
    user.write("echo $(tty) $(stty size) $TERM\n")
    user.until("/dev/pts/0 33 99 xterm")
    user.write("sleep 100\n")
    user.until("sleep 100")
    time.sleep(0.2)  # until it is in the foreground: before, Ctrl-C is the shell's
    user.write("\x03")
    user.until(f"[{host}] / # ")
    user.write("echo ended with $?; sleep 100 & exit 5\n")
    user.until("ended with 130")

    assert user.end() == 5
    cluster.inside(host, "pkill", "-f", "^sleep 100")


def test_a_host_that_dies_ends_its_shell_and_is_followed_in_its_logs_by_its_replacement(
    cluster: RealCluster, tmp_path: Path
) -> None:
    cluster.until_ready()
    host = cluster.host_of("a")
    env = environment(PROTOKUBE_STATE=str(cluster.state))
    with (
        following(cluster, tmp_path / "agent", host) as agent,
        following(cluster, tmp_path / "member", "main/a") as member,
    ):
        until(
            lambda: "taken over" in agent.read_text() or "made" in agent.read_text() or agent.read_text(), "lines come"
        )
        with subprocess.Popen(
            [*COMMAND, "shell", host, "--", "sleep", "600"], stderr=subprocess.PIPE, text=True, env=env
        ) as command:
            until(lambda: cluster.inside(host, "pgrep", "-f", "^sleep 600").returncode == 0, "it runs")
            cluster.admin.call("kill_host", host=host)

            assert command.wait(SECONDS) == 128 + signal.SIGKILL
            assert command.stderr is not None
            assert f"--- {host} is gone" in command.stderr.read()
        new = str(until(lambda: (found := cluster.host_of("a")) != host and found, "another host holds the volume"))
        for file, said in ((agent, f"--- {new} replaces {host}"), (member, f"--- main/a is on {new} now")):
            until(lambda file=file, said=said: said in file.with_suffix(".err").read_text(), said, SECONDS)  # type: ignore[misc]
        until(lambda: "taken over" in agent.read_text(), "the agent of the new host is followed", SECONDS)
        until(lambda: "server has already been initialized" in member.read_text(), "and its etcd", SECONDS)
    refused = shell(cluster, host)
    assert (refused.code, refused.err.splitlines()[0]) == (ExitCode.REFUSED, f"error: {host} does not run")
    cluster.until_ready()


@contextmanager
def following(cluster: RealCluster, file: Path, *words: str) -> Iterator[Path]:
    """What `logs -f` writes; its notes are beside it."""
    env = environment(PROTOKUBE_STATE=str(cluster.state))
    with file.open("wb") as out, file.with_suffix(".err").open("wb") as err:
        command = subprocess.Popen([*COMMAND, "logs", "-f", *words], stdout=out, stderr=err, env=env)
    try:
        yield file
    finally:
        command.send_signal(signal.SIGINT)
        assert command.wait(SECONDS) == ExitCode.STOPPED


def test_logs_are_listed_and_merged_and_need_no_daemon(cluster: RealCluster) -> None:
    tree = json.loads(cluster.run("logs", "--output", "json").out)
    hosts = sorted(str(each["name"]) for each in cluster.hosts())

    assert sorted(tree["hosts"]) == hosts
    assert {each["name"] for each in tree["logs"]} >= {"agent", "etcd", "main/a", "main/b", "main/c", "cloud"}
    lines = [json.loads(line) for line in cluster.run("logs", "etcd", "agent", "--output", "json").out.splitlines()]
    times = [each["time"] for each in lines]
    assert times == sorted(times)
    assert {(each["host"], each["log"]) for each in lines} == {
        (host, log) for host in hosts for log in ("etcd", "agent")
    }
    assert "runs at 10.77.0." in cluster.run("logs", "cloud").out
