"""The pieces a container's process is made of, each called as that process calls it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from clusters.hosts import eventually
from clusters.pod_runner import a_long_time, sleepers
from fakes.ports import kept_port
from protokube.local.base.reactor import Reactor
from protokube.local.pods.children import Child
from protokube.local.pods.containers import find_program
from protokube.local.pods.mounts import take
from protokube.local.pods.pods import VolumeMount
from protokube.local.pods.probes import CheckFailed, own_address, run_check, start_check
from protokube.local.pods.probestate import Exec, HttpGet, Probe, TcpSocket


@contextmanager
def a_server(answer: bytes | None) -> Iterator[tuple[int, list[bytes]]]:
    """Answers one connection with these bytes, or accepts and says nothing."""
    heard: list[bytes] = []
    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            client, _ = server.accept()
            with client:
                heard.append(client.recv(4096))
                if answer is not None:
                    client.sendall(answer)
                else:
                    over.wait(30)

        thread = threading.Thread(target=serve)
        thread.start()
        yield server.getsockname()[1], heard
        over.set()
        thread.join()


def get(port: int, headers: tuple[tuple[str, str], ...] = ()) -> HttpGet:
    return HttpGet(secure=False, host="127.0.0.1", port=port, path="/healthz?a=b", headers=headers)


@pytest.mark.parametrize("status", [200, 204, 301, 399])
def test_a_good_status_is_good(status: int) -> None:
    with a_server(f"HTTP/1.1 {status} Fine\r\n\r\n".encode()) as (port, heard):
        run_check(get(port, (("Host", "other"), ("X-A", "b"))), 0, 20)
    lines = heard[0].decode().split("\r\n")
    assert lines[0] == "GET /healthz?a=b HTTP/1.1"
    assert {"host: other", "x-a: b", "connection: close"} < set(lines)


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (b"HTTP/1.1 404 Not Found\r\n\r\n", "HTTP status 404"),
        (b"HTTP/1.1 500\r\n\r\n", "HTTP status 500"),
        (b"HTTP/1.1 199 Odd\r\n\r\n", "HTTP status 199"),
        (b"SSH-2.0-OpenSSH\r\n", "the answer is not HTTP: 'SSH-2.0-OpenSSH'"),
        (b"HTTP/1.1 yes\r\n", "the answer is not HTTP"),
        (b"", "the answer is not HTTP: ''"),
        (b"\xff" * 2000, "the answer is not HTTP"),
    ],
)
def test_any_other_answer_is_told(answer: bytes, told: str) -> None:
    with a_server(answer) as (port, _), pytest.raises(CheckFailed) as failed:
        run_check(get(port), 0, 20)
    assert told in str(failed.value)


def test_silence_ends_in_time() -> None:
    with a_server(None) as (port, _), pytest.raises(TimeoutError):
        run_check(get(port), 0, 0.1)


def test_a_closed_port_is_refused_and_an_open_one_is_not() -> None:
    with kept_port() as port, pytest.raises(ConnectionRefusedError):
        run_check(TcpSocket(host="127.0.0.1", port=port), 0, 1)
    with socket.create_server(("127.0.0.1", 0)) as server:
        run_check(TcpSocket(host="127.0.0.1", port=server.getsockname()[1]), 0, 1)


def test_without_a_cable_the_own_address_is_the_loopbacks() -> None:
    assert own_address("no-such-cable") == "127.0.0.1"
    assert own_address("lo") == "127.0.0.1"


# Children


class Ended:
    """Runs a reactor until a child has ended, and keeps what it told."""

    def __init__(self) -> None:
        self.reactor = Reactor()
        self.told: list[tuple[int, str]] = []

    def __call__(self, code: int, report: str) -> None:
        self.told.append((code, report))
        self.reactor.stop()


def fail() -> None:
    raise FileNotFoundError(2, "No such file or directory", "/nowhere")


def test_a_child_that_does_its_work_ends_well_and_one_that_fails_says_why() -> None:
    for work, told in ((lambda: None, (0, "")), (fail, (127, "No such file or directory: /nowhere"))):
        ended = Ended()
        Child(work, ended, ended.reactor)
        ended.reactor.run()
        assert ended.told == [told]


def test_a_child_has_a_session_of_its_own_and_no_signals_of_ours() -> None:
    ended = Ended()
    child = Child(lambda: time.sleep(1000), ended, ended.reactor)
    while os.getsid(child.pid) != child.pid:
        time.sleep(0.001)
    child.signal(signal.SIGTERM)
    ended.reactor.run()
    assert ended.told == [(-signal.SIGTERM, "")]


def test_a_program_in_a_childs_place_ends_as_the_child() -> None:
    ended = Ended()
    Child(lambda: os.execv("/bin/sh", ["sh", "-c", "exit 5"]), ended, ended.reactor)
    ended.reactor.run()
    assert ended.told == [(5, "")]


def test_a_child_that_cannot_be_waited_for_is_killed_with_its_group() -> None:
    ended = Ended()
    long = a_long_time(3)
    child = Child(lambda: os.execv("/bin/sh", ["sh", "-c", f"sleep {long} & sleep {long}"]), ended, ended.reactor)
    eventually(lambda: len(sleepers(long)) == 2)
    child.kill_group()
    ended.reactor.run()
    assert ended.told == [(-signal.SIGKILL, "")]
    eventually(lambda: not sleepers(long))


def answer_to(probe: Probe, container: int) -> str | None:
    reactor = Reactor()
    answers: list[str | None] = []

    def finished(why: str | None) -> None:
        answers.append(why)
        reactor.stop()

    start_check(probe, container, finished, reactor)
    reactor.run()
    return answers[0]


@pytest.fixture(scope="module")
def container() -> Iterator[int]:
    """A process in mount and PID namespaces of its own."""
    command = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sleep", "1000"]
    with subprocess.Popen(command) as outer:
        children = Path(f"/proc/{outer.pid}/task/{outer.pid}/children")
        while not (found := children.read_text().split()):
            time.sleep(0.005)
        while not Path(f"/proc/{found[0]}/cmdline").read_bytes().startswith(b"sleep"):
            time.sleep(0.005)
        yield int(found[0])
        outer.kill()


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (("true",), None),
        (("false",), "false: exit code 1"),
        (("sh", "-c", "kill -9 $$"), "sh: killed by SIGKILL"),
        (("no-such-program",), "exit code"),
        (("sh", "-c", "test -e /proc/1/cmdline && grep -q sleep /proc/1/cmdline"), None),
    ],
)
def test_a_command_is_asked_where_the_container_runs(
    container: int, command: tuple[str, ...], told: str | None
) -> None:
    answer = answer_to(Probe(check=Exec(command), timeout=20), container)
    assert answer == told or (told and answer and told in answer)


def test_what_takes_too_long_is_not_waited_for(container: int) -> None:
    began = time.monotonic()
    answer = answer_to(Probe(check=Exec(("sleep", "1000")), timeout=0.1), container)
    assert answer == "no answer within 0.1 seconds"
    assert time.monotonic() - began < 60


def test_a_container_that_is_gone_fails_its_check() -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    answer = answer_to(Probe(check=Exec(("true",)), timeout=20), gone.pid)
    assert answer is not None
    assert answer.startswith("No such file or directory: /proc/")


# Volumes and programs


def volume(path: Path, kind: str = "", sub_path: str = "") -> VolumeMount:
    return VolumeMount(host_path=str(path), kind=kind, sub_path=sub_path, mount_path="/x", read_only=False)


def taken(mount: VolumeMount) -> bool:
    """Whether it is a folder."""
    is_folder, handle = take(mount)
    os.close(handle)
    return is_folder


def test_what_may_be_made_is_made(tmp_path: Path) -> None:
    assert taken(volume(tmp_path / "a" / "b")) is True
    assert taken(volume(tmp_path / "c" / "d", "DirectoryOrCreate")) is True
    assert taken(volume(tmp_path / "e", "FileOrCreate")) is False
    assert taken(volume(tmp_path, "", "f/g")) is True
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")) == [
        "a",
        "a/b",
        "c",
        "c/d",
        "e",
        "f",
        "f/g",
    ]


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        ("Directory", "file"),
        ("Directory", "missing"),
        ("DirectoryOrCreate", "file"),
        ("File", "."),
        ("File", "missing"),
        ("FileOrCreate", "."),
        ("Socket", "file"),
        ("CharDevice", "file"),
        ("BlockDevice", "file"),
    ],
)
def test_what_has_to_be_there_is_demanded(tmp_path: Path, kind: str, path: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match=r"No such file|hostPath is no"):
        take(volume(tmp_path / path, kind))
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_a_device_is_a_device() -> None:
    assert taken(volume(Path("/dev/null"), "CharDevice")) is False


def test_a_sub_path_does_not_lead_out_by_a_link(tmp_path: Path) -> None:
    (tmp_path / "volume").mkdir()
    (tmp_path / "volume" / "out").symlink_to("/etc")
    with pytest.raises(PermissionError, match="subPath leads out of the volume"):
        take(volume(tmp_path / "volume", "", "out"))
    (tmp_path / "volume" / "data").mkdir()
    (tmp_path / "volume" / "in").symlink_to("data")
    assert taken(volume(tmp_path / "volume", "", "in")) is True


def test_a_program_is_its_path_or_else_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("image", "path"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "etcd").touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    assert find_program(str(tmp_path / "image" / "etcd")) == str(tmp_path / "image" / "etcd")
    for command in ("etcd", "/usr/local/bin/etcd-of-the-image/etcd"):
        assert find_program(command) == str(tmp_path / "path" / "etcd")
    with pytest.raises(FileNotFoundError, match="no kube-apiserver in PATH"):
        find_program("/usr/local/bin/kube-apiserver")
