"""What a container sees of the host, and how it is probed: real mounts, sockets and programs."""

from __future__ import annotations

import shutil
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from builders.certificates import write_certificates
from clusters.hosts import a_pod, a_volume, at, eventually
from clusters.pod_runner import Runner, a_long_time, a_runner, show, sleepers


@pytest.fixture(scope="module")
def runner() -> Iterator[Runner]:
    """One for all tests: each has pods of its own."""
    with a_runner() as made:
        yield made


# What a container sees


def test_a_path_of_the_host_is_seen_where_it_was_asked_for(runner: Runner, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "note").write_text("from the host\n")
    command = f"cat {tmp_path}/inside/note; echo from the pod > {tmp_path}/inside/answer"
    seen = show(runner, "mounted", command, spec=a_volume(f"{tmp_path}/data"), volumeMounts=at(f"{tmp_path}/inside"))
    assert seen == "from the host\n"
    assert (tmp_path / "data" / "answer").read_text() == "from the pod\n"
    assert list((tmp_path / "inside").iterdir()) == []
    assert str(tmp_path) not in Path("/proc/self/mountinfo").read_text()


def test_read_only_is_read_only_and_sub_paths_are_made(runner: Runner, tmp_path: Path) -> None:
    command = f"touch {tmp_path}/inside/x 2>&1 | grep -o 'Read-only file system'"
    mounts = at(f"{tmp_path}/inside", readOnly=True, subPath="a/b")
    assert (
        show(runner, "guarded", command, spec=a_volume(str(tmp_path)), volumeMounts=mounts) == "Read-only file system\n"
    )
    assert (tmp_path / "a" / "b").is_dir()


def test_volumes_are_the_hosts_even_where_another_volume_covers_them(runner: Runner, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "name").write_text(f"{name}\n")
    spec = {"volumes": [{"name": name, "hostPath": {"path": f"{tmp_path}/{name}"}} for name in ("a", "b")]}
    mounts = [{"name": "a", "mountPath": f"{tmp_path}/b"}, {"name": "b", "mountPath": f"{tmp_path}/b/deep"}]
    (tmp_path / "a" / "deep").mkdir()
    assert (
        show(runner, "swapped", f"cat {tmp_path}/b/name {tmp_path}/b/deep/name", spec=spec, volumeMounts=mounts)
        == "a\nb\n"
    )


def test_each_type_of_host_path_is_made_or_demanded(runner: Runner, tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(f"{tmp_path}/socket")
        (tmp_path / "file").touch()
        good = {"": "any", "DirectoryOrCreate": "made/dir", "FileOrCreate": "made-file", "Directory": "."}
        good |= {"File": "file", "Socket": "socket"}
        volumes = [
            {"name": f"v{n}", "hostPath": {"path": f"{tmp_path}/{p}", "type": t}}
            for n, (t, p) in enumerate(good.items())
        ]
        mounts = [{"name": f"v{n}", "mountPath": f"{tmp_path}-in/{n}"} for n in range(len(good))]
        seen = show(runner, "typed", f"stat -c %F {tmp_path}-in/*", spec={"volumes": volumes}, volumeMounts=mounts)
        assert seen.split("\n")[:-1] == ["directory"] * 2 + [
            "regular empty file",
            "directory",
            "regular empty file",
            "socket",
        ]
    shutil.rmtree(f"{tmp_path}-in")
    for kind, path in (("Directory", "file"), ("File", "made"), ("Socket", "file"), ("File", "missing")):
        runner.write(a_pod("demanding", spec=a_volume(f"{tmp_path}/{path}", kind), volumeMounts=at(f"{tmp_path}-in")))
        wanted = "No such file" if path == "missing" else f"is no {kind}"
        assert eventually(partial(told, runner, "demanding", wanted))["state"] == "waiting"


def told(runner: Runner, pod: str, wanted: str) -> dict[str, Any] | None:
    """The container, while it says this."""
    return seen if wanted in (seen := runner.container(pod))["reason"] else None


def test_the_environment_is_clean_but_for_what_was_asked(runner: Runner) -> None:
    variables = [{"name": "A", "value": "1"}, {"name": "B", "value": "$(A)2"}, {"name": "EMPTY"}]
    lines = show(runner, "clean", "env | sort; pwd", env=variables, workingDir="/usr/lib").splitlines()
    assert {line.split("=")[0] for line in lines[:-1]} <= {"A", "B", "EMPTY", "HOME", "HOSTNAME", "PATH", "PWD"}
    assert {"A=1", "B=12", "EMPTY="} <= set(lines)
    assert lines[-1] == "/usr/lib"


def test_a_container_has_processes_and_mounts_of_its_own(runner: Runner) -> None:
    seen = show(runner, "alone", "echo $$$$; ls /proc | grep -c '^[0-9]'; readlink /proc/self/ns/net")
    first, count, network = seen.splitlines()
    assert (first, network) == ("1", str(Path("/proc/self/ns/net").readlink()))
    assert int(count) < 6


@pytest.mark.parametrize("program", ["/usr/local/bin/true-of-the-image/sleep", "sleep", "/bin/sleep"])
def test_a_program_is_found_by_its_path_or_by_its_name(runner: Runner, program: str) -> None:
    name = f"found-{abs(hash(program))}"
    runner.write(a_pod(name, [program, "1000"]))
    pid = runner.runs(name)["pid"]
    eventually(lambda: Path(f"/proc/{pid}/cmdline").read_bytes() == f"{program}\0001000\0".encode())
    assert runner.container(name)["restarts"] == 0
    (runner.manifests / f"{name}.json").unlink()


# Probes


class Answers(BaseHTTPRequestHandler):
    """Says whatever `codes` says for a path; None is silence."""

    codes: dict[str, int | None]
    heard: list[str]

    def do_GET(self) -> None:
        self.heard.append(f"{self.path} {self.headers['X-Probe']}")
        code = self.codes.get(self.path, 404)
        if code is None:
            time.sleep(2)
            return
        self.send_response(code)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Nobody reads it."""


@pytest.fixture
def answers() -> Iterator[tuple[type[Answers], int]]:
    handler = type("OwnAnswers", (Answers,), {"codes": {}, "heard": []})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield handler, server.server_address[1]
        server.shutdown()
        thread.join()


def get(port: int, path: str = "/healthz", **more: Any) -> dict[str, Any]:
    check = {"port": port, "host": "127.0.0.1", "path": path, **more.pop("check", {})}
    return {"httpGet": check, "periodSeconds": 0.1, "failureThreshold": 2, "timeoutSeconds": 20, **more}


def test_a_container_that_fails_its_liveness_probe_is_started_again(
    runner: Runner, answers: tuple[type[Answers], int]
) -> None:
    handler, port = answers
    handler.codes["/healthz"] = 200
    probe = get(port, check={"httpHeaders": [{"name": "X-Probe", "value": "ours"}]})
    runner.write(a_pod("alive", livenessProbe=probe))
    first = runner.runs("alive")
    eventually(lambda: len(handler.heard) >= 4)
    assert handler.heard[0] == "/healthz ours"
    assert runner.container("alive")["pid"] == first["pid"]
    handler.codes["/healthz"] = 500
    seen = eventually(lambda: seen if (seen := runner.container("alive"))["restarts"] >= 1 else None)
    assert seen["last_exit"]["signal"] == "SIGKILL"
    assert seen["last_exit"]["why"] == "liveness probe failed: HTTP status 500"
    (runner.manifests / "alive.json").unlink()


def test_a_container_is_ready_when_it_says_so_and_not_before(
    runner: Runner, answers: tuple[type[Answers], int]
) -> None:
    handler, port = answers
    handler.codes["/healthz"] = 503
    runner.write(a_pod("readying", readinessProbe=get(port, timeoutSeconds=1)))
    before = runner.runs("readying")
    eventually(lambda: len(handler.heard) >= 3)
    assert runner.container("readying")["ready"] is False
    handler.codes["/healthz"] = 302
    eventually(lambda: runner.container("readying")["ready"] is True)
    handler.codes["/healthz"] = None
    eventually(lambda: runner.container("readying")["ready"] is False)
    assert runner.container("readying")["pid"] == before["pid"]
    (runner.manifests / "readying.json").unlink()


def test_nothing_else_is_asked_before_a_container_has_started_up(
    runner: Runner, answers: tuple[type[Answers], int]
) -> None:
    handler, port = answers
    handler.codes |= {"/started": 500, "/alive": 500, "/ready": 200}
    probes: dict[str, Any] = {
        "startupProbe": get(port, "/started", failureThreshold=1000),
        "livenessProbe": get(port, "/alive"),
    }
    runner.write(a_pod("starting", readinessProbe=get(port, "/ready"), **probes))
    eventually(lambda: len(handler.heard) >= 4)
    assert {line.split()[0] for line in handler.heard} == {"/started"}
    assert runner.container("starting")["ready"] is False
    handler.codes |= {"/started": 200, "/alive": 200}
    eventually(lambda: runner.container("starting")["ready"] is True)
    asked = handler.heard.count("/started None")
    eventually(lambda: handler.heard.count("/alive None") >= 3)
    assert handler.heard.count("/started None") == asked
    assert runner.container("starting")["restarts"] == 0
    (runner.manifests / "starting.json").unlink()


def test_a_tls_port_is_asked_without_asking_who_it_is(runner: Runner, tmp_path: Path) -> None:
    who = {"commonName": "somebody else", "organizations": [], "usages": ["client auth"], "names": []}
    write_certificates(tmp_path / "pki", {"server": {"authority": "unknown", **who}})
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "pki" / "server.crt", tmp_path / "pki" / "server.key")
    handler = type("TlsAnswers", (Answers,), {"codes": {"/healthz": 200}, "heard": []})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        runner.write(a_pod("tls", readinessProbe=get(server.server_address[1], check={"scheme": "HTTPS"})))
        eventually(lambda: runner.container("tls")["ready"] is True)
        (runner.manifests / "tls.json").unlink()
        eventually(lambda: runner.gone("tls"))
        server.shutdown()
        thread.join()


def test_ports_and_commands_are_probed_too(runner: Runner, tmp_path: Path) -> None:
    knocked = socket.socket()
    knocked.bind(("127.0.0.1", 0))  # nobody else gets the port, and nobody listens yet
    port = knocked.getsockname()[1]
    probe = {"tcpSocket": {"port": "main", "host": "127.0.0.1"}, "periodSeconds": 0.1}
    runner.write(a_pod("knocked", ports=[{"name": "main", "containerPort": port}], readinessProbe=probe))
    runner.runs("knocked")
    inside = f"{tmp_path}/inside"
    command = {"exec": {"command": ["sh", "-c", f"test -e {inside}/ready && test $$ != 1"]}, "periodSeconds": 0.1}
    volume: dict[str, Any] = {"spec": a_volume(f"{tmp_path}/data"), "volumeMounts": at(inside)}
    runner.write(a_pod("commanded", readinessProbe=command, **volume))
    runner.runs("commanded")
    time.sleep(0.2)
    assert [runner.container(name)["ready"] for name in ("knocked", "commanded")] == [False, False]
    (tmp_path / "data" / "ready").touch()
    with knocked:
        knocked.listen()
        eventually(lambda: runner.container("knocked")["ready"] and runner.container("commanded")["ready"])
    (tmp_path / "data" / "ready").unlink()
    eventually(lambda: not runner.container("commanded")["ready"])
    for name in ("knocked", "commanded"):
        (runner.manifests / f"{name}.json").unlink()


def test_a_probe_that_hangs_is_a_failed_probe_and_leaves_no_process(runner: Runner) -> None:
    long = a_long_time(4)
    probe = {"exec": {"command": ["sleep", long]}, "timeoutSeconds": 0.1, "periodSeconds": 0.1, "failureThreshold": 2}
    runner.write(a_pod("hanging", livenessProbe=probe))
    seen = eventually(lambda: seen if (seen := runner.container("hanging"))["restarts"] >= 1 else None)
    assert seen["last_exit"]["why"] == "liveness probe failed: no answer within 0.1 seconds"
    (runner.manifests / "hanging.json").unlink()
    eventually(lambda: runner.gone("hanging") and not sleepers(long))


def test_many_probes_cost_no_handle(runner: Runner, tmp_path: Path) -> None:
    before = runner.handles()
    probe = {"exec": {"command": ["sh", "-c", f"echo >> {tmp_path}/asked"]}, "periodSeconds": 0.05}
    runner.write(a_pod("leaky", readinessProbe=probe, livenessProbe=probe))
    runner.runs("leaky")
    eventually(lambda: (tmp_path / "asked").stat().st_size >= 50, seconds=30)
    (runner.manifests / "leaky.json").unlink()
    eventually(lambda: runner.gone("leaky"))
    eventually(lambda: runner.handles() <= before)
